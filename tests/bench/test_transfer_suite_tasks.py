"""Tasks of transfer comparisons."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.transfer_suite import TransferTask, modelled, read_tasks
from scrimp.errors import TableError
from scrimp.space.space import Pool


def test_tables_give_final_values(write_table: Callable[..., Path]) -> None:
    tasks = read_tasks(write_table(meta_features=np.array([[1.0, np.nan], [3.0, 4.0]])))
    one, two = tasks.task("one"), tasks.task("two")
    assert one.measure(one.configs[0]) is None and math.isnan(one.values[0])  # it diverged
    assert two.measure(two.configs[4]) == two.values[4]
    assert one.features == {"f0": 1.0} and two.features == {"f0": 3.0, "f1": 4.0}


def test_regret_and_rank_by_hand() -> None:
    task = TransferTask(
        "t", None, lambda config: None, (), np.array([3.0, 1.0, np.nan, 5.0, 3.0]), {}
    )  # type: ignore[arg-type]
    assert [task.regret(value) for value in (1.0, 3.0, 5.0, math.nan)] == [0.0, 0.5, 1.0, 1.0]
    assert [task.rank(value) for value in (1.0, 3.0, 5.0, math.nan)] == [1, 2, 4, 6]
    with pytest.raises(TableError, match="no finite final value"):
        TransferTask("t", None, lambda config: None, (), np.array([np.nan]), {}).regret(1.0)  # type: ignore[arg-type]
    equal = TransferTask("t", None, lambda config: None, (), np.array([2.0, 2.0]), {})  # type: ignore[arg-type]
    assert equal.regret(2.0) == 0.0


def test_surrogates_answer_for_any_configuration(data: Path) -> None:
    tasks = read_tasks(data / "surrogates" / "lcbench_yahpo.npz")
    task = tasks.task(tasks.tasks[0])
    value = task.measure(task.configs[7])
    assert value == pytest.approx(task.values[7], rel=1e-5) and len(task.values) == 2048


def test_forests_answer_for_any_configuration(write_table: Callable[..., Path]) -> None:
    path = write_table()
    tasks = read_tasks(modelled(path, "forest"))
    assert tasks.name == "small-forest" and tasks.tasks == ("one", "two")
    one, two = tasks.task("one"), tasks.task("two")
    assert (
        not isinstance(one.space, Pool) and len(one.values) == 11 and len(two.values) == 12
    )  # one diverged
    assert two.measure(two.configs[3]) == two.values[3]
    value = one.measure({"kernel": "linear", "c": 0.7, "depth": 2})
    assert value is not None and one.values.min() - 1.0 < value < one.values.max() + 1.0
    assert modelled(path, "") == path
    with pytest.raises(TableError, match="surrogate is 'tree'; it must be 'forest'"):
        modelled(path, "tree")
