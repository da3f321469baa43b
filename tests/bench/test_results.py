"""Results files: what is written is read, torn lines do no harm, foreign files are refused."""

import json
from pathlib import Path

import pytest

from scrimp.bench.results import Cell, append_result, read_runs, result_cell
from scrimp.errors import TableError

CELL = Cell("functions", "functions", "branin", "gp:kernel=rbf-ard", 3, 50, source="somewhere")


def test_a_result_leads_back_to_its_cell_wherever_the_table_lies(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    assert read_runs(out) == []
    append_result(out, {**CELL.head(), "regret": [None, 0.5]})
    (record,) = read_runs(out)
    assert record["regret"] == [None, 0.5]
    assert result_cell(record) == Cell(
        "functions", "functions", "branin", "gp:kernel=rbf-ard", 3, 50
    )


def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    append_result(out, CELL.head())
    whole = out.read_text()
    out.write_text(whole + whole[:25])
    assert len(read_runs(out)) == 1
    append_result(out, {**CELL.head(), "seed": 4})
    assert [record["seed"] for record in read_runs(out)] == [3, 4]


@pytest.mark.parametrize("line", ["no json", "3", "{}", json.dumps({"suite": "functions"})])
def test_files_that_are_no_results_are_refused(tmp_path: Path, line: str) -> None:
    out = tmp_path / "results.jsonl"
    out.write_text(json.dumps(CELL.head()) + "\n" + line + "\n")
    with pytest.raises(TableError, match=r"line 2 of .* is not a result of scrimp bench"):
        read_runs(out)
