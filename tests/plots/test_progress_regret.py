"""Means of regrets over seeds, then over tasks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import TableError
from scrimp.plots.progress import mean_regrets


def record(
    task: str, method: str, seed: int, regret: list[float], axis: str = "at"
) -> dict[str, Any]:
    head = {
        "suite": "functions",
        "table": "functions",
        "task": task,
        "method": method,
        "seed": seed,
        "size": 2,
    }
    return {**head, axis: [1, 2], "regret": regret}


RECORDS = [
    record("a", "gp", 0, [1.0, 0.2]),
    record("a", "gp", 1, [3.0, 0.4]),
    record("b", "gp", 0, [4.0, 0.5]),
    record("a", "random", 0, [2.0, 2.0]),
]


def test_means_and_errors_by_hand() -> None:
    xs, mean, low, high, of = mean_regrets(RECORDS, "at")["gp"]
    assert xs == [1.0, 2.0] and mean == pytest.approx([3.0, 0.4])
    error = [np.std([2.0, 4.0], ddof=1) / np.sqrt(2), np.std([0.3, 0.5], ddof=1) / np.sqrt(2)]
    assert np.subtract(high, mean) == pytest.approx(error) == np.subtract(mean, low)
    assert of == "one standard error over tasks"  # only seed 0 ran on both tasks


def test_bands_spread_over_seeds() -> None:
    seeds = range(11)
    records = [record(task, "gp", seed, [1.0 + seed, 5.0]) for task in "ab" for seed in seeds]
    _, mean, low, high, of = mean_regrets(records, "at")["gp"]
    assert mean == [6.0, 5.0] and low == [2.0, 5.0] and high == [10.0, 5.0]
    assert of == "80% of the seeds"
    picture = scrimp.plots.regret(records)
    assert list(picture.data[0].y) == [10.0, 5.0] and list(picture.data[1].y) == [2.0, 5.0]
    assert picture.layout.meta["alternative"].endswith("Bands: 80% of the seeds.")


def test_the_picture_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in RECORDS))
    picture = scrimp.plots.regret(path)
    lines = {trace.name: list(trace.y) for trace in picture.data if trace.name}
    assert lines == {"gp": pytest.approx([3.0, 0.4]), "random": [2.0, 2.0]}
    assert picture.layout.xaxis.title.text == "evaluations" and picture.layout.yaxis.type == "log"


def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="with one suite"):
        scrimp.plots.regret([RECORDS[0], record("a", "gp", 0, [1.0], axis="spent")])
    (tmp_path / "x").write_text("hello")
    for path in (tmp_path / "x", tmp_path / "none"):
        with pytest.raises(TableError, match="cannot be read"):
            scrimp.plots.regret(path)


def test_a_band_that_would_reach_below_zero_stays_on_the_logarithmic_axis() -> None:
    wide = [record("a", "gp", 0, [0.01, 0.01]), record("b", "gp", 0, [9.0, 9.0])]
    unknown = [record("a", "tpe", 0, [None, 1.0])]  # type: ignore[list-item]
    picture = scrimp.plots.regret([*wide, *unknown])
    assert (
        picture.layout.yaxis.type == "log"
        and picture.layout.title.text == "Regret of 2 methods on functions"
    )
    assert min(picture.data[1].y) == pytest.approx(0.1 * 4.505)
