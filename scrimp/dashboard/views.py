"""What the pages show of a study, as plain values: nothing here knows of HTML."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scrimp.history.events import BudgetGranted, Ended, Lost, Reported, Retried
from scrimp.history.history import History
from scrimp.history.record import best_record
from scrimp.history.reports import headline
from scrimp.plots.rungs import rung_counts
from scrimp.plots.source_weights import recorded_weights
from scrimp.space.parameter import Constant, Float, Int
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.selection.recommendation import Recommendation

__all__ = [
    "Summary",
    "answer_of",
    "field_of",
    "figures_of",
    "lately",
    "summary_of",
    "unit_of",
    "working",
]

SELECTION = ("selection_grid", "selection_curve", "selection_confidence", "selection_correlations")
FIGURES = (
    "history",
    "curves",
    "rungs",
    "spending",
    "parallel",
    "slice",
    "importance",
    "contour",
    "surrogate",
    "timeline",
    "edf",
)


@dataclass(frozen=True)
class Summary:
    """A study in a few numbers, the same as ``scrimp show --json`` prints."""

    name: str
    kind: str
    direction: str
    metric: str
    method: str
    method_reason: str
    trials: int
    counts: dict[str, int]
    best: dict[str, Any] | None
    spent: float
    saved: float | None
    unit: str
    limits: tuple[str, ...]
    halt: str
    queued: int
    degraded: tuple[tuple[int, str], ...]
    sources: tuple[str, ...]
    length: int

    @property
    def state(self) -> str:
        """Whether anything happens: running, paused, stopped or idle."""
        return self.halt or ("running" if self.counts.get("running") else "idle")


def summary_of(study: Study) -> Summary:
    """Where a study stands."""
    history = study.history
    problem = history.problem
    return Summary(
        name=study.name,
        kind=history.created.kind,
        direction=problem.direction,
        metric=problem.metric,
        method=study.method,
        method_reason=str(history.method.get("reason", "")),
        trials=len(history.trials),
        counts={status: count for status, count in history.counts.items() if count},
        best=best_record(history),
        spent=history.spent,
        saved=_saved(history),
        unit=unit_of(history),
        limits=_limits(history),
        halt=history.limits.halt or "",
        queued=len(history.queue),
        degraded=tuple(history.degraded),
        sources=tuple(source.study for source in history.sources),
        length=history.length,
    )


def _limits(history: History) -> tuple[str, ...]:
    """How far it may go, in words."""
    totals = history.totals
    found = []
    if totals.n_trials is not None:
        found.append(f"of {totals.n_trials} in all")
    if totals.budget is not None:
        found.append(f"up to {totals.budget:g} {unit_of(history)} in all")
    if history.created.kind == "selection":
        found.append(f"of {history.problem.space.size:g} cells")
    return tuple(found)


def _saved(history: History) -> float | None:
    """The share of budget that was not spent because trials were paused or stopped; None without
    budgets."""
    begun = sum(1 for trial in history.trials if trial.curve)
    if history.problem.budget is None or not begun:
        return None
    return max(1.0 - history.spent / (begun * history.problem.full_budget), 0.0)


def answer_of(history: History) -> "Recommendation | None":
    """What a selection of checkpoints answers now; None for a study."""
    if history.created.kind != "selection":
        return None
    from scrimp.selection.cell_policy import recommendation

    return recommendation(history)


def unit_of(history: History) -> str:
    """What budgets are counted in."""
    return "evaluations" if history.problem.budget is None else history.problem.budget.units


def working(history: History) -> dict[str, list[Any]]:
    """Who runs what now, and how many trials stand at which rung."""
    running = sorted(history.with_status("running", "stale"), key=lambda trial: trial.id)
    rungs = rung_counts(history) if history.problem.budget is not None else []
    return {"running": running, "rungs": rungs, "lately": lately(history)}


def lately(history: History, most: int = 8) -> list[tuple[float, int, str]]:
    """The newest things that happened to trials, newest first: (when, trial, what)."""
    found: list[tuple[float, int, str]] = []
    told: set[int] = set()  # a trial paused or completed is told once
    for event in reversed(history.events):
        if len(found) == most:
            break
        if isinstance(event, BudgetGranted | Ended | Lost | Reported | Retried):
            words = _happened(history, event, told)
            found += [(event.time, event.trial, words)] if words else []
    return found


def _happened(
    history: History, event: BudgetGranted | Ended | Lost | Reported | Retried, told: set[int]
) -> str:
    problem = history.problem
    match event:
        case BudgetGranted():
            if event.attempt == 1:
                return "begun" if history.trials[event.trial].status == "running" else ""
            return (
                "begun again"
                if problem.budget is None
                else f"promoted to {problem.budget.amount(event.budget)}"
            )
        case Ended():
            message = headline(event.message)
            return f"{event.status}: {message}" if message else event.status
        case Lost():
            return "lost its worker"
        case Retried():
            return "to be tried again"
        case Reported():
            trial = history.trials[event.trial]
            if (
                event.step != trial.budget
                or trial.status not in ("paused", "completed")
                or trial.id in told
            ):
                return ""
            told.add(trial.id)
            after = "" if problem.budget is None else f" after {problem.budget.amount(event.step)}"
            value = "" if trial.value is None else f", {problem.metric} {trial.value:.6g}"
            return f"{trial.status}{after}{value}"


def figures_of(study: Study) -> list[str]:
    """The figures that make sense for this study, in the order of the page."""
    history = study.history
    if history.created.kind == "selection":
        return list(SELECTION)
    names = list(FIGURES)
    if history.problem.budget is None:
        names = [name for name in names if name not in ("curves", "rungs")]
    if len(history.problem.space.searched) < 2:
        names.remove("contour")
    if recorded_weights(history):
        names.insert(1, "source_weights")
    return names


def field_of(study: Study, name: str) -> dict[str, Any]:
    """How a form asks for one parameter: a choice, or a number with its limits."""
    parameter = study.history.problem.space[name]
    record: dict[str, Any] = {
        "name": name,
        "kind": type(parameter).__name__.lower(),
        "conditional": bool(parameter.when),
    }
    if isinstance(parameter, Float | Int):
        return {
            **record,
            "low": parameter.low,
            "high": parameter.high,
            "step": parameter.step or ("any" if isinstance(parameter, Float) else 1),
        }
    choices = () if isinstance(parameter, Constant) else tuple(parameter.grid or ())
    return {**record, "choices": choices}
