"""Cells in worker processes: kept as they come, resumed, pinned to one thread."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scrimp.bench import runner
from scrimp.bench.regret_suite import function_cells
from scrimp.bench.results import read_runs
from scrimp.errors import MethodError
from scrimp.plugins import plugins


def test_results_come_in_order_and_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "results.jsonl"
    cells = function_cells(["random"], ["branin", "levy4"], 2, 3)
    first = runner.run_cells(cells[:3], out)
    assert [(record["task"], record["seed"]) for record in first] == [
        ("branin", 0),
        ("levy4", 0),
        ("branin", 1),
    ]
    assert first == [
        runner.run_cell(cell) | {"decision_seconds": old["decision_seconds"]}
        for cell, old in zip(cells, first, strict=False)
    ]
    ran: list[object] = []
    plain = runner._results
    monkeypatch.setattr(
        runner,
        "_results",
        lambda missing, processes: ran.extend(missing) or plain(missing, processes),
    )
    records = runner.run_cells(cells, out)
    assert ran == cells[3:] and records[:3] == first
    assert sorted(read_runs(out), key=str) == sorted(records, key=str)
    assert runner.run_cells(cells, out) == records and ran == cells[3:]


def test_workers_have_one_thread_and_this_process_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.delenv("SCRIMP_PLUGINS", raising=False)
    monkeypatch.setattr(plugins, "_named", {"toy_one": None, "toy_two": None})
    with runner._inherited():
        assert {os.environ[name] for name in runner.ONE_THREAD} == {"1"}
        assert os.environ["SCRIMP_PLUGINS"] == "toy_one,toy_two"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7" and "MKL_NUM_THREADS" not in os.environ
    assert "SCRIMP_PLUGINS" not in os.environ


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_and_nothing_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    with runner._progress(3, 1) as advance:
        advance()
    printed = capsys.readouterr()
    assert printed.out == "" and ("2/3" in printed.err) == terminal == bool(printed.err)


def test_errors_of_workers_arrive(tmp_path: Path) -> None:
    (cell,) = function_cells(["random"], ["branin"], 1, 3)
    cells = [replace(cell, method="random:kernel=rbf")]
    with pytest.raises(MethodError, match="no setting 'kernel'"):
        runner.run_cells(cells, tmp_path / "results.jsonl")
    assert read_runs(tmp_path / "results.jsonl") == []
