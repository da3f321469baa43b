"""A stand-in for the loop of Ray Tune, without actors: it asks a searcher and a scheduler in the order
of `ray.tune.execution.tune_controller`, and trains by counting."""

from dataclasses import dataclass, field
from pathlib import Path

from ray.tune.result import SHOULD_CHECKPOINT
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import ConcurrencyLimiter, Searcher
from ray.tune.trainable import wrap_function


def _nothing(config: dict[str, object]) -> None:
    del config


@dataclass(eq=False)
class LoopTrial:
    """A trial: the steps it has trained, all that it reported, and how often it was started."""

    trial_id: str
    config: dict[str, float]
    kind: type = field(default_factory=lambda: wrap_function(_nothing))
    status: str = "PENDING"
    checkpoint: int | None = None
    step: int = 0
    starts: int = 0
    reported: list[int] = field(default_factory=list)

    def set_status(self, status: str) -> None:
        self.status = status

    def get_trainable_cls(self) -> type:
        return self.kind


class RayLoop:
    """``most`` run at once; ``every`` so many steps a trial saves, 0 for never. A trial is done
    after nine steps."""

    def __init__(self, search: Searcher, scheduler: object, samples: int, **more: int) -> None:
        self.search, self.scheduler, self.samples = search, scheduler, samples
        self.slots, self.every = more.get("slots", 2), more.get("every", 1)
        self.kind: type = wrap_function(_nothing)
        limited = more.get("limited", True)
        self.asked = ConcurrencyLimiter(search, max_concurrent=self.slots) if limited else search
        self.asked.set_search_properties("loss", "min", {}, num_samples=samples)
        self.trials: list[LoopTrial] = []
        self.finished = False

    def get_trials(self) -> list[LoopTrial]:
        return self.trials

    def with_status(self, status: str) -> list[LoopTrial]:
        return [trial for trial in self.trials if trial.status == status]

    def stop_trial(self, trial: LoopTrial) -> None:
        running = trial.status == "RUNNING"
        self.asked.on_trial_complete(trial.trial_id, self.result(trial) if running else None)
        trial.status = "TERMINATED"

    def result(self, trial: LoopTrial) -> dict[str, object]:
        loss = trial.config["x"] + 1.0 / trial.step
        saved = bool(self.every) and trial.step % self.every == 0
        return {"loss": loss, "training_iteration": trial.step, SHOULD_CHECKPOINT: saved}

    def run(self, steps: int = 1000) -> "RayLoop":
        """Until Ray would end, or for so many rounds."""
        for _ in range(steps):
            if self.over:
                return self
            self.ask()
            chosen = self.scheduler.choose_trial_to_run(self)
            assert chosen is None or chosen.status in ("PENDING", "PAUSED")
            if chosen is not None:
                chosen.status = "PENDING"
            for trial in self.with_status("PENDING"):
                if len(self.with_status("RUNNING")) < self.slots:
                    self.start(trial)
            for trial in self.with_status("RUNNING")[:1]:  # one event a round, in turn
                self.train(trial)
                self.trials.append(self.trials.pop(self.trials.index(trial)))
        assert steps < 1000, "the loop does not end"
        return self

    @property
    def over(self) -> bool:
        all_ended = all(trial.status in ("TERMINATED", "ERROR") for trial in self.trials)
        return all_ended and (self.finished or len(self.trials) >= self.samples)

    def ask(self) -> None:
        while not self.finished and len(self.trials) < self.samples:
            if self.with_status("PENDING"):
                return
            name = f"t{len(self.trials)}"
            config = self.asked.suggest(name)
            self.finished = config == Searcher.FINISHED
            if config is None or self.finished:
                return
            trial = LoopTrial(name, config, self.kind)
            self.scheduler.on_trial_add(self, trial)
            self.trials.append(trial)

    def start(self, trial: LoopTrial) -> None:
        trial.status, trial.step = "RUNNING", trial.checkpoint or 0
        trial.starts += 1

    def train(self, trial: LoopTrial) -> None:
        trial.step += 1
        trial.reported.append(trial.step)
        result = self.result(trial)
        decision = self.scheduler.on_trial_result(self, trial, result)
        if result[SHOULD_CHECKPOINT]:
            trial.checkpoint = trial.step
        if decision == TrialScheduler.PAUSE:
            trial.status = "PAUSED"
        elif decision == TrialScheduler.STOP or trial.step == 9:
            self.stop_trial(trial)

    def crash(self, trial: LoopTrial) -> None:
        """Ray puts a trial that failed back into its queue."""
        trial.status = "PENDING"
        self.scheduler.on_trial_error(self, trial)
        self.scheduler.on_trial_add(self, trial)

    def restored(self, folder: Path, search: Searcher, scheduler: object) -> "RayLoop":
        """The same experiment after `Tuner.restore`: what had not ended waits to run."""
        self.search.save(str(folder / "state"))
        loop = RayLoop(search, scheduler, self.samples, slots=self.slots, every=self.every)
        search.restore(str(folder / "state"))
        for trial in self.trials:
            if trial.status != "TERMINATED":
                trial.status = "PENDING"
            scheduler.on_trial_add(loop, trial)
            loop.trials.append(trial)
        return loop
