"""Is the best configuration better than noise? Probabilities, and the runs that would settle it.

    verdict = study.verdict()
    print(verdict)
    verdict.noise, verdict.probability_better, verdict.runs_needed
    verdict = study.verdict(confirm=train)          # runs train(params, seed) until it is settled

The best configuration is compared with the *runner-up*, the configuration from which most could be
gained, and with the *default* (`contest` has the model). A noise that is only bounded by a model, or
that a few runs measured, never settles anything: one more run of both configurations does more.

Confirming runs go to the configuration whose next run has the largest expected gain, with the seed of a
run of the best, so that effects of a seed cancel.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import SupportsFloat

import numpy as np
from scipy.special import stdtrit

from scrimp.display.figures import config_words, number
from scrimp.errors import NumericalError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.json_values import Config, Json, JsonObject
from scrimp.study.contest import NUMBERS, SEED, UNMEASURED, Contest, Runs, contest_of
from scrimp.study.ledger import Ledger
from scrimp.study.telling import append_told
from scrimp.study_log.decision_record import FirstDesign, Queued, Told
from scrimp.study_log.events import BudgetGranted, Decided, Reported, TrialAdded, as_annotation
from scrimp.study_log.history import History
from scrimp.study_log.reports import as_metrics

Confirm = Callable[..., SupportsFloat | Mapping[str, SupportsFloat]]
"""Called as confirm(params, seed), or confirm(params) if it takes nothing else."""


@dataclass(frozen=True)
class Candidate:
    """A configuration with the first trial that ran it, the mean value of its ``runs``; for all but
    the best: by how much the best is expected to be better, the half-width of a 95 % interval, the
    probability of that, and the number of further runs of both that would settle it."""

    trial: int
    params: Config
    value: float
    runs: int
    behind: float = 0.0
    give_or_take: float = 0.0
    probability: float = 0.5
    runs_needed: int = 0

    @property
    def of_runs(self) -> str:
        """The number of runs as half a sentence; empty for one."""
        return "" if self.runs == 1 else f", mean of {self.runs} runs"


@dataclass(frozen=True)
class StudyVerdict:
    """The answer of `Study.verdict`; printed, it is a short text.

    ``noise``: the standard deviation of one run; ``noise_source``: where it comes from;
    ``noise_freedom``: its degrees of freedom, 0 if it was not measured.
    ``default``: the first configuration that a user queued or guessed, else the first one; None if it
    has no finished run or is the best; ``default_name`` says which. ``luckiest``: the configuration
    with the best value, if another one is expected to be better; None otherwise. ``confirmed``: runs
    that this verdict made. ``after``: the training at which values are compared, in words; empty
    without budgets. ``less_trained``: the best value of the study, in words, if its trial has too
    little training to be compared; empty otherwise.
    """

    study: str
    metric: str
    level: float
    noise: float
    noise_source: str
    noise_freedom: float
    best: Candidate
    runner_up: Candidate
    default: Candidate | None
    confirmed: int = 0
    after: str = ""
    default_name: str = "the first trial"
    luckiest: Candidate | None = None
    less_trained: str = ""

    @property
    def probability_better(self) -> float:
        """The probability that the best configuration is better than the runner-up."""
        return self.runner_up.probability

    @property
    def rivals(self) -> tuple[Candidate, ...]:
        """The configurations that the best is compared with."""
        if self.default is None or self.default.trial == self.runner_up.trial:
            return (self.runner_up,)
        return (self.runner_up, self.default)

    @property
    def settled(self) -> bool:
        """True if the noise was measured and the best beats each rival with probability ``level``."""
        return self.noise_freedom >= NUMBERS.min_freedom and all(
            rival.probability >= self.level for rival in self.rivals
        )

    @property
    def plan(self) -> dict[int, int]:
        """Further runs by trial that are expected to settle it, and to measure the noise: a further
        run of two configurations adds two degrees of freedom."""
        needed = {rival.trial: rival.runs_needed for rival in self.rivals if rival.runs_needed}
        if not self.settled:
            to_measure = math.ceil((NUMBERS.min_freedom - self.noise_freedom) / 2.0)
            fewest = max(to_measure, 0 if needed else 1)
            if fewest > 0:
                needed[self.runner_up.trial] = max(fewest, self.runner_up.runs_needed)
        return {self.best.trial: max(needed.values()), **needed} if needed else {}

    @property
    def runs_needed(self) -> int:
        """The number of further runs that are expected to settle it, of all configurations."""
        return sum(self.plan.values())

    def to_json(self) -> JsonObject:
        """Return the verdict as plain values."""

        found: dict[str, Json] = {
            name: getattr(self, name)
            for name in ("study", "metric", "level", "noise", "noise_source", "probability_better")
        }
        found |= {"runs_needed": self.runs_needed, "settled": self.settled}
        found |= {"plan": {str(trial): runs for trial, runs in self.plan.items()}}
        for name in ("best", "runner_up", "default"):
            one = getattr(self, name)
            found[name] = None if one is None else {**vars(one), "params": dict(one.params)}
        return {**found, "confirmed": self.confirmed, "less_trained": self.less_trained}

    def __str__(self) -> str:
        best, runner_up = self.best, self.runner_up
        twice = self.default is not None and self.default.trial == runner_up.trial
        same = f" and {self.default_name}" if twice else ""
        lines = [
            f"Best: trial {best.trial} ({config_words(best.params)}), {self.metric}"
            f" {number(best.value)}{self.after}{best.of_runs}.",
            *([f"Not compared: {self.less_trained}."] if self.less_trained else []),
            self._noise_sentence(),
            f"It beats the runner-up{same}, trial {runner_up.trial} ({number(runner_up.value)}"
            f"{runner_up.of_runs}), with probability {_shown(runner_up.probability)};"
            f" expected difference {number(runner_up.behind, 2)} ±"
            f" {number(runner_up.give_or_take, 2)} (95 %).",
        ]
        if self.default is not None and not twice:
            lines.append(
                f"It beats {self.default_name}, trial {self.default.trial} ({number(self.default.value)}"
                f"{self.default.of_runs}), with probability {_shown(self.default.probability)}."
            )
        lucky = self.luckiest
        if lucky is not None and lucky.trial not in {rival.trial for rival in self.rivals}:
            lines.append(
                f"It beats trial {lucky.trial}, which has the best value ({number(lucky.value)}"
                f"{lucky.of_runs}), with probability {_shown(lucky.probability)}: part of that value is"
                " expected to be luck."
            )
        return "\n".join([*lines, self._outlook()])

    def _noise_sentence(self) -> str:
        """The sentence on the noise. A model may be wrong about it, also by a factor of several."""
        if self.noise_source != UNMEASURED:
            return (
                f"Noise of one run: {number(self.noise, 2)} (standard deviation, from"
                f" {self.noise_source})."
            )
        return (
            f"Noise of one run: not measured, since no configuration was run twice; a model of all"
            f" results suggests about {number(self.noise, 2)} (standard deviation), which these"
            " probabilities assume; it may be several times larger."
        )

    def _outlook(self) -> str:
        """The sentence on further runs."""
        level = f"{self.level:.0%}".replace("%", " %")
        if self.settled:
            return f"Settled at {level}: no further runs are needed."
        if max(self.plan.values()) >= NUMBERS.most_runs:
            return (
                f"The best and the runner-up are too close to tell apart at {level}; choose either."
            )
        runs = ", ".join(f"{count} of trial {trial}" for trial, count in self.plan.items())
        clear = all(rival.probability >= self.level for rival in self.rivals)
        why = "Not settled until more repeated runs measure the noise: about" if clear else "About"
        return (
            f"{why} {self.runs_needed} more runs are expected to settle it at {level}: {runs}."
            " study.verdict(confirm=...) makes them."
        )


def _shown(probability: float) -> str:
    """Format a probability, never as 0 or 1."""
    if probability > 0.99:
        return "above 0.99"
    return "below 0.01" if probability < 0.01 else f"{probability:.2f}"


def verdict_of(history: History, level: float = 0.95, confirmed: int = 0) -> StudyVerdict:
    """Judge the results of a study."""
    if not 0.5 < level < 1.0:
        raise StudyError(f"level is {level!r}; it must be above 0.5 and below 1, such as 0.95")
    runs = Runs.of(history)
    try:
        contest = contest_of(history, runs)
    except (NumericalError, np.linalg.LinAlgError) as error:
        raise StudyError(
            f"no model of the results of study {history.created.name!r} can be fitted ({error});"
            " run more trials first"
        ) from None
    default, budget = default_place(history, runs), history.problem.budget
    found = [_candidate(history, runs, contest, place, level) for place in range(len(contest.mean))]
    sign = history.problem.signs[0]
    luckiest = min(range(len(found)), key=lambda place: sign * found[place].value)
    return StudyVerdict(
        study=history.created.name,
        metric=history.problem.metric,
        level=level,
        noise=contest.noise.std,
        noise_source=contest.noise.source,
        noise_freedom=0.0 if contest.noise.source == UNMEASURED else contest.noise.freedom,
        best=found[contest.best],
        runner_up=found[contest.runner_up],
        default=None if default in (None, contest.best) else found[default],
        confirmed=confirmed,
        after=f" after {budget.amount(runs.budget)}" if budget is not None else "",
        default_name=_default_trial(history)[1],
        luckiest=None if luckiest == contest.best else found[luckiest],
        less_trained=_less_trained(history, runs),
    )


def _less_trained(history: History, runs: Runs) -> str:
    """Name the trial with the best value of the study if it has less training than is compared."""
    budget = history.problem.budget
    if budget is None or history.best is None:
        return ""
    trial, point = history.best
    if trial.budget >= runs.budget:
        return ""
    value = f"{history.problem.metric} {number(history.problem.value(point.loss))}"
    return f"trial {trial.id} has the best value so far, {value} after {budget.amount(point.step)}"


def _candidate(
    history: History, runs: Runs, contest: Contest, place: int, level: float
) -> Candidate:
    mine = runs.place == place
    value = history.problem.signs[0] * float(runs.loss[mine].mean())
    found = Candidate(int(runs.trial[mine].min()), runs.configs[place], value, int(mine.sum()))
    if place == contest.best:
        return found
    difference, variance = contest.apart(place)
    width = float(stdtrit(contest.noise.freedom, 0.975)) * math.sqrt(variance)
    return replace(
        found,
        behind=difference * contest.unit,
        give_or_take=width * contest.unit,
        probability=contest.probability(place),
        runs_needed=contest.runs_needed(place, level),
    )


def default_place(history: History, runs: Runs) -> int | None:
    """The configuration of the default trial; None if it has no finished run."""
    here = np.flatnonzero(runs.trial == _default_trial(history)[0])
    return int(runs.place[here[0]]) if len(here) else None


def _default_trial(history: History) -> tuple[int, str]:
    """The trial that the best is compared with, and its name. A queued repetition is no default."""
    name, tried = "", []
    for event in history.events:
        if isinstance(event, Decided):
            reason = event.record.reason
            guessed = isinstance(reason, FirstDesign) and reason.guessed
            queued = "the first queued configuration" if isinstance(reason, Queued) else ""
            name = "the user's guess" if guessed else queued
        elif isinstance(event, TrialAdded):
            if name and event.config not in tried:
                return event.trial, name
            tried.append(event.config)
    return 0, "the first trial"


# --- confirming -----------------------------------------------------------------------------------


def confirm_verdict(ledger: Ledger, confirm: Confirm, runs: int, level: float) -> StudyVerdict:
    """Run configurations again, with paired seeds, until the verdict is settled, ``runs`` are made, or
    many more than are left are expected to be needed."""
    made = 0
    while True:
        history = ledger.refresh()
        verdict = verdict_of(history, level, made)
        hopeless = verdict.runs_needed > NUMBERS.hopeless_factor * (runs - made)
        if verdict.settled or made >= runs or (hopeless and made >= NUMBERS.min_runs_to_give_up):
            return verdict
        for config, seed in next_runs(history, level)[: runs - made]:
            _append_run(ledger, config, seed, _value(confirm, dict(config), seed))
            made += 1


def next_runs(history: History, level: float) -> list[tuple[Config, int]]:
    """The most valuable next runs as configurations and seeds: of the rival from which most could be
    gained by one more run, with a seed of the best if one is free, otherwise of both."""
    runs = Runs.of(history)
    contest = contest_of(history, runs)
    rivals = [place for place in range(len(contest.mean)) if place != contest.best]
    rival = max(rivals, key=lambda place: contest.gain(place, 1.0))
    default = default_place(history, runs)
    if contest.probability(rival) >= level and default not in (None, contest.best):
        rival = default
    used = [set(runs.seed[runs.place == place].tolist()) for place in (contest.best, rival)]
    free = sorted(seed for seed in used[0] - used[1] if seed >= 0)
    if free:
        return [(runs.configs[rival], free[0])]
    seed = next(seed for seed in range(len(runs.loss) + 1) if seed not in used[0] | used[1])
    return [(runs.configs[contest.best], seed), (runs.configs[rival], seed)]


def _value(confirm: Confirm, params: Config, seed: int) -> object:
    """Make one run."""
    try:
        taken = inspect.signature(confirm).parameters
    except (TypeError, ValueError):
        return confirm(params, seed)
    if "seed" in taken:
        return confirm(params, seed=seed)
    required = [one for one in taken.values() if one.default is inspect.Parameter.empty]
    return confirm(params) if len(required) == 1 else confirm(params, seed)


def _append_run(ledger: Ledger, config: Config, seed: int, value: object) -> None:
    """Record one more run of a configuration as a trial of its own, with its seed."""
    while True:
        history = ledger.refresh()
        now, full, trial = wall_clock(), history.problem.full_budget, len(history.trials)
        metrics: dict[str, float | None] = {**as_metrics(value, history.problem.names)}
        events = (
            TrialAdded(trial=trial, config=config, time=now),
            BudgetGranted(trial=trial, budget=full, worker=ledger.worker, time=now),
            Reported(trial=trial, step=full, metrics=metrics, time=now),
            as_annotation(trial, {SEED: seed}, time=now),
        )
        if append_told(ledger, history, Told("confirmation"), events):
            return
