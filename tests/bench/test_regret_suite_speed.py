"""What a decision costs: every timed ask refits, the ones between do not."""

import pytest

from scrimp.bench.regret_suite import TIMED_ASKS, run_speed, speed_cells
from scrimp.bench.results import Cell
from scrimp.errors import TableError


def test_the_model_is_timed_with_and_without_refits() -> None:
    record = run_speed(Cell("speed", "speed", "hartmann6", "gp", 0, 45))
    assert record["n"] == 45 and len(record["proposals"]) == TIMED_ASKS
    assert 0 < record["ask_seconds"] <= record["ask_seconds_median"] < 5
    assert 0 < record["between_refits_seconds"] < 5
    assert isinstance(record["acquisition"], float)
    assert (
        record["decisions"] == TIMED_ASKS + 1
    )  # a fit on 49 observations is due again after 2 more: one ask lies between


def test_methods_without_a_model_have_no_refits() -> None:
    record = run_speed(Cell("speed", "speed", "hartmann6", "random", 0, 20))
    assert (
        record["between_refits_seconds"] is None
        and record["acquisition"] is None
        and record["ask_seconds"] < 0.05
    )


def test_cells() -> None:
    assert [(cell.method, cell.size) for cell in speed_cells(["gp", "tpe"], [50, 100])] == [
        ("gp", 50),
        ("tpe", 50),
        ("gp", 100),
        ("tpe", 100),
    ]
    with pytest.raises(TableError, match="size 1 is too small"):
        speed_cells(["gp"], [1])
