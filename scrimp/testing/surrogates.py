"""What every surrogate with a variance must satisfy, as tests an author inherits with one fixture.

class TestExactGP(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP.over(columns)
"""

import json

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate, Surrogate
from scrimp.testing.kernels import close, numerical_gradient, rows

__all__ = ["SurrogateBattery"]


class SurrogateBattery:
    """Shapes, consistency between the ways to ask, growth, fantasies, recorded states and
    gradients."""

    @pytest.fixture
    def columns(self) -> tuple[Column, ...]:
        """The columns of the inputs."""
        return (Column(), Column(), Column((0.0, 0.5, 1.0), ordered=False))

    @pytest.fixture
    def surrogate(self, columns: tuple[Column, ...]) -> Surrogate:
        """The model under test: the one fixture an author writes."""
        raise NotImplementedError(
            "write a fixture `surrogate` that returns your model over `columns`"
        )

    @pytest.fixture
    def everything(self, columns: tuple[Column, ...]) -> Data:
        """Observations of a smooth positive function with known noise variances."""
        rng = np.random.default_rng(4)
        x = rows(columns, 24, rng)
        noise = rng.uniform(1e-4, 1e-2, len(x))
        y = np.exp(np.sin(3.0 * x[:, 0]) + x[:, 1] ** 2 - 0.5 * x[:, -1]) + np.sqrt(
            noise
        ) * rng.standard_normal(len(x))
        return Data(x, y, noise)

    @pytest.fixture
    def data(self, everything: Data) -> Data:
        """The first 20 observations."""
        return _part(everything, slice(0, 20))

    @pytest.fixture
    def fitted(self, surrogate: Surrogate, data: Data) -> FittedSurrogate:
        """The model fitted to them."""
        return surrogate.fit(data, np.random.default_rng(0))

    @pytest.fixture
    def new(self, fitted: FittedSurrogate, everything: Data) -> Data:
        """Four further observations, in model units."""
        return fitted.model_units(_part(everything, slice(20, 24)))

    @pytest.fixture
    def x(self, columns: tuple[Column, ...]) -> Array:
        """Inputs to ask about."""
        return rows(columns, 7, np.random.default_rng(9))

    def test_shapes_and_the_ways_to_ask_agree(self, fitted: FittedSurrogate, x: Array) -> None:
        posterior = fitted.posterior(x, joint=True)
        pulled = fitted.posterior_and_pullback(x)[0]
        assert posterior.mean.shape == (7, 1)
        assert (
            posterior.variance is not None
            and pulled.variance is not None
            and posterior.covariance is not None
        )
        assert posterior.variance.shape == (7,) and (posterior.variance >= 0.0).all()
        close(posterior.covariance.diagonal(), posterior.variance, 1e-8)
        assert np.linalg.eigvalsh(posterior.covariance).min() > -1e-8 * posterior.variance.max()
        close(pulled.mean, posterior.mean, 1e-8)
        close(pulled.variance, posterior.variance, 1e-8)
        close(fitted.mean(x), posterior.mean, 1e-8)

    def test_rows_do_not_depend_on_each_other(self, fitted: FittedSurrogate, x: Array) -> None:
        whole, alone = fitted.posterior(x), fitted.posterior(x[2:3])
        assert whole.variance is not None and alone.variance is not None
        close(whole.mean[2:3], alone.mean, 1e-9)
        close(whole.variance[2:3], alone.variance, 1e-9)

    def test_pullback(self, fitted: FittedSurrogate, x: Array, columns: tuple[Column, ...]) -> None:
        rng = np.random.default_rng(1)
        d_mean, d_variance = rng.standard_normal((7, 1)), rng.standard_normal(7)

        def total(z: Array) -> float:
            posterior = fitted.posterior(z)
            assert posterior.variance is not None
            return float((d_mean * posterior.mean).sum() + d_variance @ posterior.variance)

        gradient = fitted.posterior_and_pullback(x)[1](d_mean, d_variance)
        ordered = [column.ordered for column in columns]
        close(gradient[:, ordered], numerical_gradient(total, x)[:, ordered])

    def test_data_come_in_by_model_units_and_go_out_by_target_units(
        self, fitted: FittedSurrogate, data: Data
    ) -> None:
        close(fitted.model_units(data).y, fitted.data.y, 1e-9)
        close(fitted.target_units(fitted.data.y), data.y, 1e-6)
        assert (np.argsort(data.y) == np.argsort(fitted.data.y)).all()

    def test_slopes_of_target_units_are_derivatives(self, fitted: FittedSurrogate) -> None:
        values = np.linspace(fitted.data.y.min(), fitted.data.y.max(), 9)[1:-1]
        around = [fitted.target_units(values + step) for step in (-1e-6, 1e-6)]
        close(fitted.target_slope(values), (around[1] - around[0]) / 2e-6, 1e-3)

    def test_length_scales_and_noise_are_said_or_left_open(
        self, fitted: FittedSurrogate, data: Data
    ) -> None:
        scales = fitted.length_scales
        assert scales.shape == (data.x.shape[1],) and not (scales <= 0.0).any()
        assert fitted.noise_variance >= 0.0

    def test_state_is_json_and_restores_the_model(
        self, surrogate: Surrogate, fitted: FittedSurrogate, data: Data, x: Array
    ) -> None:
        restored = surrogate.restore(data, json.loads(json.dumps(fitted.state)))
        _same(restored, fitted, x, 1e-9)
        assert restored.state == fitted.state

    def test_growing_equals_restoring_with_all_data(
        self, surrogate: Surrogate, fitted: FittedSurrogate, everything: Data, new: Data, x: Array
    ) -> None:
        grown, whole = fitted.condition(new), surrogate.restore(everything, fitted.state)
        close(grown.data.y, whole.data.y, 1e-9)
        _same(grown, whole, x, 1e-7)

    def test_conditioning_once_or_twice_is_the_same(
        self, fitted: FittedSurrogate, new: Data, x: Array
    ) -> None:
        twice = fitted.condition(_part(new, slice(0, 1))).condition(_part(new, slice(1, 4)))
        _same(fitted.condition(new), twice, x, 1e-8)

    def test_fantasies_are_columns(self, fitted: FittedSurrogate, new: Data, x: Array) -> None:
        targets = np.stack([new.y, new.y + 0.5, new.y - 1.0], axis=1)
        together = fitted.condition(Data(new.x, targets, new.noise))
        mean = together.posterior(x).mean
        assert mean.shape == (7, 3) and together.data.y.shape == (24, 3)
        for column in range(3):
            alone = fitted.condition(Data(new.x, targets[:, column], new.noise))
            close(mean[:, column], alone.posterior(x).mean[:, 0], 1e-9)
            close(
                together.posterior_and_pullback(x)[0].mean[:, column],
                alone.posterior(x).mean[:, 0],
                1e-8,
            )

    def test_same_generator_same_fit_and_a_recorded_start_is_accepted(
        self, surrogate: Surrogate, fitted: FittedSurrogate, data: Data
    ) -> None:
        assert surrogate.fit(data, np.random.default_rng(0)).state == fitted.state
        surrogate.fit(data, np.random.default_rng(0), fitted.state)

    def test_joint_draws_have_the_posterior_moments(
        self, fitted: FittedSurrogate, x: Array
    ) -> None:
        draws = fitted.sample(x, 20_000, np.random.default_rng(3))
        posterior = fitted.posterior(x, joint=True)
        assert posterior.variance is not None and posterior.covariance is not None
        scale = np.sqrt(posterior.variance)
        # 20,000 draws: standard errors 0.007 of a mean and at most 0.01 of a correlation; five of
        # them allowed
        assert (np.abs(draws.mean(0) - posterior.mean[:, 0]) < 0.036 * scale).all()
        assert (
            np.abs(np.cov(draws.T) - posterior.covariance) < 0.06 * np.outer(scale, scale)
        ).all()

    def test_members_are_models_of_the_same_data(self, fitted: FittedSurrogate, x: Array) -> None:
        means = [member.posterior(x).mean for member in fitted.members]
        close(np.asarray(np.mean(means, axis=0)), fitted.posterior(x).mean, 1e-9)
        assert all(np.array_equal(member.data.y, fitted.data.y) for member in fitted.members)


def _part(data: Data, chosen: slice) -> Data:
    return Data(data.x[chosen], data.y[chosen], None if data.noise is None else data.noise[chosen])


def _same(one: FittedSurrogate, other: FittedSurrogate, x: Array, tolerance: float) -> None:
    """The same posterior at x."""
    first, second = one.posterior(x), other.posterior(x)
    assert first.variance is not None and second.variance is not None
    close(first.mean, second.mean, tolerance)
    close(first.variance, second.variance, tolerance)
