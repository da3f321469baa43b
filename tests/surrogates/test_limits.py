"""Caps that never hide a limit."""

import json

import numpy as np
import pytest

from scrimp.surrogates.limits import CapDeviation, CapViolation
from scrimp.surrogates.target_transform import TargetStep, Winsorise
from scrimp.testing.target_steps import TargetStepBattery

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
