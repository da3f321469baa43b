"""Progress: `history` (values and the best so far), `compare` (several studies), `edf` (distribution
of values) and `regret` (results of `scrimp bench`).

    scrimp.plots.history(study, over="time")
    scrimp.plots.compare(first, second, over="budget")
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from plotly.graph_objects import Figure, Scatter

from scrimp.errors import StudyError, TableError
from scrimp.plots import style
from scrimp.plots.learning_curves import add_limits, check_metric
from scrimp.plots.style import figure, trace, unmarked
from scrimp.study.study import Study
from scrimp.study_log.history import History
from scrimp.study_log.messages import headline
from scrimp.study_log.trial import Observation, Trial

Over = Literal["trials", "time", "budget"]
"""The quantity along the x axis."""

MAX_POINTS = 2000
"""Points shown at most; the line of the best value is never thinned."""

BROKEN = "violates a constraint"
MARKERS = {
    "partly trained": {"color": style.MUTED, "size": 5},
    "trials": {"color": style.LINE, "size": 6},
    BROKEN: {"color": style.FAILED, "symbol": "diamond-open", "size": 7},
}
"""Look of the dots: less informative values are less visible."""


def history(
    study: Study, over: Over = "trials", *, metric: str | None = None, log: bool = False
) -> Figure:
    """Return values of trials and the best feasible report so far, over trials, time or budget.

    ``metric`` shows another reported metric, with the limit of its constraint; ``log`` makes the
    value axis logarithmic.
    """
    seen, problem = study.history, study.history.problem
    metric = check_metric(seen, metric)
    reports = placed_reports(seen, over)
    newest = {trial.id: (place, trial) for place, trial, _ in reports if trial.value is not None}
    known = [
        (trial, place, value)
        for place, trial in newest.values()
        if (value := style.last_value(problem, trial, metric)) is not None
    ]
    dots = _dots(seen, known, metric)
    picture, title, limits = Figure(dots), unmarked(metric), list[float]()
    if metric == problem.metric:
        line = best_line(seen, reports)
        _add_best(picture, seen, over, line)
        heights = [y for group in dots for y in group.y] + [value for _, value, _ in line]
        title, words = f"Best {title}", _words(seen, line, len(known))
    else:
        limits = add_limits(picture, problem.constraints.get(metric))
        heights = [value for _, _, value in known]
        bounds = " and ".join(f"{limit:g}" for limit in limits)
        held = f" Dashed: its limit, {bounds}." if limits else ""
        span = f", from {min(heights):.4g} to {max(heights):.4g}" if heights else ""
        words = f"The last {title} of {len(heights)} trials{span}.{held}"
    sign = style.metric_sign(problem, metric)
    axis, outside = style.value_axis([*heights, *limits], sign, log, kept=limits)
    picture.update_xaxes(**x_axis(seen, over, (place for _, place, _ in known)))
    picture.update_layout(yaxis={"title": {"text": style.metric_title(problem, metric)}, **axis})
    return figure(picture, f"{title} over {over}", words + outside)


def x_axis(history: History, over: Over, places: Iterable[float]) -> dict[str, object]:
    """Return title and ticks of the x axis, with whole numbers for trials."""
    unit = "evaluations" if history.problem.budget is None else history.problem.budget.units
    titles = {
        "trials": "trial",
        "time": "time since the start (seconds)",
        "budget": f"budget spent ({unmarked(unit)})",
    }
    ticks = {} if over == "time" else style.count_axis(places)
    return {"title_text": titles[over], **ticks}


def best_line(
    history: History, reports: list[tuple[float, Trial, Observation]]
) -> list[tuple[float, float, int]]:
    """Return (place, best feasible value so far, its trial) at every improvement and at the end."""
    line: list[tuple[float, float, int]] = []
    best: float | None = None
    for place, trial, point in reports:
        if point.loss is not None and point.feasible and (best is None or point.loss < best):
            best = point.loss
            if line and line[-1][0] == place:
                line.pop()
            line.append((place, history.problem.sign * best, trial.id))
    end = max((place for place, _, _ in reports), default=0.0)
    if line and line[-1][0] < end:
        line.append((end, *line[-1][1:]))
    return line


def placed_reports(history: History, over: Over) -> list[tuple[float, Trial, Observation]]:
    """Return all reports with their place on the x axis, in order."""
    found = [(float(trial.id), trial, point) for trial in history.trials for point in trial.curve]
    if over == "trials":
        return found
    in_order = sorted(found, key=lambda report: report[2].time)
    if over == "time":
        began = history.created.time
        return [(point.time - began, trial, point) for _, trial, point in in_order]
    if over != "budget":
        raise StudyError(f"over is {over!r}; it must be 'trials', 'time' or 'budget'")
    steps, used = [], defaultdict[int, float](float)
    for _, trial, point in in_order:
        steps.append(max(point.step - used[trial.id], 0.0))
        used[trial.id] = max(point.step, used[trial.id])
    return [
        (spent, trial, point)
        for spent, (_, trial, point) in zip(accumulate(steps), in_order, strict=True)
    ]


def _add_best(
    picture: Figure, history: History, over: Over, line: list[tuple[float, float, int]]
) -> None:
    """Add the failures, and the line of the best value so far."""
    failures = _failures(history, over)
    if failures is not None:
        hidden = {"range": [0, 1], "visible": False, "fixedrange": True}
        picture.add_trace(failures).update_layout(yaxis2={"overlaying": "y", **hidden})
    picture.add_trace(
        trace(
            [(place, value) for place, value, _ in line],
            "lines",
            line={"color": style.ACCENT, "shape": "hv", "width": 2.5},
            name="best so far",
            meta={"trials": True},
            customdata=[number for _, _, number in line],
            hovertemplate="best so far: %{y}, by trial %{customdata}<extra></extra>",
        )
    )


def _words(history: History, line: list[tuple[float, float, int]], count: int) -> str:
    """Return the text alternative."""
    metric, failed = unmarked(history.problem.metric), history.counts["failed"]
    if not line:
        nothing = "No feasible value" if count else "Nothing"
        return f"{nothing} was reported yet{f'; {failed} trials failed' if failed else ''}."
    _, best, number = line[-1]
    found = math.inf if history.best is None else history.best[1].time
    since = sum(trial.started is not None and trial.started > found for trial in history.trials)
    words = f"The best {metric} is {best:.6g}, by trial {number}"
    words += f"; none of the {since} trials started since then improved it" if since > 2 else ""
    first = line[0][1]
    words += f". The first value was {first:.6g}" if first != best else ""
    words += f"; {failed} of {len(history.trials)} trials failed" if failed else ""
    thinned_out = f" {MAX_POINTS} of {count} values are shown." if count > MAX_POINTS else ""
    return f"{words}.{thinned_out}"


def _dots(
    history: History, known: Sequence[tuple[Trial, float, float]], metric: str
) -> list[Scatter]:
    """Return trials as dots: fully trained, partly trained, and those that violate a constraint."""
    full, staged = history.problem.full_budget, history.problem.budget is not None
    groups: dict[str, list[tuple[Trial, float, float]]] = {name: [] for name in MARKERS}
    trials = [trial for trial, _, _ in known]
    shown = {trial.id for trial in style.sampled_trials(history, trials, MAX_POINTS, metric)}
    for trial, place, value in known:
        if trial.id in shown:
            held = trial.last is not None and trial.last.feasible
            part = staged and trial.budget < full
            name = "partly trained" if held and part else "trials" if held else BROKEN
            groups[name].append((trial, place, value))
    whole = "fully trained" if staged else "trials"
    return [
        style.trial_dots(group, whole if name == "trials" else name, MARKERS[name])
        for name, group in groups.items()
        if group
    ]


def _failures(history: History, over: Over) -> Scatter | None:
    """Return crosses where trials failed; None over budget, where they have no place."""
    failed = [trial for trial in history.with_status("failed") if trial.value is None]
    if not failed or over == "budget":
        return None
    began = history.created.time
    shown = style.thinned_items(sorted(failed, key=lambda trial: trial.id), MAX_POINTS)
    thick = {"color": style.FAILED, "width": 2}
    places = [t.id if over == "trials" else (t.ended or began) - began for t in shown]
    return trace(
        [(place, 0.015) for place in places],
        "markers",
        yaxis="y2",
        marker={"color": style.FAILED, "symbol": "x-thin", "size": 7, "line": thick},
        name="failed",
        meta={"trials": True},
        customdata=[[trial.id, unmarked(headline(trial.message), 90)] for trial in shown],
        hovertemplate="trial %{customdata[0]} failed: %{customdata[1]}<extra></extra>",
    )


def compare(*studies: Study, over: Over = "trials", log: bool = False) -> Figure:
    """Return the best value so far of several studies of one metric and direction, a line each."""
    if not studies:
        raise StudyError("compare was given no study; give at least one")
    picture = Figure()
    for place, study in enumerate(studies):
        line = best_line(study.history, placed_reports(study.history, over))
        steps = [(where, value) for where, value, _ in line]
        look = {"line": style.series_line(place, shape="hv"), "name": unmarked(study.name)}
        picture.add_trace(trace(steps, "lines", **look))
    problem = studies[0].history.problem
    places = [x for one in picture.data for x in one.x]
    picture.update_xaxes(**x_axis(studies[0].history, over, places))
    axis, outside = style.value_axis([y for one in picture.data for y in one.y], problem.sign, log)
    picture.update_yaxes(title_text=f"best {style.metric_title(problem, problem.metric)}", **axis)
    count = "1 study" if len(studies) == 1 else f"{len(studies)} studies"
    title = f"Best {unmarked(problem.metric)} of {count} over {over}"
    last = [f"{one.y[-1]:.6g}" if one.y else "nothing" for one in picture.data]
    ends = "; ".join(f"{one.name} {end}" for one, end in zip(picture.data, last, strict=True))
    return figure(picture, title, f"{title}: {ends}.{outside}")


MAX_STEPS = 500


def edf(*studies: Study, log: bool = False) -> Figure:
    """Return one step line per study: F(v), the share of its trials with a value of at most v (at
    least v for maximized metrics)."""
    if not studies:
        raise StudyError("edf was given no study; give at least one")
    picture = Figure()
    problem = studies[0].history.problem
    for place, study in enumerate(studies):
        values = [trial.value for trial in study.history.trials if trial.value is not None]
        values.sort(reverse=problem.sign < 0)
        steps = [(value, (rank + 1) / len(values)) for rank, value in enumerate(values)]
        name = f"{unmarked(study.name)} ({len(values)} trials)"
        shown, shape = style.thinned_items(steps, MAX_STEPS), style.series_line(place, shape="hv")
        picture.add_trace(trace(shown, "lines", line=shape, name=name))
    sense = "at most" if problem.sign > 0 else "at least"
    axis, outside = style.value_axis([x for one in picture.data for x in one.x], problem.sign, log)
    if problem.sign < 0:
        # The best value is on the left.
        turned = {"range": axis["range"][::-1]} if "range" in axis else {"autorange": "reversed"}
        axis = {**axis, **turned}
    picture.update_xaxes(title_text=unmarked(problem.metric), **axis)
    picture.update_yaxes(title_text=f"share of trials with a value {sense} this", range=[0, 1.03])
    title = f"Distribution of {unmarked(problem.metric)}"
    return figure(picture, title, _distribution_words(studies, sense) + outside)


def _distribution_words(studies: Sequence[Study], sense: str) -> str:
    """Return the median and the best tenth of each distribution, as text."""
    parts = []
    for study in studies:
        problem = study.history.problem
        losses = [trial.loss for trial in study.history.trials if trial.loss is not None]
        if losses:
            tenth, middle = (problem.sign * float(q) for q in np.quantile(losses, [0.1, 0.5]))
            name = f"{unmarked(study.name)}: half" if len(studies) > 1 else "Half"
            parts.append(
                f"{name} of the {len(losses)} values are {sense} {middle:.4g}, a tenth {sense} {tenth:.4g}"
            )
    return "; ".join(parts) + "." if parts else "No value was reported yet."


AXES = {
    "spent": "share of the budget spent",
    "share": "share of the cells measured",
    "at": "evaluations",
}

BAND_QUANTILES = (0.1, 0.9)
BAND_FLOOR_SHARE = 0.1
"""Lower end of a band on a logarithmic axis, as a share of its mean: it must not reach 0."""


class RegretCurve(NamedTuple):
    """The mean regret of a method with a band; ``of`` says what the band shows."""

    places: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]
    of: str


def regret(results: str | Path | Sequence[Mapping[str, object]]) -> Figure:
    """Return one line per method: mean regret over tasks and seeds, with a band that holds 80 % of
    the seeds, or with a single seed one standard error over tasks."""
    if isinstance(results, str | Path):
        results = _read(Path(results))
    records: list[Mapping[str, Any]] = list(results)
    for axis in AXES:
        if records and all(axis in record and "regret" in record for record in records):
            break
    else:
        raise TableError(
            "these are not regrets over one axis; give a file that scrimp bench wrote, with one suite"
        )
    curves = mean_regrets(records, axis)
    log = all(value > 0 for one in curves.values() for value in one.mean if np.isfinite(value))
    picture = Figure()
    for place, (method, (xs, mean, low, high, _)) in enumerate(curves.items()):
        line, group = style.series_line(place), {"legendgroup": method}
        floor = BAND_FLOOR_SHARE * np.array(mean) if log else -np.inf
        area = style.rgba(str(line["color"]), 0.13)
        picture.add_traces(style.band(xs, np.maximum(low, floor), high, area, **group))
        points = zip(xs, mean, strict=True)
        picture.add_trace(trace(points, "lines+markers", line=line, name=unmarked(method), **group))
    picture.update_xaxes(title_text=AXES[axis])
    picture.update_yaxes(title_text="mean regret", type="log" if log else "linear")
    suites = {" ".join(dict.fromkeys((one["suite"], one["table"]))) for one in records}
    title = f"Regret of {len(curves)} methods on {unmarked(', '.join(sorted(suites)), 80)}"
    last = "; ".join(f"{unmarked(name)} {one.mean[-1]:.3g}" for name, one in curves.items())
    bands = " or ".join(dict.fromkeys(one.of for one in curves.values() if one.of))
    words = f"{title}, {len(records)} runs; at the end: {last}."
    return figure(picture, title, words + (f" Bands: {bands}." if bands else ""))


def mean_regrets(records: Sequence[Mapping[str, Any]], axis: str) -> dict[str, RegretCurve]:
    """Return per method the mean over tasks of the mean over seeds, with a band: 80 % of the seeds,
    each averaged over all tasks, or one standard error over tasks if fewer than two seeds have all
    tasks.

    Points that some run of a method did not reach are left out.
    """
    runs: dict[str, dict[tuple[str, str], dict[int, list[float]]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    places: dict[str, list[float]] = {}
    for record in records:
        values = [np.nan if value is None else float(value) for value in record["regret"]]
        known = places.setdefault(record["method"], [float(place) for place in record[axis]])
        places[record["method"]] = [place for place in known if place in record[axis]]
        task = runs[record["method"]][record["table"], record["task"]]
        task[record.get("seed", len(task))] = values
    return {
        method: _mean_regret(places[method], list(tasks.values())) for method, tasks in runs.items()
    }


def _mean_regret(places: list[float], tasks: Sequence[Mapping[int, list[float]]]) -> RegretCurve:
    """Return the curve of one method from the runs of each task, by seed."""
    length = len(places)
    means = [np.mean([run[:length] for run in task.values()], axis=0) for task in tasks]
    mean = np.mean(means, axis=0)
    seeds = set.intersection(*(set(task) for task in tasks))
    if len(seeds) > 1:
        averaged = [np.mean([task[seed][:length] for task in tasks], axis=0) for seed in seeds]
        low, high = np.quantile(averaged, BAND_QUANTILES, axis=0)
        of = f"{BAND_QUANTILES[1] - BAND_QUANTILES[0]:.0%} of the seeds"
    else:
        error = np.std(means, axis=0, ddof=1) / np.sqrt(len(means)) if means[1:] else 0.0 * mean
        low, high = mean - error, mean + error
        of = "one standard error over tasks" if means[1:] else ""
    return RegretCurve(places, mean.tolist(), low.tolist(), high.tolist(), of)


def _read(path: Path) -> list[Mapping[str, object]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise TableError(
            f"{str(path)!r} cannot be read as results of scrimp bench: {error}"
        ) from None
