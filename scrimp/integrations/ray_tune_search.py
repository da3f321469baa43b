"""The searcher of Ray Tune that asks a study of scrimp (`scrimp.integrations.ray_tune`).

Ray asks the searcher for new configurations and the scheduler for the next trial to run; a study
answers both with one decision. So a decision waits here until Ray asks for its kind: a new
configuration in ``_fresh``, a paused trial that is to go on in ``_due``.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

try:
    from ray.tune.search import Searcher
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpSearch needs {error.name}, not installed here; pip install 'scrimp[ray-tune]'"
    ) from None

from scrimp.errors import ReportError, SpaceError, StudyError
from scrimp.history.problem import Budget
from scrimp.history.trial import Trial
from scrimp.integrations.ray_tune_space import nested, space_of_ray
from scrimp.policies.policy import Finish, Wait
from scrimp.space.space import Space
from scrimp.storage.event_json import decode_text, encode
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning.foreign_loop import end_early, limit_totals, may_go_on, next_trial
from scrimp.tuning.studies import create_study, load_study
from scrimp.tuning.study import Study

__all__ = ["Result", "ScrimpSearch", "Verdict"]

Result = Mapping[str, object]
Verdict = Literal["go on", "pause", "stop"]
"""What is to become of a trial after a result."""

ENDLESS = 10**9
"""From so many samples on, Ray means that there is no limit (``num_samples=-1``)."""


class ScrimpSearch(Searcher):  # type: ignore[misc]
    """Asks ``method`` of scrimp what to try; ``space`` is a `scrimp.Space`, left out where the Tuner
    has a ``param_space``. With a ``budget`` a `ScrimpScheduler` belongs beside it;
    ``total_budget`` is how much of it all trials together may use."""

    def __init__(  # noqa: PLR0913 - the front door, with Ray's names
        self,
        method: str = "auto",
        *,
        space: Space | None = None,
        metric: str | None = None,
        mode: str | None = None,
        budget: Budget | None = None,
        total_budget: float | None = None,
        storage: str = "memory://",
        study_name: str = "ray-tune",
        seed: int | None = None,
    ) -> None:
        super().__init__(metric=metric, mode=mode)
        self._metric, self._mode = metric, mode
        self._method, self._space, self._budget = method, space, budget
        self._storage, self._name, self._seed = storage, study_name, seed
        self._total_budget, self._total, self._most = total_budget, ENDLESS, ENDLESS
        self._study: Study | None = None
        self._open: dict[str, int] = {}  # Ray's name of a trial -> ours
        self._fresh: list[int] = []  # of ours, new: Ray has not asked for them yet
        self._due: list[str] = []  # of Ray's, paused: they are to go on
        self._again: set[str] = set()  # of Ray's: they begin once more, behind where they stood
        self._nothing: tuple[int, Wait | Finish] | None = None  # said at this length of the log
        self.scheduled = False
        if space is not None and metric is not None:
            self._begin(space)

    @property
    def study(self) -> Study:
        """The study behind the experiment."""
        if self._study is None:
            raise StudyError(
                "the study has not begun: give metric and mode to TuneConfig, and param_space to the"
                " Tuner, or all of them to ScrimpSearch"
            )
        return self._study

    def set_search_properties(
        self, metric: str | None, mode: str | None, config: dict[str, object], **spec: object
    ) -> bool:
        """Ray hands over what the Tuner was given; False where it was given here already."""
        given = self._study is not None
        if not given:
            self._metric, self._mode = metric or self._metric, mode or self._mode
            space = self._space if not config else space_of_ray(config)
            if space is None:
                raise SpaceError("there is nothing to search; give the Tuner a param_space")
            self._begin(space)
        samples = spec.get("num_samples")
        if isinstance(samples, int):
            self._limit(len(self.study.trials) + samples)
        return not given

    def set_max_concurrency(self, max_concurrent: int) -> bool:
        """How many may run at once: counted here, since paused ones do not count."""
        self._most = max_concurrent
        return True

    def suggest(self, trial_id: str) -> dict[str, object] | str | None:
        """The next configuration; nothing while the method waits for results, or goes on with a
        trial that is paused."""
        study = self.study
        if study.budget is not None and not self.scheduled:
            raise StudyError(
                "ScrimpSearch has a budget and no scheduler; give TuneConfig"
                " scheduler=ScrimpScheduler(search) too"
            )
        if not self._fresh and isinstance(self.take(), Finish):
            return str(Searcher.FINISHED)
        if not self._fresh:
            return None
        number = self._open[trial_id] = self._fresh.pop(0)
        return nested(study.trials[number].config)

    @property
    def busy(self) -> int:
        """How many trials run, or are about to."""
        trials = self.study.trials
        running = sum(trials[number].status == "running" for number in self._open.values())
        return running + len(self._fresh)

    def take(self) -> Trial | Wait | Finish:
        """Ask the study what a free worker should do; the trial waits here for Ray."""
        if self._due or self._fresh:
            return Wait("Ray has yet to take up what was decided")
        if self.busy >= self._most:
            return Wait("as many trials run as may")
        study = self.study
        if self._nothing is not None and self._nothing[0] == study.history.length:
            return self._nothing[1]
        self._check_paused()
        found = next_trial(study)
        if not isinstance(found, Trial):
            self._nothing = study.history.length, found
            return found
        name = next((name for name, number in self._open.items() if number == found.id), None)
        if name is None:
            self._fresh.append(found.id)
        else:
            self._due.append(name)
        return found

    def goes_on(self, trial_id: str) -> bool:
        """Whether a paused trial is to go on now; the answer is given once."""
        due = trial_id in self._due
        if due:
            self._due.remove(trial_id)
        return due

    def report(self, trial_id: str, result: Result) -> Verdict:
        """Tell a result on the way, and what is to become of the trial."""
        study, number = self.study, self._open.get(trial_id)
        if number is None or study.budget is None:
            return "go on"
        trial = study.history.trial(number)
        if trial.finished:
            return "stop"
        step = self._step(result)
        if trial_id in self._again and step <= trial.budget:
            return "go on"  # told already, before it was interrupted
        if step > trial.granted:
            raise ReportError(
                f"{study.budget.name} is {step:g}, and the trial was to pause at"
                f" {trial.granted:g}; report after every unit of the budget"
            )
        self._again.discard(trial_id)
        if study.report(number, step=step, **{study.metric: self._value(result)}):
            return "go on"
        paused = study.history.trial(number).status == "paused" and may_go_on(study, number)
        if not paused:
            del self._open[trial_id]
        return "pause" if paused else "stop"

    def begins_again(self, trial_id: str) -> bool:
        """Note that Ray begins a trial once more, from a checkpoint or from scratch: results up to
        where it stood are no news. False when it is to stay paused."""
        number = self._open.get(trial_id)
        if number is None:
            return True
        self._again.add(trial_id)
        return self.study.history.trial(number).status != "paused"

    def on_trial_complete(
        self, trial_id: str, result: Result | None = None, error: bool = False
    ) -> None:
        """Ray says that a trial ended: by itself, with an error, or paused, when all is done."""
        number = self._open.pop(trial_id, None)
        if number is None or self.study.history.trial(number).status != "running":
            return
        if error or result is None:
            self.study.tell(number, state="failed", message="Ray Tune reports an error")
            return
        try:
            value = self._value(result)
        except ReportError as wrong:
            self.study.tell(number, state="failed", message=str(wrong))
            raise
        if self._budget is None:
            self.study.tell(number, value)
        else:
            self._end_early(number, result, value)

    def _end_early(self, number: int, result: Result, value: float) -> None:
        """The trainable ended by itself, or Ray's ``stop`` ended it, which nobody told the
        scheduler."""
        study, step = self.study, self._step(result)
        trial = study.history.trial(number)
        if trial.budget < step <= trial.granted:
            study.report(number, step=step, **{study.metric: value})
        if not study.history.trial(number).finished:
            end_early(study, number, "the trainable ended by itself before its grant")

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        """Results on the way go through the scheduler."""

    def save(self, checkpoint_path: str) -> None:
        """Ray keeps the searcher with the experiment: the log of the study, and which trial is
        which."""
        lines = [] if self._study is None else encode(self._study.history.events)
        record = {
            "open": self._open,
            "fresh": self._fresh,
            "total": self._total,
            "metric": self._metric,
            "mode": self._mode,
            "log": "\n".join(lines),
        }
        Path(checkpoint_path).write_text(json.dumps(record), encoding="utf-8")

    def restore(self, checkpoint_path: str) -> None:
        """Go on with an experiment that Ray restores; a study in a storage is opened there."""
        record = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        self._open, self._fresh = dict(record["open"]), list(record.get("fresh", []))
        self._metric, self._mode = record["metric"], record["mode"]
        if self._storage != "memory://":
            self._study = load_study(self._name, storage=self._storage)
        elif record["log"]:
            place = MemoryStorage()
            place.create(self._name, decode_text(record["log"], self._name))
            self._study = load_study(self._name, storage=place)
        if self._study is not None:
            self._limit(record.get("total", ENDLESS))

    def _begin(self, space: Space) -> None:
        if self._mode not in ("min", "max"):
            raise StudyError(f"mode is {self._mode!r}; give TuneConfig mode='min' or mode='max'")
        if not isinstance(self._metric, str):
            raise StudyError(
                f"metric is {self._metric!r}; give TuneConfig the name of what the trainable reports"
            )
        self._study = create_study(
            self._name,
            space,
            metric=self._metric,
            direction="minimize" if self._mode == "min" else "maximize",
            budget=self._budget,
            method=self._method,
            storage=self._storage,
            load_if_exists=True,
            seed=self._seed,
        )

    def _limit(self, total: int) -> None:
        self._total = total
        limit_totals(self.study, None if total >= ENDLESS else total, self._total_budget)

    def _check_paused(self) -> None:
        """Refuse a study with paused trials of which this experiment has no checkpoints."""
        study, ours = self.study, set(self._open.values())
        strangers = [trial.id for trial in study.history.with_status("paused")]
        strangers = [number for number in strangers if number not in ours]
        if any(may_go_on(study, number) for number in strangers):
            raise StudyError(
                f"study {study.name!r} has paused trials of another experiment (trial"
                f" {strangers[0]}, for one), and this one has no checkpoints of them; restore that"
                " experiment with Tuner.restore, or give ScrimpSearch another study_name"
            )

    def _step(self, result: Result) -> float:
        budget = self.study.budget
        assert budget is not None
        step = result.get(budget.name)
        if not isinstance(step, int | float):
            raise ReportError(
                f"the result has no {budget.name!r}, the budget of ScrimpSearch; it has"
                f" {', '.join(result)}"
            )
        return float(step)

    def _value(self, result: Result) -> float:
        value = result.get(self.study.metric)
        if not isinstance(value, int | float):
            raise ReportError(
                f"the result has no number {self.study.metric!r}; it has {', '.join(result)}"
            )
        return float(value)
