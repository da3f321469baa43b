"""Every formula against an independent value or optimiser, and what a run records."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize, rosen

from scrimp.bench.formulas import FORMULAS, Formula, Recorder, speed_data

SMOOTH = ["branin", "hartmann3", "hartmann6", "levy4", "rosenbrock4", "styblinski-tang5"]


def config(formula: Formula, point: np.ndarray) -> dict[str, float]:
    return {parameter["name"]: float(x) for parameter, x in zip(formula.space, point, strict=True)}


def box(formula: Formula) -> tuple[np.ndarray, np.ndarray]:
    return np.array([p["low"] for p in formula.space]), np.array([p["high"] for p in formula.space])


@pytest.mark.parametrize("name", SMOOTH)
def test_optimum_is_what_a_local_optimiser_finds_from_many_starts(name: str) -> None:
    formula = FORMULAS[name]
    low, high = box(formula)
    rng = np.random.default_rng(0)
    best = min(
        minimize(
            lambda x: formula.evaluate(config(formula, x)),
            low + (high - low) * rng.random(len(low)),
            bounds=list(zip(low, high, strict=True)),
        ).fun
        for _ in range(40)
    )
    assert formula.optimum - 1e-9 <= best <= formula.optimum + 1e-6


def test_known_values() -> None:
    assert FORMULAS["branin"].evaluate({"x1": 0.0, "x2": 0.0}) == pytest.approx(
        55.602112642270264, abs=1e-12
    )
    point = np.array([1.2, -0.7, 2.0, 0.3])
    assert FORMULAS["rosenbrock4"].evaluate(
        config(FORMULAS["rosenbrock4"], point)
    ) == pytest.approx(rosen(point))
    assert FORMULAS["ackley5"].evaluate(config(FORMULAS["ackley5"], np.zeros(5))) == pytest.approx(
        0.0, abs=1e-12
    )
    # One coordinate at 1: -20 exp(-0.2 sqrt(1/5)) - e + 20 + e, since every cosine is 1.
    one = config(FORMULAS["ackley5"], np.array([1.0, 0, 0, 0, 0]))
    assert FORMULAS["ackley5"].evaluate(one) == pytest.approx(
        20 - 20 * math.exp(-0.2 * math.sqrt(0.2))
    )
    best = np.array([0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054])
    assert FORMULAS["hartmann6"].evaluate(config(FORMULAS["hartmann6"], best)) == pytest.approx(
        -3.32236801, abs=1e-8
    )


def test_mixed_is_zero_at_its_optimum_and_positive_on_a_grid() -> None:
    formula = FORMULAS["mixed"]
    best = {
        "lr": 10**-2.5,
        "layers": 5,
        "width": 128,
        "dropout": 0.25,
        "optimizer": "adamw",
        "activation": "gelu",
    }
    assert formula.evaluate(best) == pytest.approx(0.0, abs=1e-12)
    grid = itertools.product(
        10.0 ** np.arange(-5, 0.5, 0.5),
        range(1, 9),
        [16, 128, 512],
        [0.0, 0.25, 0.8],
        ["adamw", "sgd"],
        ["gelu", "tanh"],
    )
    values = [formula.evaluate(dict(zip(best, row, strict=True))) for row in grid]
    assert min(values) >= 0.0 and sum(value < 1e-9 for value in values) == 1


def test_failing_fails_in_both_ways_and_its_minimum_does_not() -> None:
    formula = FORMULAS["failing"]
    with pytest.raises(FloatingPointError, match=r"x2 = 0\.9 is above 0\.65"):
        formula.evaluate({"x1": 0.1, "x2": 0.9, "x3": 0.5})
    assert math.isnan(formula.evaluate({"x1": 0.9, "x2": 0.1, "x3": 0.5}))
    best = {"x1": 0.11458887, "x2": 0.55564889, "x3": 0.85254699}
    assert formula.evaluate(best) == pytest.approx(formula.optimum, abs=1e-8)


def test_recorder_keeps_the_noise_free_best_and_none_before_a_success() -> None:
    recorder = Recorder(FORMULAS["failing"], seed=0)
    assert recorder.measure({"x1": 0.1, "x2": 0.9, "x3": 0.5}) is None
    assert recorder.measure({"x1": 0.9, "x2": 0.1, "x3": 0.5}) is None
    good = recorder.measure({"x1": 0.1, "x2": 0.5, "x3": 0.8})
    worse = recorder.measure({"x1": 0.7, "x2": 0.1, "x3": 0.1})
    assert good is not None and worse is not None and worse > good
    gap = good - FORMULAS["failing"].optimum
    assert recorder.regret == [None, None, pytest.approx(gap), pytest.approx(gap)]


def test_noise_depends_on_seed_and_place_only() -> None:
    formula, point = FORMULAS["noisy"], {f"x{k + 1}": 0.3 for k in range(6)}
    first, again, other = (Recorder(formula, seed) for seed in (1, 1, 2))
    told = [first.measure(point) for _ in range(400)]
    assert told[:5] == [again.measure(point) for _ in range(5)]
    assert told[0] != other.measure(point) and told[0] != told[1]
    noise = np.array(told, dtype=float) - formula.evaluate(point)
    assert noise.std() == pytest.approx(0.2, rel=0.15) and abs(noise.mean()) < 0.04
    assert len(set(first.regret)) == 1  # the regret is free of noise


def test_speed_data_grows_at_the_end() -> None:
    points, values = speed_data(5)
    more, further = speed_data(9)
    np.testing.assert_array_equal(points, more[:5])
    np.testing.assert_array_equal(values, further[:5])
    assert values[2] == FORMULAS["hartmann6"].evaluate(config(FORMULAS["hartmann6"], points[2]))
