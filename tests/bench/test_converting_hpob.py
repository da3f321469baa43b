"""HPO-B files: a small one of the same form."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.bench.converting import hpob_table, is_hpob
from scrimp.bench.transfer_suite import read_tasks
from scrimp.errors import TableError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    spaces: dict[str, Any] = {"4796": {}, "5527": {}}
    for space, columns in (("4796", 3), ("5527", 2)):
        for number in range(3):
            x = rng.random((12, columns))
            x[:, -1] = 0.5
            x[5] = x[2]
            y = 1.0 - (x[:, 0] - 0.1 * number) ** 2
            spaces[space][str(31 + number)] = {"X": x.tolist(), "y": y[:, None].tolist()}
    path = tmp_path / "meta-test.json"
    path.write_text(json.dumps(spaces))
    return path


def test_spaces_and_data_sets(file: Path) -> None:
    table = hpob_table(f"{file}#4796")
    assert table.tasks == ("31", "32", "33")
    assert table.space == scrimp.Space(x0=scrimp.Float(0.0, 1.0), x1=scrimp.Float(0.0, 1.0))
    task = table.task("32")
    assert len(task.pool.configs) == len(task.final) == 11  # one configuration stood there twice
    assert task.final == pytest.approx([(config["x0"] - 0.1) ** 2 for config in task.pool.configs])
    assert (
        task.final.min() > 0.0
    )  # values are not normalised by the best there is: that would tell when to stop


def test_as_tasks_of_a_comparison(file: Path) -> None:
    tasks = read_tasks(f"{file}#5527")
    assert (tasks.name, tasks.tasks) == ("hpob-5527", ("31", "32", "33"))
    task = tasks.task("31")
    assert task.measure(task.configs[3]) == pytest.approx(task.values[3])
    assert task.regret(task.finite[0]) == 0.0 and task.regret(task.finite[-1]) == 1.0
    with pytest.raises(
        TableError, match=r"has search spaces 4796, 5527; name one, as in meta-test.json#4796"
    ):
        read_tasks(file)
    with pytest.raises(TableError, match="has no search space '9', only 4796, 5527"):
        read_tasks(f"{file}#9")
    with pytest.raises(TableError, match=r"no task '99' in .*; there are 31, 32, 33"):
        tasks.task("99")


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("[]", "is not an HPO-B file"),
        ('{"1": {"2": {"X": [[0.5]]}}}', "is not an HPO-B file"),
        ("{", "is not JSON"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, record: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(record)
    with pytest.raises(TableError, match=message):
        hpob_table(path)


def test_values_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps({"1": {"2": {"X": [[0.5], [7.0]], "y": [[0.1], [0.2]]}}}))
    with pytest.raises(TableError, match="X must have one row in the unit cube per value"):
        hpob_table(path)
    assert is_hpob(path) and not is_hpob(Path("table.npz"))
    with pytest.raises(TableError, match="there is no file"):
        hpob_table(tmp_path / "none.json")
