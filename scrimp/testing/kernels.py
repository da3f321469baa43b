"""What every kernel must satisfy, as tests an author inherits with one fixture.

    class TestMatern32(KernelBattery):
        @pytest.fixture
        def kernel(self, columns):
            return Matern32(columns)

``columns`` are two continuous ones, one discrete and one categorical; override that fixture for a
kernel over other columns, and ``x`` where rows drawn from the columns do not suit it.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.kernel import Array, Kernel, OnColumns, Scaled
from scrimp.gp.priors import ParameterVector
from scrimp.gp.stationary import RBF

__all__ = ["KernelBattery", "close", "numerical_gradient", "rows"]


def rows(columns: Sequence[Column], count: int, rng: np.random.Generator) -> Array:
    """Random inputs (count, d): allowed values of discrete and categorical columns, the inside of
    continuous ones."""
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
    """Central differences of fourth order, with steps relative to the size of each entry where that
    is below 1."""
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
    """Equal to ``tolerance`` relative to the largest entry."""
    scale = max(float(np.abs(expected).max(initial=0.0)), 1e-3)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


class KernelBattery:
    """Symmetric, positive semi-definite, consistent, with pullbacks that agree with finite
    differences."""

    @pytest.fixture
    def columns(self) -> tuple[Column, ...]:
        """The columns of the inputs."""
        return (
            Column(),
            Column(),
            Column((0.1, 0.35, 0.9)),
            Column((0.0, 0.5, 1.0), ordered=False),
        )

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
        np.testing.assert_allclose(
            drawn(x[:5], x[5:]), drawn(x[5:], x[:5]).T, rtol=1e-9, atol=1e-12
        )

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
