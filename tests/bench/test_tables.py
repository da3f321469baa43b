"""Benchmark tables: what a file means, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrimp.bench.tables import read_table
from scrimp.errors import TableError

Write = Callable[..., Path]


def meta(write_table: Write, **changes: Any) -> str:
    with np.load(write_table()) as file:
        record = json.loads(str(file["meta"]))
    return json.dumps(
        {key: value for key, value in {**record, **changes}.items() if value != "left out"}
    )


def test_what_a_file_means(write_table: Write) -> None:
    table = read_table(write_table())
    assert (table.name, table.metric, table.unit, table.tasks) == (
        "small",
        "error",
        "epoch",
        ("one", "two"),
    )
    assert table.levels == (1.0, 3.0)
    task = table.task("one")
    assert task.pool.configs[0] == {"kernel": "linear", "c": 0.01, "depth": 1}
    assert task.pool.configs[5] == {
        "kernel": "rbf",
        "c": table.configs[5, 1],
        "depth": 2,
        "gamma": 2.5,
    }
    assert task.end.tolist() == [2] * 12 and task.elapsed is None and task.meta_features is None
    np.testing.assert_array_equal(task.final, table.value[0, :, 1])
    assert np.isnan(task.final[0]) and task.best == np.nanmin(table.value[0, :, 1])


def test_runs_end_where_the_file_says(write_table: Write) -> None:
    end = np.ones((2, 12), dtype=np.int16)
    end[1, 3] = 2
    elapsed = np.cumsum(np.ones((2, 12, 2)), axis=2)
    table = read_table(
        write_table(end=end, elapsed=elapsed, meta_features=np.arange(6.0).reshape(2, 3))
    )
    task = table.task("two")
    expected = table.value[1, :, 0].copy()
    expected[3] = table.value[1, 3, 1]
    np.testing.assert_array_equal(task.final, expected)
    assert task.elapsed is not None and task.elapsed.tolist() == [[1.0, 2.0]] * 12
    assert task.meta_features is not None and task.meta_features.tolist() == [3.0, 4.0, 5.0]


def test_configurations_may_differ_per_task_and_repeats_are_left_out(write_table: Write) -> None:
    with np.load(write_table()) as file:
        configs = np.stack([file["configs"]] * 2)
    configs[1, 7] = configs[1, 2]
    configs[1, 11, 1] = 7.5
    table = read_table(write_table(configs=configs))
    first, second = table.task("one"), table.task("two")
    assert len(first.pool.configs) == 12 and len(second.pool.configs) == 11
    assert second.pool.configs[-1]["c"] == 7.5
    np.testing.assert_array_equal(second.value, np.delete(table.value[1], 7, axis=0))


def test_infinite_values_are_failures(write_table: Write) -> None:
    value = np.ones((2, 12, 2))
    value[0, 4, 1] = np.inf
    value[1] = np.nan
    table = read_table(write_table(value=value))
    assert np.isnan(table.task("one").final[4])
    with pytest.raises(TableError, match="task 'two' has no finite final value"):
        _ = table.task("two").best


def test_unknown_task(write_table: Write) -> None:
    with pytest.raises(TableError, match="no task 'three' in table 'small'; there are one, two"):
        read_table(write_table()).task("three")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tasks": None}, "no array 'tasks'; it holds meta, configs, value"),
        ({"meta": None}, "no array 'meta'"),
        ({"meta": "{"}, "meta is not JSON"),
        ({"tasks": np.array(["one", "one"])}, "tasks has a name twice"),
        ({"tasks": np.array(["one"])}, r"value has shape \(2, 12, 2\); .* with 1 tasks"),
        ({"value": np.ones((2, 12))}, r"value has shape \(2, 12\)"),
        (
            {"configs": np.ones((12, 3))},
            r"configs has shape \(12, 3\); it must be \(12, 4\) or \(2, 12, 4\)",
        ),
        ({"elapsed": np.ones((2, 12))}, "elapsed has shape"),
        ({"elapsed": -np.cumsum(np.ones((2, 12, 2)), axis=2)}, "elapsed falls"),
        ({"end": np.zeros((2, 12), dtype=int)}, "end must be .* whole numbers from 1 to 2"),
        ({"meta_features": np.ones((3, 2))}, "meta_features has shape"),
    ],
)
def test_arrays_that_are_refused(write_table: Write, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_table(write_table(**changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2; only format 1 can be read"),
        ({"metric": "left out"}, "meta has no 'metric'"),
        ({"goal": "max"}, "goal is 'max'; it must be 'min'"),
        ({"budget": None}, "budget is null and value has 2 levels"),
        ({"budget": "epoch"}, "budget is 'epoch'; it must be null or"),
        ({"budget": {"name": "epoch", "levels": [1, 2, 3]}}, "they must be 2 rising numbers"),
        ({"budget": {"name": "epoch", "levels": [3, 1]}}, "they must be 2 rising numbers"),
        ({"space": [{"name": "x", "type": "real"}]}, "has type 'real'"),
    ],
)
def test_meta_that_is_refused(write_table: Write, changes: dict[str, Any], message: str) -> None:
    path = write_table(meta=meta(write_table, **changes))
    with pytest.raises(TableError, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("row", "column", "value", "message"),
    [
        (3, 0, 2.0, "configuration 3 of the pool is not in its space: .*'kernel'"),
        (3, 0, 0.5, "'kernel'"),
        (4, 1, 99.0, "'c'"),
        (4, 2, 1.5, "'depth'"),
        (4, 1, np.nan, "'c' is missing"),
        (0, 3, 1.0, "'gamma' .* left out"),
        (1, 3, np.nan, "'gamma' is missing"),
    ],
)
def test_configurations_that_are_refused(
    write_table: Write, row: int, column: int, value: float, message: str
) -> None:
    with np.load(write_table()) as file:
        configs = file["configs"]
    configs[row, column] = value
    with pytest.raises(TableError, match=f"task 'one' of table 'small': .*{message}"):
        read_table(write_table(configs=configs)).task("one")


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"there is no table at .*none\.npz"):
        read_table(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(TableError, match=r"is not a \.npz file"):
        read_table(tmp_path / "text.npz")
    np.save(tmp_path / "array.npy", np.ones(3))
    with pytest.raises(TableError, match=r"is not a \.npz file"):
        read_table(tmp_path / "array.npy")
    np.savez(tmp_path / "objects.npz", meta=np.array([{}], dtype=object))
    with pytest.raises(TableError, match=r"is not a \.npz file of plain arrays"):
        read_table(tmp_path / "objects.npz")


@pytest.mark.parametrize(
    ("name", "tasks", "configs", "levels"),
    [
        ("curves/lcbench", 18, 2000, 50),
        ("curves/alexnet_imagenet", 1, 512, 100),
        ("transfer/wistuba_svm", 50, 288, 1),
        ("transfer/openml_random_forest", 94, 500, 1),
    ],
)
def test_real_tables(data: Path, name: str, tasks: int, configs: int, levels: int) -> None:
    table = read_table(data / f"{name}.npz")
    task = table.task(table.tasks[-1])
    assert (len(table.tasks), len(task.pool.configs), len(table.levels)) == (tasks, configs, levels)
    assert np.isfinite(task.best)
    with np.load(data / f"{name}.npz") as file:  # an independent look at one row
        raw = file["configs"] if file["configs"].ndim == 2 else file["configs"][-1]
        meta = json.loads(str(file["meta"]))
    described = {
        item["name"]: item["choices"][int(number)] if "choices" in item else number
        for item, number in zip(meta["space"], raw[100], strict=True)
        if not np.isnan(number)
    }
    assert task.pool.configs[100] == described


def test_a_number_with_a_step_is_a_number_and_no_index(write_table: Write) -> None:
    space = [
        {"name": "x", "type": "float", "low": 0, "high": 1, "step": 0.1},
        {"name": "n", "type": "int", "low": 8, "high": 64, "step": 8},
    ]
    configs = np.array([[0.1 * (row % 11), 8.0 * (row % 8 + 1)] for row in range(12)])
    table = read_table(write_table(meta=meta(write_table, space=space), configs=configs))
    assert table.task("one").pool.configs[3] == {"x": 0.3, "n": 32}
    configs[0, 0] = 0.25
    with pytest.raises(
        TableError, match=r"'x' is 0\.25; it must be from 0\.0 to 1\.0 in steps of 0\.1"
    ):
        read_table(write_table(meta=meta(write_table, space=space), configs=configs)).task("one")
