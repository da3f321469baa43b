"""Methods on tables: without replacement, against the lowest value of the table."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.regret_suite import run_table, table_cells
from scrimp.bench.results import Cell
from scrimp.bench.tables import read_table
from scrimp.errors import TableError

Write = Callable[..., Path]


def test_cells_of_all_or_some_tasks(write_table: Write) -> None:
    path = write_table()
    cells = table_cells(path, ["gp", "random"], ["all"], 3, 8)
    assert (
        len(cells) == 12
        and {cell.task for cell in cells} == {"one", "two"}
        and cells[0].table == "small"
    )
    assert {cell.task for cell in table_cells(path, ["gp"], ["two"], 3, 8)} == {"two"}
    with pytest.raises(TableError, match="no task 'three'"):
        table_cells(path, ["gp"], ["one", "three"], 1, 8)


@pytest.mark.parametrize("method", ["random", "sobol", "gp"])
def test_the_whole_pool_reaches_the_optimum(write_table: Write, method: str) -> None:
    path = write_table()
    (cell,) = table_cells(path, [method], ["one"], 1, 15)
    record = run_table(cell)
    assert record["decisions"] == 12 and record["at"] == list(range(1, 16))
    assert record["regret"][11] == 0.0 and len(record["regret"]) == 15
    found = [value for value in record["regret"] if value is not None]
    assert found == sorted(found, reverse=True)


def test_a_failed_run_finds_nothing(write_table: Write) -> None:
    value = np.full((2, 12, 2), np.nan)
    value[0, 3, 1] = 0.5
    (cell,) = table_cells(write_table(value=value), ["random"], ["one"], 1, 12)
    regret = run_table(cell)["regret"]
    assert set(regret) == {None, 0.0}


def test_a_real_task(data: Path) -> None:
    path = data / "transfer" / "wistuba_svm.npz"
    name = read_table(path).tasks[0]
    records = [
        run_table(Cell("tables", "wistuba_svm", name, "random", 0, 40, source=str(path)))
        for _ in range(2)
    ]
    assert records[0]["regret"] == records[1]["regret"] and 0 <= records[0]["regret"][-1] < 0.2
