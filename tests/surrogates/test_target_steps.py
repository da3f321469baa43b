"""Every step: increasing, invertible, recalled; and caps that never hide a limit."""

import json

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from scrimp.surrogates.target_steps import (
    CapDeviation,
    CapViolation,
    GaussianCopula,
    Standardise,
    TargetStep,
    Winsorise,
    YeoJohnson,
)
from scrimp.testing.models import TargetStepBattery

CLOSE = np.concatenate([np.linspace(-14.05, -13.95, 40), [14.0, 15.0]])


def test_few_violations_among_many_equal_distances_stay_violations() -> None:
    assert (
        Winsorise().learn(CLOSE).forward(CLOSE) < 0
    ).all()  # what the cap of losses would make of them
    np.testing.assert_allclose(CapViolation().learn(CLOSE).forward(CLOSE)[-2:], 14.3, atol=0.8)


def test_without_anything_far_out_the_cap_is_that_of_losses() -> None:
    y = np.random.default_rng(0).normal(0.0, 1.0, 30)
    assert CapViolation().learn(y).state == Winsorise().learn(y).state
    exploded = np.append(y, 1e30)
    assert CapViolation().learn(exploded).forward(exploded).max() < 20.0


def test_limits_themselves_are_never_capped() -> None:
    for y in (CLOSE[:-2], np.full(5, -3.0), np.zeros(0), np.array([np.nan, -1.0])):
        assert CapViolation().learn(y).forward(np.zeros(1)) == 0.0
        assert CapDeviation(50.0).learn(y).forward(np.array([-50.0, 50.0])).tolist() == [
            -50.0,
            50.0,
        ]


def test_deviations_are_held_on_both_sides() -> None:
    y = np.append(np.random.default_rng(0).normal(0.0, 1.0, 30), [-1e30, 1e30, np.nan])
    held = CapDeviation(0.1).learn(y).forward(y)
    np.testing.assert_array_equal(held[:30], y[:30])
    assert held[-3] == -held[-2] and 3 < held[-2] < 20 and held[-1] == held[-2]


@pytest.mark.parametrize("step", [CapViolation(), CapDeviation(0.1)])
def test_steps_are_recalled(step: CapViolation | CapDeviation) -> None:
    learned = step.learn(CLOSE)
    assert step.recall(json.loads(json.dumps(learned.state))) == learned
    assert (learned.slope(CLOSE) == 1.0).all() and (learned.backward(CLOSE) == CLOSE).all()


class TestCapViolation(TargetStepBattery):
    def step(self) -> TargetStep:
        return CapViolation()


class TestCapDeviation(TargetStepBattery):
    def step(self) -> TargetStep:
        return CapDeviation(0.5)


STEPS = [Standardise(), Winsorise(), GaussianCopula(), YeoJohnson()]


@pytest.mark.parametrize("step", STEPS)
def test_steps_are_increasing_invertible_and_recalled(step):
    y = np.random.default_rng(0).lognormal(0.0, 1.0, 60)
    learned = step.learn(y)
    grid = np.linspace(0.5 * y.min(), 1.5 * y.max(), 500)
    assert (np.diff(learned.forward(grid)) >= 0.0).all()
    unclipped = y[learned.forward(y) < learned.forward(y).max()]
    np.testing.assert_allclose(learned.backward(learned.forward(unclipped)), unclipped, rtol=1e-9)
    assert step.recall(json.loads(json.dumps(learned.state))) == learned


@pytest.mark.parametrize("step", [Standardise(), YeoJohnson(), GaussianCopula()])
def test_slopes_agree_with_differences(step):
    learned = step.learn(np.random.default_rng(0).lognormal(0.0, 1.0, 60))
    y = np.array([0.213, 0.977, 2.331, 5.519])
    numerical = (learned.forward(y + 1e-6) - learned.forward(y - 1e-6)) / 2e-6
    np.testing.assert_allclose(learned.slope(y), numerical, rtol=1e-6)


def test_standardise_constant_and_large_targets():
    for value in (0.0, 3.0, 1e12):
        learned = Standardise().learn(np.full(5, value))
        np.testing.assert_array_equal(learned.forward(np.full(5, value)), np.zeros(5))
    y = 1e9 + np.arange(5.0)
    assert Standardise().learn(y).forward(y).std() == pytest.approx(1.0)


def test_standardise_can_keep_zero_where_it_is():
    learned = Standardise(centred=False).learn(np.array([-2.0, 0.0, 4.0]))
    assert learned.forward(np.array([0.0]))[0] == 0.0 and learned.forward(np.array([-2.0]))[0] < 0.0


def test_winsorise_caps_what_diverged_and_keeps_the_rest():
    y = np.concatenate([np.linspace(0.0, 1.0, 21), [1e6, np.inf, np.nan, -np.inf]])
    z = Winsorise().learn(y).forward(y)
    np.testing.assert_array_equal(z[:21], y[:21])
    assert np.isfinite(z).all() and z[21:].max() < 5.0 and (z[21:] == z[21]).all()


def test_winsorise_never_touches_the_best_and_survives_degenerate_targets():
    good = np.array([-1e6, 0.0, 0.1, 0.2, 0.3])
    assert Winsorise().learn(good).forward(good)[0] == -1e6
    plateau = np.array([1.0] * 10 + [0.2, 0.9, 1e9])
    z = Winsorise().learn(plateau).forward(plateau)
    assert z[10] == 0.2 and z[11] == 0.9 and 1.0 < z[12] < 10.0
    for constant in (np.full(4, 2.0), np.array([np.nan, np.inf])):
        assert np.isfinite(Winsorise().learn(constant).forward(constant)).all()


def test_copula_gives_normal_scores_and_ties_share_theirs():
    y = np.array([5.0, 1.0, 1.0, 100.0, 7.0, 2.0])
    expected = norm.ppf((rankdata(y) - 0.5) / 6)
    np.testing.assert_allclose(GaussianCopula().learn(y).forward(y), expected, rtol=1e-10)
    assert GaussianCopula().learn(y).forward(np.array([0.5]))[0] < expected.min()
    constant = GaussianCopula().learn(np.full(3, 4.0))
    np.testing.assert_allclose(constant.forward(np.full(3, 4.0)), np.zeros(3), atol=1e-12)


def test_copula_keeps_a_bounded_number_of_knots_and_all_of_the_tail():
    y = np.random.default_rng(0).lognormal(0.0, 2.0, 3000)
    learned = GaussianCopula().learn(y)
    assert len(learned.state["values"]) <= 100
    expected = norm.ppf((rankdata(y) - 0.5) / 3000)
    assert np.abs(learned.forward(y) - expected).max() < 0.15
    assert learned.forward(y).min() == expected.min()


class TestStandardise(TargetStepBattery):
    def step(self) -> TargetStep:
        return Standardise()


class TestWinsorise(TargetStepBattery):
    def step(self) -> TargetStep:
        return Winsorise()


class TestGaussianCopula(TargetStepBattery):
    def step(self) -> TargetStep:
        return GaussianCopula()
