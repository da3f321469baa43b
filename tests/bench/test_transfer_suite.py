"""Leave one task out, on a small table of our own making."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.results import append_result
from scrimp.bench.transfer_suite import (
    TransferSettings,
    TransferTask,
    measured,
    modelled,
    run_trace,
    run_transfer,
    trace_cells,
    trace_file,
    transfer_cells,
)
from scrimp.errors import TableError

META = {
    "format": 1,
    "name": "related",
    "metric": "error",
    "goal": "min",
    "space": [
        {"name": "a", "type": "float", "low": 0.0, "high": 1.0},
        {"name": "b", "type": "float", "low": 0.0, "high": 1.0},
    ],
    "budget": None,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    configs = rng.random((40, 2))
    value = np.stack(
        [(configs[:, 0] - 0.3 - 0.03 * k) ** 2 + (configs[:, 1] - 0.7) ** 2 for k in range(6)]
    )[:, :, None]
    value[5] = 1.0  # a constant task teaches nothing, and nothing can be found wrong in it
    path = tmp_path_factory.mktemp("tables") / "related.npz"
    names = np.array([f"t{k}" for k in range(6)])
    np.savez(path, meta=json.dumps(META), tasks=names, configs=configs, value=value)
    return path


def regrets(table: Path, method: str, **settings: object) -> list[float]:
    cells = transfer_cells(table, [method], ["t1"], 1, TransferSettings(trials=5, **settings))  # type: ignore[arg-type]
    record = run_transfer(cells[0])
    assert record["at"] == [1, 2, 3, 5] and record["method"] == method and record["decisions"] == 5
    assert record["sources"] == settings.get("sources", "full")
    return list(record["regret"])


def test_past_studies_help_and_cold_methods_do_not_see_them(table: Path) -> None:
    warm, cold = regrets(table, "rgpe"), regrets(table, "gp:initial=3")
    assert warm[0] < 0.1 and warm[-1] <= cold[-1]
    assert cold == regrets(table, "gp:initial=3", sources="inverted")


def test_inverted_and_shuffled_past(table: Path) -> None:
    assert regrets(table, "tst-r", sources="inverted")[0] > 0.5
    assert regrets(table, "portfolio", sources="shuffled") != regrets(table, "portfolio")


def test_traces_are_earlier_runs_kept_in_a_file(table: Path, tmp_path: Path) -> None:
    cells = trace_cells(table, 1)
    assert [cell.task for cell in cells] == [f"t{k}" for k in range(6)] and {
        cell.method for cell in cells
    } == {"gp"}
    for cell in (replace(cells[0], size=12), replace(cells[2], size=12)):
        record = run_trace(cell)
        assert len(record["tried"]) == 12
        append_result(trace_file(table, tmp_path), record)
    assert regrets(table, "tst-r", sources="traces", folder=tmp_path)[0] < 0.1


def test_measures_by_hand() -> None:
    task = TransferTask("t", None, lambda config: None, (), np.array([0.0, 1.0, 2.0, 4.0]), {})  # type: ignore[arg-type]
    record = measured(task, [float("nan"), 2.0, 4.0, 0.0], 10)
    assert record["at"] == [1, 2, 3, 5, 10]
    assert record["regret"] == [1.0, 0.5, 0.5, 0.0, 0.0]  # a study that ended early keeps its last
    assert record["solved"] == [False, False, False, True, True]
    assert record["grid_rank"] == [5, 3, 3, 1, 1]


def test_unknown_tasks_and_sources_are_refused(table: Path) -> None:
    with pytest.raises(TableError, match="no task 'none'"):
        transfer_cells(table, ["rgpe"], ["none"], 1, TransferSettings())
    with pytest.raises(
        TableError, match="no kind of sources 'some'; there are full, traces, shuffled, inverted"
    ):
        transfer_cells(table, ["rgpe"], ["all"], 1, TransferSettings(sources="some"))


def test_methods_that_compare_features_need_a_table_that_has_them(
    table: Path, tmp_path: Path
) -> None:
    for method in ("tst-m", "taf-m:bandwidth=0.2", "rgpe:weights=features"):
        with pytest.raises(
            TableError, match=r"related.npz has none for 't1'; add 'meta_features'.*tst-r"
        ):
            transfer_cells(table, ["gp", method], ["t1"], 1, TransferSettings(trials=3))
    described = tmp_path / "described.npz"
    np.savez(described, **np.load(table), meta_features=np.arange(12.0).reshape(6, 2))
    cells = transfer_cells(described, ["tst-m"], ["t1"], 1, TransferSettings(trials=3))
    assert run_transfer(cells[0])["regret"][-1] < 0.1


def test_every_method_runs_on_the_constant_task_too(table: Path) -> None:
    for method in ("auto", "taf-r"):
        cells = transfer_cells(table, [method], ["t5"], 1, TransferSettings(trials=6))
        assert run_transfer(cells[0])["regret"] == [0.0] * 4


def test_forests_stand_for_the_tables(table: Path) -> None:
    cells = transfer_cells(
        modelled(table, "forest"), ["tst-r"], ["t1"], 1, TransferSettings(trials=3)
    )
    record = run_transfer(cells[0])
    assert record["table"] == "related-forest" and record["regret"][-1] < 0.2
