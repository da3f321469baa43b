"""The battery for steps that transform targets: say how to make yours, and inherit the tests.

class TestMyStep(TargetStepBattery):
    def step(self) -> TargetStep:
        return MyStep()
"""

import json
from abc import ABC, abstractmethod

import numpy as np
import pytest

from scrimp.surrogates.surrogate import Array
from scrimp.surrogates.target_transform import TargetStep
from scrimp.testing.kernels import close

__all__ = ["TargetStepBattery"]


class TargetStepBattery(ABC):
    """What every step must keep: it increases, leads back, knows its slope and outlives a
    process."""

    @abstractmethod
    def step(self) -> TargetStep:
        """The step under test."""

    def targets(self) -> Array:
        """What it is learned from: no two alike, none far from the others."""
        return np.random.default_rng(7).normal(2.0, 1.5, 40)

    def inside(self) -> Array:
        """Targets between those that it was learned from."""
        ordered = np.sort(self.targets())
        return (ordered[1:] + ordered[:-1])[8:-8] / 2.0

    def test_the_order_of_targets_stays(self) -> None:
        """Also beyond those that it was learned from."""
        learned, y = self.step().learn(self.targets()), self.targets()
        wide = np.linspace(y.min() - np.ptp(y), y.max() + np.ptp(y), 101)
        assert (np.diff(learned.forward(wide)) >= -1e-12).all()
        assert (np.diff(learned.forward(self.inside())) > 0.0).all()

    def test_backward_undoes_forward(self) -> None:
        """For targets in the middle; at the ends a step may cap."""
        learned = self.step().learn(self.targets())
        close(learned.backward(learned.forward(self.inside())), self.inside(), 1e-7)

    def test_the_slope_is_the_derivative(self) -> None:
        """By central differences."""
        learned, y = self.step().learn(self.targets()), self.inside()
        moved = (learned.forward(y + 1e-6) - learned.forward(y - 1e-6)) / 2e-6
        close(learned.slope(y), moved, 1e-4)

    def test_its_state_is_json_and_recalls_it(self) -> None:
        """So that a restored model has the same units."""
        learned = self.step().learn(self.targets())
        recalled = self.step().recall(json.loads(json.dumps(dict(learned.state))))
        y = np.concatenate([self.targets(), [-50.0, 50.0]])
        np.testing.assert_array_equal(recalled.forward(y), learned.forward(y))
        assert dict(recalled.state) == dict(learned.state)

    @pytest.mark.parametrize("targets", [[3.0], [2.0, 2.0, 2.0], [0.0, 1e-300], [-1e200, 1e200]])
    def test_few_equal_or_extreme_targets_stay_finite(self, targets: list[float]) -> None:
        """A study begins with one value, and may have a hundred that are the same."""
        y = np.array(targets)
        assert np.isfinite(self.step().learn(y).forward(y)).all()

    def test_shapes_are_kept(self) -> None:
        """Fantasies come as columns."""
        learned, y = self.step().learn(self.targets()), self.inside()
        table = np.stack([y, y], axis=1)
        for function in (learned.forward, learned.slope, learned.backward):
            assert function(table).shape == table.shape
            np.testing.assert_array_equal(function(table)[:, 0], function(y))
