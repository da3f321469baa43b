import functools

import numpy as np

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.context import Context
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.kernels import close, numerical_gradient
from scrimp.transfer import noisy_improvement
from scrimp.transfer.ensembles import WeightedEnsemble
from scrimp.transfer.noisy_improvement import NoisyImprovement
from scrimp.transfer.past import Past
from tests.transfer.conftest import COLUMNS, function, study

WEIGHTS = np.array([0.3, 0.0, 0.2, 0.1, 0.4])


@functools.cache
def target():
    rng = np.random.default_rng(5)
    x = rng.random((8, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 8)
    y = function(x, 0.1) / 0.15 + 0.3 * rng.standard_normal(8)
    return ExactGP.over(COLUMNS).fit(Data(x, y - y.mean()), rng)


def test_is_the_expected_improvement_over_the_best_value_under_the_noise(sources, monkeypatch):
    """Against joint draws of the whole ensemble at what was evaluated and at the candidate: the
    mean of max(0, min f(X) - f(x)). 40,000 draws and 800: standard errors of a few per cent."""
    monkeypatch.setattr(noisy_improvement, "DRAWS", 800)
    model = target()
    ensemble, context = WeightedEnsemble(model, sources, WEIGHTS), Context(model.data.x)
    best = model.data.x[ensemble.mean(model.data.x)[:, 0].argmin()]
    x = np.array([[0.5, 0.6, 0.0], [0.7, 0.5, 0.0], best])
    rows = np.concatenate([model.data.x, x])
    draws = ensemble.sample(rows, 40_000, np.random.default_rng(0))
    gains = np.maximum(draws[:, :8].min(axis=1, keepdims=True) - draws[:, 8:], 0.0).mean(axis=0)
    bound = NoisyImprovement(model, sources, WEIGHTS, 3).bind({"loss": ensemble}, context)
    np.testing.assert_allclose(np.exp(bound(x[:2])), gains[:2], rtol=0.12)
    plain = LogExpectedImprovement().bind({"loss": ensemble}, context)
    assert gains[2] < 1e-6 and np.exp(bound(x[2:]))[0] < 0.01 < np.exp(plain(x[2:]))[0]


def test_gradient_and_as_many_terms_as_there_are_fantasies(sources):
    model = target()
    pending = np.array([[0.9, 0.9, 1.0]])
    told = WeightedEnsemble(model.condition(Data(pending, np.zeros((1, 7)))), sources, WEIGHTS)
    bound = NoisyImprovement(model, sources, WEIGHTS).bind(
        {"loss": told}, Context(model.data.x, pending)
    )
    x = np.array([[0.3, 0.4, 0.5], [0.7, 0.1, 0.0]])
    assert bound.terms(x).shape == (2, 7)
    gradient = bound.value_and_gradient(x)[1]
    close(gradient[:, :2], numerical_gradient(lambda z: float(bound(z).sum()), x)[:, :2], 1e-4)


@functools.cache
def made_sources():
    return Past(tuple(study(number) for number in range(4)), COLUMNS).models("z-score")


class TestNoisyImprovement(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return NoisyImprovement(target(), made_sources(), WEIGHTS)

    def models(self):
        return {"loss": WeightedEnsemble(target(), made_sources(), WEIGHTS)}
