"""Expected improvement of the mixture plus that of past models."""

from collections.abc import Mapping

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition, Context
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.transfer.past import SourceModels
from scrimp.transfer.source_model import NORMALISERS, SourceFit
from scrimp.transfer.source_study import source_study
from scrimp.transfer.task_prior import (
    MixtureImprovement,
    TaskAcquisition,
    TaskBasis,
    TaskPosterior,
    task_posterior,
)
from tests.transfer.test_task_prior_posterior import MODEL

COLUMNS = (Column(), Column())
RNG = np.random.default_rng(0)
ROWS = RNG.random((60, 2))
SEEN = ROWS[:6]


def _losses(x: Array, best: float) -> Array:
    return np.asarray(((x - best) ** 2).sum(axis=1))


def _past() -> SourceModels:
    fit = SourceFit(COLUMNS)
    x = RNG.random((30, 2))
    studies = [source_study(f"{best}", x, _losses(x, best)) for best in (0.3, 0.5, 0.6)]
    return SourceModels(tuple(fit.fit(study, NORMALISERS["z-score"].steps) for study in studies))


PAST = _past()


def _posterior() -> TaskPosterior:
    y = _losses(SEEN, 0.45)
    data = Data(SEEN, (y - y.mean()) / y.std())
    kernel = PAST.shared_kernel(COLUMNS)
    cold = ExactGP.over(COLUMNS).fit(data, np.random.default_rng(0))
    return task_posterior(TaskBasis(PAST, kernel, kernel, 1.0), cold)


def test_both_parts_count_by_shares_of_their_maxima() -> None:
    models, context = {"loss": _posterior()}, Context(SEEN)
    agreement, early, least = np.array([0.2, 0.5, 0.3]), 0.4, 0.03
    acquisition = TaskAcquisition(PAST, agreement, early, least, ROWS)
    improvement = np.exp(MixtureImprovement().bind(models, context)(ROWS))
    gains = np.maximum(PAST.means(SEEN).min(axis=0) - PAST.means(ROWS), 0.0)
    loud = gains @ agreement * improvement.max() / (gains @ agreement).max()
    expected = (1 - early - least) * improvement + early * loud + least * gains.mean(axis=1)
    found = np.exp(acquisition.bind(models, context)(ROWS))
    assert found / found.max() == pytest.approx(expected / expected.max(), rel=1e-9)


class TestTaskAcquisition(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        past = MODEL.basis.sources
        agreement = np.full(len(past), 1 / len(past))
        return TaskAcquisition(past, agreement, 0.4, 0.03, self.rows(20, seed=9))

    def models(self) -> Mapping[str, FittedSurrogate]:
        return {"loss": MODEL}


def test_gradients() -> None:
    acquisition = TaskAcquisition(PAST, np.full(3, 1 / 3), 0.4, 0.03, ROWS)
    bound = acquisition.bind({"loss": _posterior()}, Context(SEEN))
    x, step = ROWS[10:14], 1e-6
    _, gradient = bound.value_and_gradient(x)
    for column in range(2):
        move = step * np.eye(2)[column]
        numeric = (bound(x + move) - bound(x - move)) / (2 * step)
        assert gradient[:, column] == pytest.approx(numeric, rel=1e-4, abs=1e-5)
