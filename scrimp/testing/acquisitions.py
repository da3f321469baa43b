"""The battery for acquisitions: say how to make yours, and inherit the tests.

    class TestMyAcquisition(AcquisitionBattery):
        def acquisition(self) -> Acquisition:
            return MyAcquisition()

An acquisition that needs more models than "loss" overrides `models` as well, and `context` where it
needs to know more.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from scrimp.acquisition.acquisition import (
    Acquisition,
    BoundAcquisition,
    FantasyAverage,
    MeanStdAcquisition,
)
from scrimp.acquisition.context import Context
from scrimp.acquisition.pending import fantasise
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate
from scrimp.testing.dense_posterior import DensePosterior, SampledPosterior, random_posterior

__all__ = ["AcquisitionBattery", "finite_differences"]

DIMENSION = 3


def finite_differences(function: Callable[[Array], Array], x: Array, step: float = 1e-5) -> Array:
    """Central differences (m, d) of a function that scores each row of x (m, d) by itself."""
    gradient = np.zeros_like(x)
    for j in range(x.shape[1]):
        shift = step * np.eye(x.shape[1])[j]
        gradient[:, j] = (function(x + shift) - function(x - shift)) / (2.0 * step)
    return gradient


class AcquisitionBattery(ABC):
    """What every acquisition must keep: one deterministic score per row, its exact gradient,
    averages that are averages."""

    @abstractmethod
    def acquisition(self) -> Acquisition:
        """The acquisition under test."""

    def models(self) -> Mapping[str, FittedSurrogate]:
        """The models it needs, by name, over three inputs."""
        return {"loss": random_posterior(seed=1, d=DIMENSION)}

    def context(self, models: Mapping[str, FittedSurrogate]) -> Context:
        """What it needs to know."""
        return Context(evaluated=models["loss"].data.x)

    def bound(self) -> BoundAcquisition:
        """The acquisition on one model each, without fantasies."""
        models = self.models()
        return self.acquisition().bind(models, self.context(models))

    def with_fantasies(self) -> BoundAcquisition:
        """The acquisition on models that are fantasised over two pending inputs."""
        models, pending = self.models(), self.rows(2, seed=5)
        grown = {
            name: fantasise(model, pending, 4, np.random.default_rng(7))
            for name, model in models.items()
        }
        return self.acquisition().bind(grown, replace(self.context(models), pending=pending))

    def with_members(self) -> BoundAcquisition:
        """The acquisition on models of which there are two posterior samples each."""
        models = self.models()
        sampled = {name: _sampled(model) for name, model in models.items()}
        return self.acquisition().bind(sampled, self.context(models))

    def rows(self, count: int, seed: int = 3) -> Array:
        """Inputs (count, 3) inside the unit cube."""
        return np.random.default_rng(seed).uniform(0.05, 0.95, (count, DIMENSION))

    def test_gives_one_finite_score_per_row(self) -> None:
        """Also for a single row and for none."""
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            for count in (0, 1, 7):
                scores = bound(self.rows(count))
                assert scores.shape == (count,)
                assert np.isfinite(scores).all()

    def test_is_finite_at_evaluated_inputs(self) -> None:
        """Where the model is certain."""
        assert np.isfinite(self.bound()(self.models()["loss"].data.x)).all()

    def test_is_deterministic(self) -> None:
        """The same models, context and rows give the same scores."""
        np.testing.assert_array_equal(self.bound()(self.rows(7)), self.bound()(self.rows(7)))

    def test_scores_each_row_by_itself(self) -> None:
        """Unless it says that its scores belong together."""
        bound, x = self.bound(), self.rows(7)
        if not bound.joint:
            alone = np.concatenate([bound(row[None]) for row in x])
            np.testing.assert_allclose(bound(x), alone, rtol=1e-9, atol=1e-12)

    def test_value_and_gradient_gives_the_same_scores(self) -> None:
        """As calling it does."""
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            if not bound.joint:
                np.testing.assert_allclose(
                    bound.value_and_gradient(self.rows(7))[0], bound(self.rows(7)), rtol=1e-9
                )

    def test_gradient_agrees_with_finite_differences(self) -> None:
        """To 1e-5 relative: with one model, with fantasies, with posterior samples."""
        x = self.rows(7)
        for bound in (self.bound(), self.with_fantasies(), self.with_members()):
            if not bound.joint:
                gradient = bound.value_and_gradient(x)[1]
                expected = finite_differences(bound, x)
                np.testing.assert_allclose(
                    gradient, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max()
                )

    def test_ranking_does_not_depend_on_the_units_of_the_loss(self) -> None:
        """Losses times 10 plus 3 give the same order of candidates."""
        models, x = self.models(), self.rows(30)
        if not all(isinstance(model, DensePosterior) for model in models.values()):
            return
        scaled = {**models, "loss": _rescaled(models["loss"])}
        scores = self.bound()(x)
        others = self.acquisition().bind(scaled, self.context(models))(x)
        np.testing.assert_array_equal(np.argsort(scores), np.argsort(others))

    def test_prefers_a_lower_mean(self) -> None:
        """For formulas of mean and std: no derivative by the mean is positive."""
        acquisition = self.acquisition()
        if isinstance(acquisition, MeanStdAcquisition):
            mean, std = np.linspace(-2.0, 2.0, 9)[:, None], np.full((9, 1), 0.7)
            assert (np.asarray(acquisition.derivatives(mean, std, np.zeros(1))[0]) <= 0.0).all()
            assert (np.diff(acquisition.alpha(mean, std, np.zeros(1))[:, 0]) <= 0.0).all()

    def test_averages_are_averages(self) -> None:
        """Fantasies and posterior samples: the mean of the scores, of their exponentials where they
        are logarithms."""
        bound, x = self.with_fantasies(), self.rows(7)
        if isinstance(bound, FantasyAverage):
            terms = bound.terms(x)
            expected = terms.mean(axis=1)
            if bound.logarithmic:  # exp(terms) may be too small for a float
                expected = np.logaddexp.reduce(terms, axis=1) - np.log(terms.shape[1])
            np.testing.assert_allclose(bound(x), expected, rtol=1e-9)


def _sampled(model: FittedSurrogate) -> FittedSurrogate:
    """Two posterior samples of the hyperparameters, where the model is one that can be varied."""
    if not isinstance(model, DensePosterior):
        return model
    return SampledPosterior(
        (model, replace(model, scales=0.8 * model.scales, amplitude=1.5 * model.amplitude))
    )


def _rescaled(model: FittedSurrogate) -> DensePosterior:
    assert isinstance(model, DensePosterior)
    data = Data(model.data.x, 10.0 * model.data.y + 3.0, model.data.noise)
    return replace(
        model,
        observations=data,
        amplitude=100.0 * model.amplitude,
        noise=100.0 * model.noise,
        level=10.0 * model.level + 3.0,
    )
