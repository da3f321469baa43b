"""The benchmark of families: which tasks come first, what is chosen without a family, ranks."""

import argparse
import json

import numpy as np
import pytest

from benchmarks.transfer import families


class Tasks:
    def __init__(self, count):
        self.tasks = tuple(f"task{number}" for number in range(count))


def test_every_family_gets_a_few_tasks_before_one_gets_many(monkeypatch):
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


def test_a_family_has_no_say_in_what_is_reported_on_it():
    def runs(family, **regrets):
        found = {name: np.full(6, regret) for name, regret in regrets.items()}
        return {family: {"task": found}}

    everything = {
        **runs("one", a=0.1, b=0.9),
        **runs("two", a=0.5, b=0.4),
        **runs("three", a=0.5, b=0.4),
    }
    assert families.chosen_without(everything, "one", ["a", "b"]) == "b"
    assert families.chosen_without(everything, "two", ["a", "b"]) == "a"


def test_ranks_share_ties():
    values = np.array([[0.1, 0.0], [0.1, 0.2], [0.3, 0.1]])
    assert families.ranked(values).tolist() == [[1.5, 1.0], [1.5, 3.0], [3.0, 2.0]]


def test_seeds_of_a_task_are_averaged_first(tmp_path):
    def record(seed, regret, sources="full"):
        head = {"suite": "transfer", "table": "t", "task": "a", "method": "m", "seed": seed}
        return json.dumps({**head, "sources": sources, "at": [2, 5], "regret": [regret, 0.0]})

    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join([record(0, 0.2), record(1, 0.4), record(0, 0.9, "inverted")]))
    found = families.read([path], "full")["t"]["a"]["m"]
    assert found[[0, 2]] == pytest.approx([0.3, 0.0]) and np.isnan(found[1])


def test_the_report_runs_on_two_families(tmp_path, capsys):
    path = tmp_path / "runs.jsonl"
    lines = []
    for table in ("one", "two"):
        for task in ("a", "b", "c"):
            for place, method in enumerate(("auto", *families.METHODS.split(",")[1:])):
                head = {"suite": "transfer", "table": table, "task": task, "method": method}
                regret = [0.1 * (place + 1) * len(task + table)] * len(families.POINTS)
                at = list(families.POINTS)
                lines.append(json.dumps({**head, "seed": 0, "at": at, "regret": regret}))
    path.write_text("\n".join(lines))
    given = {"files": [path], "sources": "full", "choices": "auto"}
    methods = families.METHODS.removeprefix("auto,")
    families.report(argparse.Namespace(**given, methods=methods))
    said = capsys.readouterr().out
    assert "pooled over 6 tasks" in said and "upper end" in said
    assert "ours" in said and " 1.00" in said.split("average rank")[1].splitlines()[1]
