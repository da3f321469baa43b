"""Every drawn point lies within the range of its axis, or the figure says how many do not."""

import inspect
import json
import math
import re
from collections import Counter
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError

DRAWN = [
    name
    for name in scrimp.plots.__all__
    if not name.startswith("selection_") and name not in ("regret", "source_weights")
]


def inside(value: object, axis: dict[str, Any]) -> bool:
    """True if a value lies on an axis; every value lies on an axis without a range."""
    if axis.get("type") == "log" and isinstance(value, int | float):
        if value <= 0:
            return False
        value = math.log10(value)
    if "range" not in axis or not isinstance(value, int | float):
        return True
    low, high = sorted(axis["range"])
    return bool(low <= value <= high)


def points(trace: dict[str, Any]) -> list[tuple[object, object]]:
    pairs = zip(trace.get("x") or [], trace.get("y") or [], strict=False)
    return [(x, y) for x, y in pairs if x is not None and y is not None]


def outside(figure: dict[str, Any]) -> int:
    """The number of points of lines and dots that lie outside, in the panel with most of them.
    Models may lie outside."""
    counts: Counter[tuple[str, str]] = Counter()
    for trace in figure["data"]:
        if trace.get("type", "scatter") != "scatter" or trace.get("hoverinfo") == "skip":
            continue
        across, up = trace.get("xaxis", "x"), trace.get("yaxis", "y")
        x, y = (figure["layout"][f"{name[0]}axis{name[1:]}"] for name in (across, up))
        if trace.get("name") != "mean":
            counts[across, up] += sum(not (inside(a, x) and inside(b, y)) for a, b in points(trace))
    return max(counts.values(), default=0)


def stated(figure: dict[str, Any]) -> int:
    words = figure["layout"]["meta"]["alternative"]
    return sum(int(number) for number in re.findall(r"(\d+) points? (?:is|are) outside", words))


@pytest.fixture(scope="module")
def diverged() -> scrimp.Study:
    """Two metrics over three orders of magnitude, with a few values far beyond."""
    study = scrimp.create_study(
        "diverged",
        scrimp.Space(a=scrimp.Float(0, 1), b=scrimp.Float(1e-3, 1, log=True)),
        metrics={"error": "minimize", "size": "minimize"},
        method="sobol",
        storage="memory://",
        seed=0,
    )

    def measure(trial: Any) -> dict[str, float]:
        a, b = trial.params["a"], trial.params["b"]
        return {"error": 1e6 if a > 0.9 else a + b, "size": 1e5 if b > 0.9 else 1.0 - a + b}

    study.optimize(measure, n_trials=40)
    return study


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("which", ["staged", "whole", "diverged"])
def test_points_lie_within_their_axes(
    name: str, which: str, log: bool, request: pytest.FixtureRequest
) -> None:
    draw = getattr(scrimp.plots, name)
    takes_log = "log" in inspect.signature(draw).parameters
    study = request.getfixturevalue(which)
    try:
        figure = draw(study, log=True) if log and takes_log else draw(study)
    except StudyError:
        return
    plain = json.loads(figure.to_json())
    with_numbers = json.loads(json.dumps(plain))
    for place, trace in enumerate(with_numbers["data"]):
        for letter in "xy":
            given = getattr(figure.data[place], letter, None)
            trace[letter] = None if given is None else list(given)
    assert outside(with_numbers) <= stated(with_numbers)


def test_a_point_outside_is_noticed() -> None:
    axis = {"xaxis": {}, "yaxis": {"type": "log", "range": [0.007, 0.13]}}
    figure = {"data": [{"x": [1, 2], "y": [0.02, 1.1]}], "layout": axis}
    assert outside(figure) == 1


def test_only_points_that_are_drawn_count_as_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scrimp.plots.progress.MAX_POINTS", 20)
    monkeypatch.setattr("scrimp.plots.parameters.MAX_SLICE_DOTS", 20)
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("many", space, method="random", storage="memory://", seed=0)
    study.optimize(lambda t: 1e6 if t.id % 5 == 4 else t.params["x"] + 0.1, n_trials=60)
    for draw in (scrimp.plots.history, scrimp.plots.slice):
        plain = draw(study)
        figure = {
            "data": [
                {"x": list(one.x), "y": list(one.y), "yaxis": one.yaxis or "y"}
                for one in plain.data
                if one.name != "best"
            ],
            "layout": json.loads(plain.to_json())["layout"],
        }
        assert outside(figure) == stated(figure) > 0
