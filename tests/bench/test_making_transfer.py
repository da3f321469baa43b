"""Tables of model families."""

import numpy as np
import pytest

from scrimp.bench.made_data import FAMILIES, Family
from scrimp.bench.making import (
    MakingSettings,
    chosen_families,
    run_transfer_work,
    table_work,
    write_transfer,
)
from scrimp.bench.transfer_suite import read_tasks
from scrimp.errors import TableError

SMALL = MakingSettings(configs=5, small=True)


def test_a_small_table(tmp_path):
    cells = table_work("transfer", "svm", SMALL)
    records = [run_transfer_work(cell) for cell in cells]
    assert records == [run_transfer_work(cell) for cell in cells]
    write_transfer(tmp_path / "svm.npz", SMALL, records)
    tasks = read_tasks(tmp_path / "svm.npz")
    assert (tasks.name, tasks.tasks) == ("svm", ("iris", "wine", "moons", "diabetes"))
    task = tasks.task("wine")
    assert len(task.configs) == 5 and set(task.features) == {f"f{place}" for place in range(5)}
    values = [record["value"][1] for record in records]
    np.testing.assert_array_equal(
        task.values, [np.nan if value is None else value for value in values]
    )
    assert 0.0 <= np.nanmin(task.values) < 0.2


def test_what_fails_is_none(monkeypatch):
    class Broken:
        def fit(self, x, y):
            raise ValueError("no")

    class Wild:
        def fit(self, x, y):
            return self

        def predict(self, x):
            return np.full(len(x), 1e9)

    families = {"broken": lambda *_: Broken(), "wild": lambda *_: Wild()}
    for name, build in families.items():
        monkeypatch.setitem(FAMILIES, name, Family(FAMILIES["svm"].space, build))
    found = {
        name: run_transfer_work(table_work("transfer", name, SMALL)[0])["value"]
        for name in families
    }
    assert found["broken"] == [None] * 4
    assert found["wild"] == [1.0, 1.0, 1.0, None]  # every class wrong; numbers beyond all reason


def test_families_by_name():
    assert chosen_families(["all"]) == list(FAMILIES)
    assert chosen_families(["mlp", "svm"]) == ["mlp", "svm"]
    with pytest.raises(TableError, match="there is no family 'tree'; there are svm"):
        chosen_families(["tree"])
