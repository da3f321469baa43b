"""What the models of pictures rest on."""

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.plots.models import comparison_budget, landscape_of


def test_losses_are_compared_at_one_budget(staged: scrimp.Study) -> None:
    history = staged.history
    landscape = landscape_of(history)
    assert landscape.budget == comparison_budget(history) == 1.0
    first = [trial.curve[0].loss for trial in staged.trials if trial.loss is not None]
    assert landscape.data.y.tolist() == first
    full = landscape_of(history, 9.0)
    assert full.data.y.tolist() == [trial.loss for trial in staged.trials if trial.budget == 9.0]
    with pytest.raises(StudyError, match="after 99"):
        landscape_of(history, 99.0)


def test_the_comparison_budget_is_reached_by_three_quarters(staged: scrimp.Study) -> None:
    history = staged.history
    reached = np.array([trial.budget for trial in history.trials if trial.loss is not None])
    budget = comparison_budget(history)
    assert (reached >= budget).mean() >= 0.75
    assert all((reached >= higher).mean() < 0.75 for higher in set(reached[reached > budget]))


def test_the_mean_passes_near_what_was_seen(whole: scrimp.Study) -> None:
    landscape = landscape_of(whole.history)
    mean = landscape.model.target_units(landscape.model.mean(landscape.data.x)[:, 0])
    assert np.abs(mean - landscape.data.y).max() < 0.05
    assert np.array_equal(landscape.best, landscape.data.x[np.argmin(landscape.data.y)])


def test_nothing_observed_is_said() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    with pytest.raises(StudyError, match="no observations"):
        landscape_of(study.history)
