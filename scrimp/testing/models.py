"""The batteries for models: kernels, surrogates and steps of target transforms.

    class TestMatern32(KernelBattery):
        @pytest.fixture
        def kernel(self, columns):
            return Matern32(columns)

The ``columns`` of kernels are two continuous ones, one discrete and one categorical. Override that
fixture for a kernel over other columns, and ``x`` where rows drawn from the columns do not suit it.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.kernel import Array, Kernel, OnColumns, Scaled
from scrimp.gp.stationary import RBF
from scrimp.surrogates.surrogate import Data, FittedSurrogate, Surrogate
from scrimp.surrogates.target_steps import TargetStep


def rows(columns: Sequence[Column], count: int, rng: np.random.Generator) -> Array:
    """Return random inputs (count, d): allowed values of columns, inner ones if continuous."""
    drawn = [
        rng.uniform(0.05, 0.95, count)
        if column.values is None
        else rng.choice(np.array(column.values), count)
        for column in columns
    ]
    return np.stack(drawn, axis=1)


def numerical_gradient(
    function: Callable[[Array], float], point: Array, step: float = 1e-4
) -> Array:
    """Return central differences of fourth order; steps are relative to entries below 1."""
    gradient = np.empty(point.shape)
    for index in np.ndindex(point.shape):
        length = step * min(1.0, max(abs(float(point[index])), 1e-3))

        def at(multiple: float, index: tuple[int, ...] = index, length: float = length) -> float:
            moved = point.copy()
            moved[index] += multiple * length
            return function(moved)

        gradient[index] = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * length)
    return gradient


def close(actual: Array, expected: Array, tolerance: float = 1e-6) -> None:
    """Assert equality up to ``tolerance`` relative to the largest entry."""
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


class KernelBattery:
    """Tests for every kernel: symmetric, positive semi-definite, consistent, correct pullbacks."""

    @pytest.fixture
    def columns(self) -> tuple[Column, ...]:
        """The columns of the inputs."""
        discrete, categorical = Column((0.1, 0.35, 0.9)), Column((0.0, 0.5, 1.0), ordered=False)
        return (Column(), Column(), discrete, categorical)

    @pytest.fixture
    def kernel(self, columns: tuple[Column, ...]) -> Kernel:
        """The kernel under test: the one fixture an author writes."""
        raise NotImplementedError(
            "write a fixture `kernel` that returns your kernel over `columns`"
        )

    @pytest.fixture
    def rng(self) -> np.random.Generator:
        """The source of all test inputs."""
        return np.random.default_rng(20)

    @pytest.fixture
    def x(self, columns: tuple[Column, ...], rng: np.random.Generator) -> Array:
        """Inputs (12, d), one of them twice."""
        x = rows(columns, 12, rng)
        x[-1] = x[0]
        return x

    @pytest.fixture
    def drawn(self, kernel: Kernel, rng: np.random.Generator) -> Kernel:
        """The kernel with parameter values drawn around its starting values."""
        vector = ParameterVector(kernel.parameters)
        coordinates = vector.encode(vector.initial) + rng.uniform(-0.5, 0.5, vector.size)
        return kernel.with_values(np.clip(vector.decode(coordinates), vector.lower, vector.upper))

    def test_values_are_the_starting_values_and_can_be_replaced(
        self, kernel: Kernel, x: Array
    ) -> None:
        vector = ParameterVector(kernel.parameters)
        np.testing.assert_array_equal(kernel.values, vector.initial)
        moved = kernel.with_values(vector.initial * 1.25)
        np.testing.assert_array_equal(moved.values, vector.initial * 1.25)
        np.testing.assert_array_equal(kernel.values, vector.initial)
        assert tuple(moved.parameters) == tuple(kernel.parameters)

    def test_length_scales_are_one_per_column_or_left_open(
        self, drawn: Kernel, columns: tuple[Column, ...]
    ) -> None:
        scales = drawn.length_scales(len(columns))
        assert scales.shape == (len(columns),) and not (scales <= 0.0).any()
        unseen = OnColumns(drawn, tuple(range(len(columns)))).length_scales(len(columns) + 1)
        np.testing.assert_array_equal(unseen, np.append(scales, np.inf))

    def test_symmetric(self, drawn: Kernel, x: Array) -> None:
        turned = drawn(x[5:], x[:5]).T
        np.testing.assert_allclose(drawn(x[:5], x[5:]), turned, rtol=1e-9, atol=1e-12)

    def test_positive_semi_definite(self, drawn: Kernel, x: Array) -> None:
        eigenvalues = np.linalg.eigvalsh(drawn(x, x))
        assert eigenvalues.min() > -1e-9 * eigenvalues.max()

    def test_diagonal_is_that_of_the_matrix(self, drawn: Kernel, x: Array) -> None:
        np.testing.assert_allclose(drawn.diagonal(x), drawn(x, x.copy()).diagonal(), rtol=1e-9)

    def test_every_way_gives_the_same_covariances(self, drawn: Kernel, x: Array) -> None:
        expected = drawn(x, x.copy())
        close(drawn.value_and_pullback(x)[0], expected, 1e-12)
        close(drawn.value_and_pullbacks(x)[0], expected, 1e-12)
        close(drawn.cross_and_pullback(x, x.copy())[0], expected, 1e-12)
        np.testing.assert_allclose(drawn.diagonal_and_pullback(x)[0], drawn.diagonal(x), rtol=1e-12)

    def test_matrices_belong_to_the_caller(self, drawn: Kernel, x: Array) -> None:
        covariance, pull = drawn.value_and_pullback(x)
        weights = np.cos(np.arange(covariance.size)).reshape(covariance.shape)
        expected = pull(weights)
        again, pull_again = drawn.value_and_pullback(x)
        again[:] = np.nan
        np.testing.assert_array_equal(pull_again(weights), expected)

    def test_pullback_to_parameters(
        self, drawn: Kernel, x: Array, rng: np.random.Generator
    ) -> None:
        weights = rng.standard_normal((len(x), len(x)))
        expected = numerical_gradient(
            lambda v: float((weights * drawn.with_values(v)(x, x)).sum()), drawn.values
        )
        close(drawn.value_and_pullback(x)[1](weights), expected)

    def test_pullback_to_the_first_argument(
        self, drawn: Kernel, x: Array, columns: tuple[Column, ...], rng: np.random.Generator
    ) -> None:
        first, second = x[:4], x[4:]
        weights = rng.standard_normal((len(first), len(second)))
        gradient = drawn.cross_and_pullback(first, second)[1](weights)
        expected = numerical_gradient(lambda z: float((weights * drawn(z, second)).sum()), first)
        ordered = [column.ordered for column in columns]
        close(gradient[:, ordered], expected[:, ordered])
        assert (gradient[:, ~np.array(ordered)] == 0.0).all()

    def test_pullback_to_both_arguments(
        self, drawn: Kernel, x: Array, rng: np.random.Generator
    ) -> None:
        weights = rng.standard_normal((len(x), len(x)))
        d_values, d_x = drawn.value_and_pullbacks(x)[1](weights)
        plain = Kernel.value_and_pullbacks(drawn, x)[1](weights)
        close(d_values, plain[0], 1e-9)
        close(d_x, plain[1], 1e-9)

    def test_pullback_of_the_diagonal(
        self, drawn: Kernel, x: Array, columns: tuple[Column, ...]
    ) -> None:
        weights = np.sin(1.0 + np.arange(len(x)))
        gradient = drawn.diagonal_and_pullback(x)[1](weights)
        expected = numerical_gradient(lambda z: float(weights @ drawn.diagonal(z)), x)
        ordered = [column.ordered for column in columns]
        close(gradient[:, ordered], expected[:, ordered])

    def test_composes(
        self, drawn: Kernel, x: Array, columns: tuple[Column, ...], rng: np.random.Generator
    ) -> None:
        other = RBF(columns)
        weights = rng.standard_normal((len(x), len(x)))
        for composed, expected in (
            (drawn + other, drawn(x, x) + other(x, x)),
            (drawn * other, drawn(x, x) * other(x, x)),
            (Scaled(drawn, scale=2.0), 2.0 * drawn(x, x)),
        ):
            covariance, pull = composed.value_and_pullback(x)
            close(covariance, expected, 1e-12)
            assert len(ParameterVector(composed.parameters).initial) == len(composed.values)

            def total(values: Array, composed: Kernel = composed) -> float:
                return float((weights * composed.with_values(values)(x, x)).sum())

            close(pull(weights), numerical_gradient(total, composed.values))


class SurrogateBattery:
    """Tests for every surrogate with a variance: shapes, growth, fantasies, states, gradients."""

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
        return everything.select(np.arange(20))

    @pytest.fixture
    def fitted(self, surrogate: Surrogate, data: Data) -> FittedSurrogate:
        """The model fitted to them."""
        return surrogate.fit(data, np.random.default_rng(0))

    @pytest.fixture
    def new(self, fitted: FittedSurrogate, everything: Data) -> Data:
        """Four further observations, in model units."""
        return fitted.model_units(everything.select(np.arange(20, 24)))

    @pytest.fixture
    def x(self, columns: tuple[Column, ...]) -> Array:
        """The inputs to predict at."""
        return rows(columns, 7, np.random.default_rng(9))

    def test_shapes_and_the_ways_to_ask_agree(self, fitted: FittedSurrogate, x: Array) -> None:
        posterior = fitted.posterior(x, joint=True)
        pulled = fitted.posterior_and_pullback(x)[0]
        assert posterior.mean.shape == (7, 1)
        assert posterior.covariance is not None
        assert posterior.variance.shape == (7,) and (posterior.variance >= 0.0).all()
        close(posterior.covariance.diagonal(), posterior.variance, 1e-8)
        assert np.linalg.eigvalsh(posterior.covariance).min() > -1e-8 * posterior.variance.max()
        close(pulled.mean, posterior.mean, 1e-8)
        close(pulled.variance, posterior.variance, 1e-8)
        close(fitted.mean(x), posterior.mean, 1e-8)

    def test_no_rows_have_an_empty_posterior(self, fitted: FittedSurrogate, x: Array) -> None:
        """A search may have no discrete values to change."""
        nothing = fitted.posterior(x[:0])
        assert nothing.mean.shape == (0, 1) and nothing.variance.shape == (0,)

    def test_rows_do_not_depend_on_each_other(self, fitted: FittedSurrogate, x: Array) -> None:
        whole, alone = fitted.posterior(x), fitted.posterior(x[2:3])
        close(whole.mean[2:3], alone.mean, 1e-9)
        close(whole.variance[2:3], alone.variance, 1e-9)

    def test_pullback(self, fitted: FittedSurrogate, x: Array, columns: tuple[Column, ...]) -> None:
        rng = np.random.default_rng(1)
        d_mean, d_variance = rng.standard_normal((7, 1)), rng.standard_normal(7)

        def total(z: Array) -> float:
            posterior = fitted.posterior(z)
            return float((d_mean * posterior.mean).sum() + d_variance @ posterior.variance)

        gradient = fitted.posterior_and_pullback(x)[1](d_mean, d_variance)
        # A search moves along continuous columns only.
        free = [column.values is None for column in columns]
        close(gradient[:, free], numerical_gradient(total, x)[:, free])

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
        first, others = new.select(np.arange(1)), new.select(np.arange(1, 4))
        twice = fitted.condition(first).condition(others)
        _same(fitted.condition(new), twice, x, 1e-8)

    def test_fantasies_are_columns(self, fitted: FittedSurrogate, new: Data, x: Array) -> None:
        targets = np.stack([new.y, new.y + 0.5, new.y - 1.0], axis=1)
        together = fitted.condition(Data(new.x, targets, new.noise))
        mean = together.posterior(x).mean
        assert mean.shape == (7, 3) and together.data.y.shape == (24, 3)
        for column in range(3):
            alone = fitted.condition(Data(new.x, targets[:, column], new.noise))
            expected = alone.posterior(x).mean[:, 0]
            close(mean[:, column], expected, 1e-9)
            close(together.posterior_and_pullback(x)[0].mean[:, column], expected, 1e-8)

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
        assert posterior.covariance is not None
        scale = np.sqrt(posterior.variance)
        # 20,000 draws: the standard error of a mean is 0.007, of a correlation at most 0.01; five
        # standard errors are allowed.
        assert (np.abs(draws.mean(0) - posterior.mean[:, 0]) < 0.036 * scale).all()
        apart = np.abs(np.cov(draws.T) - posterior.covariance)
        assert (apart < 0.06 * np.outer(scale, scale)).all()

    def test_members_are_models_of_the_same_data(self, fitted: FittedSurrogate, x: Array) -> None:
        means = [member.posterior(x).mean for member in fitted.members]
        close(np.asarray(np.mean(means, axis=0)), fitted.posterior(x).mean, 1e-9)
        assert all(np.array_equal(member.data.y, fitted.data.y) for member in fitted.members)


def _same(one: FittedSurrogate, other: FittedSurrogate, x: Array, tolerance: float) -> None:
    first, second = one.posterior(x), other.posterior(x)
    close(first.mean, second.mean, tolerance)
    close(first.variance, second.variance, tolerance)


class TargetStepBattery(ABC):
    """Tests for steps: increasing, invertible, with the correct slope, restored from JSON."""

    @abstractmethod
    def step(self) -> TargetStep:
        """Return the step under test."""

    def targets(self) -> Array:
        """Return the targets to learn from: all different, none far from the others."""
        return np.random.default_rng(7).normal(2.0, 1.5, 40)

    def inside(self) -> Array:
        """Return targets between those that it was learned from."""
        ordered = np.sort(self.targets())
        return (ordered[1:] + ordered[:-1])[8:-8] / 2.0

    def test_the_order_of_targets_stays(self) -> None:
        learned, y = self.step().learn(self.targets()), self.targets()
        wide = np.linspace(y.min() - np.ptp(y), y.max() + np.ptp(y), 101)
        assert (np.diff(learned.forward(wide)) >= -1e-12).all()
        assert (np.diff(learned.forward(self.inside())) > 0.0).all()

    def test_backward_undoes_forward(self) -> None:
        """Check targets in the middle; at the ends a step may cap."""
        learned = self.step().learn(self.targets())
        close(learned.backward(learned.forward(self.inside())), self.inside(), 1e-7)

    def test_the_slope_is_the_derivative(self) -> None:
        learned, y = self.step().learn(self.targets()), self.inside()
        moved = (learned.forward(y + 1e-6) - learned.forward(y - 1e-6)) / 2e-6
        close(learned.slope(y), moved, 1e-4)

    def test_its_state_is_json_and_recalls_it(self) -> None:
        learned = self.step().learn(self.targets())
        recalled = self.step().recall(json.loads(json.dumps(dict(learned.state))))
        y = np.concatenate([self.targets(), [-50.0, 50.0]])
        np.testing.assert_array_equal(recalled.forward(y), learned.forward(y))
        assert dict(recalled.state) == dict(learned.state)

    @pytest.mark.parametrize("targets", [[3.0], [2.0, 2.0, 2.0], [0.0, 1e-300], [-1e200, 1e200]])
    def test_few_equal_or_extreme_targets_stay_finite(self, targets: list[float]) -> None:
        y = np.array(targets)
        assert np.isfinite(self.step().learn(y).forward(y)).all()

    def test_shapes_are_kept(self) -> None:
        learned, y = self.step().learn(self.targets()), self.inside()
        table = np.stack([y, y], axis=1)
        for function in (learned.forward, learned.slope, learned.backward):
            assert function(table).shape == table.shape
            np.testing.assert_array_equal(function(table)[:, 0], function(y))
