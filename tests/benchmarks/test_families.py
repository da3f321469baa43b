"""The benchmark of families: which tasks come first, what is chosen without a family, ranks."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def families():
    path = ROOT / "benchmarks" / "families.py"
    specification = importlib.util.spec_from_file_location("families", path)
    module = importlib.util.module_from_spec(specification)
    sys.modules["families"] = module
    specification.loader.exec_module(module)
    yield module
    del sys.modules["families"]


class Tasks:
    def __init__(self, count):
        self.tasks = tuple(f"task{number}" for number in range(count))


def test_every_family_gets_a_few_tasks_before_one_gets_many(families, monkeypatch):
    sizes = {"small": 4, "large": 35}
    monkeypatch.setattr(families, "read_tasks", lambda table: Tasks(sizes[table]))
    played = [(number, table, len(names)) for number, table, names in families.rounds([*sizes], 9)]
    assert played == [
        (1, "small", 3),
        (1, "large", 3),
        (2, "small", 4),
        (2, "large", 6),
        (3, "large", 9),
    ]
    few, many = families.spread("large", 6), families.spread("large", 20)
    assert many[:6] == few and len(set(many)) == 20
    places = sorted(int(name.removeprefix("task")) for name in few)
    assert max(np.diff([0, *places, 34])) <= 14  # all over the table


def test_a_family_has_no_say_in_what_is_reported_on_it(families):
    def runs(family, **regrets):
        found = {name: np.full(6, regret) for name, regret in regrets.items()}
        return {family: {("task", 0): found}}

    everything = {
        **runs("one", a=0.1, b=0.9),
        **runs("two", a=0.5, b=0.4),
        **runs("three", a=0.5, b=0.4),
    }
    assert families.chosen_without(everything, "one", ["a", "b"]) == "b"
    assert families.chosen_without(everything, "two", ["a", "b"]) == "a"


def test_ranks_share_ties(families):
    values = np.array([[0.1, 0.0], [0.1, 0.2], [0.3, 0.1]])
    assert families.ranked(values).tolist() == [[1.5, 1.0], [1.5, 3.0], [3.0, 2.0]]
