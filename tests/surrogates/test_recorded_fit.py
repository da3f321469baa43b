"""Recorded fits: where the next search starts, and what is refused."""

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.priors import Hyperparameter, LogNormal, ParameterVector
from scrimp.surrogates.recorded_fit import record_of, recorded_values, search_from

VECTOR = ParameterVector(
    (
        Hyperparameter("length_scale", LogNormal(0.0, 1.0), (1e-3, 1e3), size=2),
        Hyperparameter("noise", LogNormal(-4.0, 1.0), (1e-6, 1.0)),
    )
)
VALUES = np.array([0.3, 0.7, 0.01])
SEARCH = SearchSettings(random_starts=2)


def test_round_trip():
    values, explored = recorded_values(VECTOR, record_of(VECTOR, VALUES, 40))
    np.testing.assert_allclose(values, VALUES)
    assert explored == 40


@pytest.mark.parametrize(("size", "starts", "explored"), [(41, 1, 40), (59, 1, 40), (60, 4, 60)])
def test_several_starts_once_the_data_have_grown_by_half(size, starts, explored):
    found = search_from(
        VECTOR, size, record_of(VECTOR, VALUES, 40), np.random.default_rng(0), SEARCH
    )
    assert (len(found[0]), found[1]) == (starts, explored)
    np.testing.assert_allclose(found[0][0], VALUES)


@pytest.mark.parametrize("state", [None, {"parameters": {"noise": [0.1]}, "explored": 40}])
def test_without_a_usable_record_every_start_is_tried(state):
    starts, explored = search_from(VECTOR, 7, state, np.random.default_rng(0), SEARCH)
    assert len(starts) == 3 and explored == 7
    np.testing.assert_allclose(starts[0], VECTOR.initial)


def test_a_fit_of_another_model_is_refused():
    with pytest.raises(StudyError, match=r"'noise': 1.*'length_scale': 2.*fit anew"):
        recorded_values(VECTOR, {"parameters": {"noise": [0.1]}, "explored": 40})
