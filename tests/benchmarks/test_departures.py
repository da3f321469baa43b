"""The comparison behind the table of departures: texts that exist, and differences by hand."""

from pathlib import Path

import pytest

import scrimp
from benchmarks.defaults import departures
from scrimp.methods.named_methods import build_policy, parse_method
from scrimp.study_log.problem import Budget, Problem

ROOT = Path(__file__).resolve().parents[2]
PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)), budget=Budget("epoch", 1, 27))


def test_every_text_is_a_method_and_stands_in_the_table():
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    for one in (*departures.CHEAP, *departures.COSTLY):
        for text in (one.default, one.published):
            build_policy(PROBLEM, parse_method(text))
        assert one.default.partition(":")[0] == one.published.partition(":")[0]
        setting = one.published.partition(":")[2].partition("=")[0]
        assert setting in page


def test_differences_are_paired_by_task_and_seed():
    def record(method, task, seed, *regret):
        head = {"suite": "curves", "table": "t", "task": task, "method": method, "seed": seed}
        return {**head, "size": 9, "spent": [0.1, 0.5, 1.0], "regret": list(regret)}

    one = departures.Departure("curves", "asha", "asha:cutoff=top")
    records = [
        record("asha", "a", 0, 1.0, 0.5, 0.1),
        record("asha", "a", 1, 1.0, 0.4, 0.2),
        record("asha", "b", 0, 1.0, 9.0, 9.0),  # no partner
        record("asha:cutoff=top", "a", 0, 1.0, 0.6, 0.2),
        record("asha:cutoff=top", "a", 1, 1.0, 0.7, 0.2),
    ]
    ((found, told),) = departures.differences(records, [one])
    assert found == one
    assert told["half"] == (pytest.approx(0.2), pytest.approx(0.1), 2)
    assert told["end"] == (pytest.approx(0.05), pytest.approx(0.05), 2)
