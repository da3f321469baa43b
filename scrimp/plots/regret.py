"""Regret of methods over what they spent, from the results of ``scrimp bench``.

scrimp.plots.regret("results.jsonl")
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import numpy as np

from scrimp.errors import TableError
from scrimp.plots.style import SERIES, figure, rgba, unmarked

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["mean_regrets", "regret"]

AXES = {
    "spent": "share of the budget spent",
    "share": "share of the cells measured",
    "at": "evaluations",
}

LEAST = 0.1
"""On a logarithmic axis a band ends at this share of its mean: it may not reach 0."""


class _Run(TypedDict, total=False):
    suite: str
    table: str
    task: str
    method: str
    regret: list[float | None]


Curve = tuple[list[float], list[float], list[float]]


def regret(results: str | Path | Sequence[Mapping[str, object]]) -> "Figure":
    """One line per method: mean regret over tasks and seeds, with a band of one standard error over
    tasks."""
    from plotly.graph_objects import Figure, Scatter

    records = (
        _read(Path(results))
        if isinstance(results, str | Path)
        else cast("list[_Run]", list(results))
    )
    axis = _axis(records)
    curves = mean_regrets(records, axis)
    log = all(value > 0 for _, mean, _ in curves.values() for value in mean if np.isfinite(value))
    picture = Figure()
    for place, (method, (xs, mean, error)) in enumerate(curves.items()):
        colour = SERIES[place % len(SERIES)]
        edge = {
            "x": xs,
            "mode": "lines",
            "line": {"width": 0},
            "hoverinfo": "skip",
            "showlegend": False,
        }
        picture.add_trace(Scatter(y=np.add(mean, error).tolist(), legendgroup=method, **edge))
        fill = {"fill": "tonexty", "fillcolor": rgba(colour, 0.13), "legendgroup": method}
        lower = (
            np.maximum(np.subtract(mean, error), LEAST * np.array(mean))
            if log
            else np.subtract(mean, error)
        )
        picture.add_trace(Scatter(y=lower.tolist(), **fill, **edge))
        line = {"color": colour, "dash": "solid" if place < len(SERIES) else "dot"}
        picture.add_trace(
            Scatter(
                x=xs,
                y=mean,
                mode="lines+markers",
                line=line,
                name=unmarked(method),
                legendgroup=method,
            )
        )
    picture.update_xaxes(title_text=AXES[axis])
    picture.update_yaxes(title_text="mean regret", type="log" if log else "linear")
    suites = ", ".join(
        sorted({" ".join(dict.fromkeys((record["suite"], record["table"]))) for record in records})
    )
    title = f"Regret of {len(curves)} methods on {unmarked(suites, 80)}"
    last = "; ".join(
        f"{unmarked(method)} {mean[-1]:.3g}" for method, (_, mean, _) in curves.items()
    )
    return figure(picture, title, f"{title}, {len(records)} runs; at the end: {last}.")


def mean_regrets(records: Sequence[_Run], axis: str) -> dict[str, Curve]:
    """Per method: the axis, the mean over tasks of the mean over seeds, and its standard error over
    tasks.

    Points that not all runs of a method reached are left out.
    """
    runs: dict[str, dict[tuple[str, str], list[list[float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    places: dict[str, list[float]] = {}
    for record in records:
        values = [np.nan if value is None else float(value) for value in record["regret"]]
        own: list[float] = cast("dict[str, list[float]]", record)[axis]
        known = places.setdefault(record["method"], [float(place) for place in own])
        places[record["method"]] = [place for place in known if place in own]
        runs[record["method"]][record["table"], record["task"]].append(values)
    curves: dict[str, Curve] = {}
    for method, tasks in runs.items():
        length = len(places[method])
        table = np.array(
            [np.mean([run[:length] for run in task], axis=0) for task in tasks.values()]
        )
        error = (
            table.std(axis=0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.zeros(length)
        )
        curves[method] = places[method], table.mean(axis=0).tolist(), np.asarray(error).tolist()
    return curves


def _axis(records: Sequence[_Run]) -> str:
    for axis in AXES:
        if records and all(axis in record and "regret" in record for record in records):
            return axis
    raise TableError(
        "these are no results with regrets over one axis; give a file that scrimp bench wrote, one"
        " suite only"
    )


def _read(path: Path) -> list[_Run]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise TableError(
            f"{str(path)!r} cannot be read as results of scrimp bench: {error}"
        ) from None
