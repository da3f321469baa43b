"""A study so far: the path of its best value, hints on its best configuration, and its current run.

    history.derive(BEST_PATH).points              # [(1.0, 0, 0.9), (3.0, 2, 0.4), ...]
    history.derive(CURRENT_RUN).since             # None before the first trial
    history.derive(WITHOUT_EARLY_STOPPING).count  # units, to compare with what was spent
    bound_hints(history)                          # ["lr is at its upper bound in 4 of the top 5 trials; ..."]

`hints` are lines on the best configuration. If it has a parameter at an end of its range, the optimum
may lie beyond. A float counts as at an end within a hundredth of its range (on a logarithmic scale: of
the orders of magnitude), an integer or an ordinal at its first or last value. One configuration may be
there by accident, so most of the five best trials must be there too. Categorical parameters have no
ends, nor has a pool of configurations.

The current run has the time since which trials have been running without a longer break, and what was
done before.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

from scrimp.json_values import Scalar
from scrimp.space.parameter import Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool
from scrimp.study_log.events import Event
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.ordered_trials import ordered_trials
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial


@dataclass
class Path:
    """``points`` are improvements: (units of budget spent over all trials, trial, value); ``spent``
    is the budget spent by now. With ``several`` metrics there are no points."""

    sign: float
    several: bool = False
    spent: float = 0.0
    points: list[tuple[float, int, float]] = field(default_factory=list)

    @property
    def loss(self) -> float:
        """The lowest loss so far."""
        return self.sign * self.points[-1][2] if self.points else math.inf


@dataclass(frozen=True)
class BestPath(Fold[Path]):
    """Follows the best feasible value of a study."""

    def begin(self, problem: Problem) -> Path:
        return Path(problem.sign, problem.several)

    def step(self, state: Path, event: Event, before: Trial | None, trial: Trial | None) -> None:
        if trial is None or before is None or trial is before:
            return
        state.spent += max(trial.budget - before.budget, 0.0)
        if state.several:
            return
        if trial.best is not None and state.sign * trial.best < state.loss:
            state.points.append((state.spent, trial.id, trial.best))


BEST_PATH = BestPath()


@dataclass
class FullTrainings:
    """The units of budget that trials would take, with the ``full`` budget of each."""

    count: float = 0.0
    full: float = 0.0


@dataclass(frozen=True)
class WithoutEarlyStopping(Fold[FullTrainings]):
    """The units that the trials with a report would take without early stopping: the full budget, or
    what they took if they failed or ended by themselves."""

    def begin(self, problem: Problem) -> FullTrainings:
        """Return none."""
        return FullTrainings(full=problem.full_budget)

    def step(
        self, state: FullTrainings, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        """Apply one event."""
        if trial is not before:
            state.count += _whole(trial, state.full) - _whole(before, state.full)


def _whole(trial: Trial | None, full: float) -> float:
    if trial is None or not trial.curve:
        return 0.0
    return trial.budget if trial.status in ("completed", "failed") else full


WITHOUT_EARLY_STOPPING = WithoutEarlyStopping()


END_SHARE = 0.01
"""Share of a float's range that counts as its end."""

BEST_TRIALS_COMPARED = 5
"""Number of trials that are compared, including the best one."""

MAX_CANDIDATES = 100
"""Number of trials with the lowest losses among which those that fit the space are compared."""

MIN_EQUAL_VALUES = 5
"""Number of equal values from which on a hint is given."""


def hints(history: History) -> list[str]:
    """Return hints on the best configuration: it lies at an end of the space, or all are equal."""
    return history.remember("hints", lambda: _hints(history))


def _hints(history: History) -> list[str]:
    values = ordered_values(history)
    if len(values) < MIN_EQUAL_VALUES or history.best is None or values[0][0] != values[-1][0]:
        return bound_hints(history)
    return [
        f"all {len(values)} trials have the same {history.problem.metric}: does the objective use"
        f" its parameters ({', '.join(history.problem.space.searched)})?"
    ]


def bound_hints(history: History) -> list[str]:
    """Return one line for each parameter that the best configuration has at an end of its range."""
    if history.best is None or isinstance(history.problem.space, Pool):
        return []
    best, hints = history.best[0], []
    leaders = _leaders(history, best)
    if not history.problem.space.contains(best.config):
        # The log may hold configurations of any origin.
        return []
    for name, parameter in history.problem.space.items():
        end = _end(parameter, best.config[name]) if name in best.config else ""
        if not end:
            continue
        alike = sum(
            name in trial.config and _end(parameter, trial.config[name]) == end for trial in leaders
        )
        if len(leaders) > 2 and 2 * alike <= len(leaders):
            continue
        if len(history.trials) > BEST_TRIALS_COMPARED and not any(
            name in trial.config and _end(parameter, trial.config[name]) != end
            for trial in history.trials
        ):
            # No other value was tried, so nothing is known about this end.
            continue
        among = f" in {alike} of the top {len(leaders)} trials" if len(leaders) > 1 else ""
        hints.append(f"{name} is at its {end} bound{among}; consider widening its range")
    return hints


def ordered_values(history: History) -> Sequence[tuple[float, int]]:
    """Return the best value of each trial that has one, with its number, ascending."""
    return ordered_trials(history, "best", attrgetter("best"))


def ordered_standings(history: History) -> Sequence[tuple[float, int]]:
    """Return the lowest standing of each trial with a report, with its number, ascending."""
    return ordered_trials(history, "standing", _lowest_standing)


def _lowest_standing(trial: Trial) -> float | None:
    return min((point.standing for point in trial.curve), default=None)


def _leaders(history: History, best: Trial) -> Sequence[Trial]:
    """Return the best trial and those with the next lowest losses."""
    # Only the few lowest are compared with the space, which takes longer than anything else here.
    others = (
        history.trials[number]
        for standing, number in islice(ordered_standings(history), MAX_CANDIDATES + 1)
        if standing < math.inf
        and number != best.id
        and history.problem.space.contains(history.trials[number].config)
    )
    return [best, *islice(others, BEST_TRIALS_COMPARED - 1)]


def _end(parameter: Parameter, value: Scalar) -> str:
    """Return ``upper`` or ``lower`` if the value is at that end of its range, else nothing."""
    match parameter:
        case Float(step=None):
            place = parameter.to_unit(value)
            return "lower" if place <= END_SHARE else "upper" if place >= 1.0 - END_SHARE else ""
        case Float() | Int() | Ordinal():
            values: Sequence[Scalar] = parameter.grid or ()
            return "lower" if value == values[0] else "upper" if value == values[-1] else ""
        case _:
            return ""


MAX_BREAK_SECONDS = 60.0
"""Time without a running trial after which a run is a new one, in seconds."""


@dataclass
class RunSoFar:
    """``since``: the time of the first grant of the run. ``spent_before``, ``ended_before``: budget
    and trials that were done by then; ``spent``, ``ended``: by now. ``running``: trials that run
    now; ``latest``: the time of the latest event of a running trial."""

    since: float | None = None
    spent_before: float = 0.0
    ended_before: int = 0
    spent: float = 0.0
    ended: int = 0
    running: int = 0
    latest: float = float("-inf")


@dataclass(frozen=True)
class CurrentRun(Fold[RunSoFar]):
    """Follows the run of a study."""

    def begin(self, problem: Problem) -> RunSoFar:
        return RunSoFar()

    def step(
        self, state: RunSoFar, event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        if trial is None or trial is before:
            return
        began = _is_running(trial) - _is_running(before)
        if began > 0 and not state.running and event.time - state.latest > MAX_BREAK_SECONDS:
            state.since = event.time
            state.spent_before, state.ended_before = state.spent, state.ended
        state.running += began
        state.spent += max(trial.budget - (0.0 if before is None else before.budget), 0.0)
        state.ended += _has_ended(trial) - _has_ended(before)
        if _is_running(trial) or _is_running(before):
            state.latest = event.time


def _is_running(trial: Trial | None) -> bool:
    return trial is not None and trial.status == "running"


def _has_ended(trial: Trial | None) -> bool:
    return trial is not None and trial.status in ("completed", "failed")


CURRENT_RUN = CurrentRun()
