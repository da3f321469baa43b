"""What holds for every library that boosts, on the real one: a battery for its callback."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import scrimp
from scrimp.errors import BrokenObjective, ReportError, StorageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(float)


class BoosterBattery(ABC):
    """``metric`` is what the library calls its loss; ``file`` is spoilt by ``spoil`` when a trial
    goes on from ``spoilt_at``, and the failure then says ``unreadable``."""

    callback: ClassVar[Callable[..., Any]]
    metric: ClassVar[str]
    file: ClassVar[str]
    unreadable: ClassVar[str]
    spoilt_at: ClassVar[int] = 1
    trials_until_spoilt: ClassVar[int] = 5

    @abstractmethod
    def boost(self, rate: float, callback: Any = None, rounds: int = 0) -> list[float]:
        """Train on `X` and `Y`, through a callback or for so many rounds; the loss after each."""

    def spoil(self, path: Path) -> None:
        path.write_bytes(b"{nothing")

    def objective(self, trial: scrimp.LiveTrial) -> None:
        self.boost(trial.params["rate"], type(self).callback({"loss": self.metric}, trial))

    def test_a_paused_trial_goes_on_boosting_as_if_it_had_not_stopped(
        self, paused_study: scrimp.Study
    ) -> None:
        paused_study.optimize(self.objective, n_trials=5)
        longest = max(paused_study.trials, key=lambda trial: trial.budget)
        assert longest.attempt > 1 and longest.budget in (3, 9)
        assert [point.step for point in longest.curve] == list(range(1, int(longest.budget) + 1))
        alone = self.boost(longest.config["rate"], rounds=int(longest.budget))
        assert [point.metrics["loss"] for point in longest.curve] == pytest.approx(alone, abs=1e-5)

    def test_every_so_many_rounds_and_the_last_are_reported(
        self, paused_study: scrimp.Study
    ) -> None:
        def sparse(trial: scrimp.LiveTrial) -> None:
            callback = type(self).callback({"loss": self.metric}, trial, every=2)
            self.boost(trial.params["rate"], callback)

        paused_study.optimize(sparse, n_trials=5)
        longest = max(paused_study.trials, key=lambda trial: trial.budget)
        steps = [point.step for point in longest.curve]
        assert steps == [1, 2, 3, 4, 6, 8, 9][: len(longest.curve)]
        assert longest.budget in (3, 9)

    def test_a_metric_that_is_not_measured_is_named_with_those_that_are(
        self, paused_study: scrimp.Study
    ) -> None:
        def wrong(trial: scrimp.LiveTrial) -> None:
            self.boost(0.3, type(self).callback(self.metric[:-1], trial))

        with pytest.raises(BrokenObjective) as caught:
            paused_study.optimize(wrong, n_trials=3)
        assert f"reported no '{self.metric}"[:-1] in caught.value.details
        assert f"did you mean '{self.metric}'?" in caught.value.details

    def test_outside_a_trial(self) -> None:
        with pytest.raises(ReportError, match="outside a trial: pass it the trial"):
            type(self).callback(self.metric)

    def test_a_checkpoint_that_cannot_be_read_is_named(self, paused_study: scrimp.Study) -> None:
        def spoilt(trial: scrimp.LiveTrial) -> None:
            if trial.resumed and trial.step == self.spoilt_at:
                self.spoil(trial.checkpoint_dir / self.file)
            self.objective(trial)

        paused_study.optimize(spoilt, n_trials=self.trials_until_spoilt, catch=(StorageError,))
        failed = [trial for trial in paused_study.trials if trial.status == "failed"]
        assert failed
        for trial in failed:
            assert f"the checkpoint of step {self.spoilt_at} at" in trial.message
            assert f"cannot be read: {self.unreadable}" in trial.message
