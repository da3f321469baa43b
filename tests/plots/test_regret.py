"""Means of regrets over seeds, then over tasks."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import TableError
from scrimp.plots.regret import mean_regrets


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
    xs, mean, error = mean_regrets(RECORDS, "at")["gp"]
    assert xs == [1.0, 2.0] and mean == pytest.approx([3.0, 0.4])
    assert error == pytest.approx(
        [np.std([2.0, 4.0], ddof=1) / np.sqrt(2), np.std([0.3, 0.5], ddof=1) / np.sqrt(2)]
    )


def test_the_picture_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in RECORDS))
    picture = scrimp.plots.regret(path)
    lines = {trace.name: list(trace.y) for trace in picture.data if trace.name}
    assert lines == {"gp": pytest.approx([3.0, 0.4]), "random": [2.0, 2.0]}
    assert picture.layout.xaxis.title.text == "evaluations" and picture.layout.yaxis.type == "log"


def test_what_is_no_result_is_said(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="one suite only"):
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
