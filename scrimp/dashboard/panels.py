"""Which pictures a study's page shows, in which order: only those that have something to show."""

from dataclasses import dataclass

import scrimp.plots as plots
from scrimp.history.history import History
from scrimp.plots.source_weights import recorded_weights

__all__ = ["FIGURES", "HEADINGS", "SELECTION", "Panels", "heading", "panels_of"]

HEADINGS = {
    "front": "The front",
    "front_history": "Hypervolume so far",
    "trade_offs": "Metrics side by side",
    "history": "Best so far",
    "curves": "Learning curves",
    "metrics": "Every metric",
    "source_weights": "What it learned from",
    "parallel": "Parallel coordinates",
    "importance": "Importance of parameters",
    "contour": "Model over two parameters",
    "surrogate": "Model along a parameter",
    "slice": "Values over each parameter",
    "rungs": "Rungs over time",
    "spending": "Where the budget went",
    "timeline": "What workers did",
    "edf": "Distribution of values",
    "selection_grid": "Cells evaluated",
    "selection_curve": "Mean score of every checkpoint",
    "selection_confidence": "How sure the answer is",
    "selection_correlations": "Tasks that move together",
}
"""What stands above a picture until it is drawn; above one without a line here stands its name."""

SELECTION = ("selection_grid", "selection_curve", "selection_confidence", "selection_correlations")
APART = ("attainment", "compare", "regret")
"""Pictures of several studies, and of results of comparisons: no study's page shows them."""

OTHERS = tuple(name for name in plots.__all__ if name not in {*HEADINGS, *APART})
"""Pictures that nobody gave a place: they come last on the page of every study with values."""

FIGURES = (*(name for name in HEADINGS if name not in SELECTION), *OTHERS)
"""Whose names may be asked for, beside those of a selection."""

FEW = 4
"""Values from which on a model of the parameters is worth a picture."""


@dataclass(frozen=True)
class Panels:
    """Names of pictures: at the top, below, and folded at the end."""

    first: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    last: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.first, *self.more, *self.last)


def heading(name: str) -> str:
    """What stands above a picture until it is drawn."""
    return HEADINGS.get(name, name.replace("_", " ").capitalize())


def panels_of(history: History) -> Panels:
    """The pictures that have something to show now."""
    if history.is_selection:
        measured = any(trial.value is not None for trial in history.trials)
        return Panels(SELECTION[:2], SELECTION[2:]) if measured else Panels()
    values = sum(trial.value is not None for trial in history.trials)
    budgets = history.problem.budget is not None
    more = _of_parameters(history, values)
    several = history.problem.trade_off is not None
    first = [name for name, there in (("history", values), ("curves", values and budgets)) if there]
    if several:
        first = ["front", "front_history"] if values else []
        more = ["trade_offs", *(name for name in more if name != "edf")] if values else []
    if len(first) == 1 and "parallel" in more:
        first.append(more.pop(more.index("parallel")))
    begun = any(trial.started is not None for trial in history.trials)
    last = ["rungs"] if begun and budgets else []
    last += ["spending", "timeline"] if begun else []
    last += OTHERS if values else ()
    return Panels(tuple(first), tuple(more), tuple(last))


def _of_parameters(history: History, values: int) -> list[str]:
    """What shows how values depend on parameters."""
    several = len(history.problem.space.searched) > 1
    wanted = (
        ("source_weights", bool(recorded_weights(history))),
        ("parallel", values > 1),
        ("importance", several and values >= FEW),
        ("contour", several and values >= FEW),
        ("surrogate", values > 1),
        ("edf", values > 1),
        ("slice", values > 1),
        ("metrics", values > 1 and _several_metrics(history)),
    )
    return [name for name, there in wanted if there]


def _several_metrics(history: History) -> bool:
    return any(trial.last is not None and len(trial.last.metrics) > 1 for trial in history.trials)
