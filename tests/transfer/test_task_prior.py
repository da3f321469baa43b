"""The task prior: blocks, pullbacks, and evidence against dense algebra and numerical
integration."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.past import SourceModels
from scrimp.transfer.task_prior import TaskBasis, components, log_evidences


@pytest.fixture
def basis(sources: SourceModels, columns: tuple[Column, ...]) -> TaskBasis:
    residual = Matern52(columns).with_values(np.array([0.5, 0.8, 1.0]))
    return TaskBasis(
        sources, residual, Matern52(columns).with_values(np.array([0.3, 0.3, 2.0])), 0.4
    )


@pytest.fixture
def x() -> Array:
    rng = np.random.default_rng(11)
    x = rng.uniform(0.1, 0.9, (6, 3))
    x[:, 2] = rng.choice([0.0, 0.5, 1.0], 6)
    return x


def test_blocks_are_what_they_say(basis: TaskBasis, x: Array) -> None:
    means = basis.sources.means(x)
    average = means.mean(axis=1)
    differences = means - average[:, None]
    cross, variance = basis.blocks(x, x[:4])
    assert cross[0] == pytest.approx(differences @ differences[:4].T / 4)
    assert cross[1] == pytest.approx(np.outer(average, average[:4]))
    assert cross[2] == pytest.approx(basis.residual(x, x[:4])) and cross[3] == pytest.approx(
        basis.cold(x, x[:4])
    )
    whole, _ = basis.blocks(x, x)
    assert variance == pytest.approx(np.stack([block.diagonal() for block in whole]))


def test_pullback(basis: TaskBasis, x: Array) -> None:
    rng = np.random.default_rng(0)
    other = x[::-1][:4] + 0.01
    dm, d_cross, d_variance = (
        rng.standard_normal(6),
        rng.standard_normal((4, 6, 4)),
        rng.standard_normal((4, 6)),
    )
    average, (cross, variance), pull = basis.blocks_and_pullback(x, other)
    again = basis.blocks(x, other)
    assert average == pytest.approx(basis.directions(x)[0])
    assert cross == pytest.approx(again[0]) and variance == pytest.approx(again[1])
    gradient = pull(dm, d_cross, d_variance)

    def total(z: Array) -> Array:
        blocks, diagonal = basis.blocks(z, other)
        return (
            basis.directions(z)[0] * dm
            + (blocks * d_cross).sum(axis=(0, 2))
            + (diagonal * d_variance).sum(axis=0)
        )

    for column in (0, 1):
        step = np.zeros(3)
        step[column] = 1e-5
        numerical = (total(x + step) - total(x - step)) / 2e-5
        assert gradient[:, column] == pytest.approx(numerical, rel=1e-4, abs=1e-5)


def test_the_grid_of_components(basis: TaskBasis) -> None:
    grid = components(0.4)
    assert len(grid) == 24 == len(set(grid))
    blocks = np.stack([value * np.ones((2, 2)) for value in (1.0, 10.0, 100.0, 1000.0)])
    with_mean = next(
        b for b in grid if b.gain == 1 and b.parts[0] == 0.8 and b.noise == pytest.approx(0.2 * 0.4)
    )
    assert with_mean.covariance(blocks) == pytest.approx(0.8 + 0.2 * 0.4 * 100.0 + 0.08 * np.eye(2))
    without = next(b for b in grid if b.gain == 0 and b.parts[0] == 0.8 and b.noise == 0.2)
    assert without.covariance(blocks) == pytest.approx(0.8 * 11.0 + 0.2 * 100.0 + 0.2 * np.eye(2))


def _log_density(c: float, y: Array, m: Array, sigma: Array, size: float, gain: float) -> float:
    """log of p(c y | offset flat) dc y / dy and of the density of c, up to constants, with the
    offset integrated densely."""
    count = len(y)
    wide = sigma + 1e7  # a flat offset
    residual = c * y - gain * m
    quadratic = residual @ np.linalg.solve(wide, residual)
    log_gaussian = -0.5 * quadratic - 0.5 * np.linalg.slogdet(wide)[1] + 0.5 * np.log(1e7)
    return float(log_gaussian + count * np.log(c) - 0.5 * c**2 / size**2)


@pytest.mark.parametrize("gain", [0.0, 1.0])
def test_scale_and_evidence_against_dense_algebra(basis: TaskBasis, x: Array, gain: float) -> None:
    """The closed form is the maximum over c of the density with the offset integrated out, and its
    value there."""
    rng = np.random.default_rng(1)
    y = rng.standard_normal(6)
    y = (y - y.mean()) / y.std()
    average, _ = basis.directions(x)
    component = replace(components(0.4)[5], gain=gain)
    sigma = component.covariance(basis.blocks(x, x)[0])
    (value,), (scale,) = log_evidences(sigma[None], [gain], y, average, 0.7)
    # the closed form counts n - 1 + k0 = n factors of c
    grid = np.linspace(0.5 * scale, 1.5 * scale, 2001)
    dense = [_log_density(c, y, average, sigma, 0.7, gain) for c in grid]
    assert grid[int(np.argmax(dense))] == pytest.approx(scale, rel=2e-3)
    assert value == pytest.approx(max(dense), abs=1e-3)


def test_the_scale_is_positive_even_when_the_past_is_upside_down(
    basis: TaskBasis, x: Array
) -> None:
    average, _ = basis.directions(x)
    y = -(average - average.mean()) / average.std()
    sigmas = np.stack(
        [component.covariance(basis.blocks(x, x)[0]) for component in components(0.4)]
    )
    gains = [component.gain for component in components(0.4)]
    value, scale = log_evidences(sigmas, gains, y, average, 0.7)
    assert (scale > 0).all()
    with_mean = np.array(gains) == 1.0
    assert (
        value[~with_mean].max() > value[with_mean].max() + 2.0
    )  # the mean is refused, the covariance is not
    agree, _ = log_evidences(sigmas, gains, -y, average, 0.7)
    assert agree[with_mean].max() > agree[~with_mean].max()


def test_equal_targets_are_no_trouble(basis: TaskBasis, x: Array) -> None:
    sigma = components(0.4)[0].covariance(basis.blocks(x, x)[0])
    value, scale = log_evidences(sigma[None], [0.0], np.zeros(6), basis.directions(x)[0], 0.7)
    assert np.isfinite(value).all() and np.isfinite(scale).all()
