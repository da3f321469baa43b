"""Replays of small tables: what is recorded, resumed, and refused."""

import json

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.checkpoints import ReplaySettings, compare_checkpoints, replay, summary
from scrimp.checkpoints.score_files import read_scores
from scrimp.errors import MethodError, TableError


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["checkpoint,task,score,stderr"]
    for step in range(20):
        x = step / 19
        lines += [
            f"{100 * step},t{j},{0.4 + 0.02 * j + 0.2 * x * (1.4 - x) + 0.01 * rng.normal():.5f}," for j in range(6)
        ]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("method", ["kg", "stride", "last", "random"])
def test_a_record_has_one_entry_per_share(path, method):
    record = replay(read_scores(path), method, 0, (0.1, 0.2, 1.0))
    assert record["share"] == [0.1, 0.2, 1.0]
    for name in ("regret", "smoothed_regret", "probability_best", "expected_loss", "cells"):
        assert len(record[name]) == 3
    assert all(regret >= 0.0 for regret in record["regret"])
    assert record["decision_seconds"] >= 0.0
    if method == "last":
        assert record["cells"] == [0, 0, 0]
        assert record["probability_best"] == [None] * 3
    else:
        assert record["cells"] == [12, 24, 120]
        assert record["regret"][-1] == 0.0


def test_regrets_of_the_last_checkpoint_by_hand(path):
    table = read_scores(path)
    record = replay(table, "last", 0, (0.1,))
    means = table.scores.mean(axis=1)
    smooth = gaussian_filter1d(means, 20 / 15, mode="reflect")
    assert record["regret"][0] == pytest.approx(means.max() - means[-1])
    assert record["smoothed_regret"][0] == pytest.approx(smooth.max() - smooth[-1])


def test_a_comparison_is_appended_and_resumed(path, tmp_path):
    out = tmp_path / "results.jsonl"
    settings = ReplaySettings(shares=(0.1, 0.2), seeds=2)
    compare_checkpoints([path], ["random", "last"], settings, out)
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    out.write_text("\n".join(lines[:3]) + "\n" + lines[3][:20], encoding="utf-8")
    records = compare_checkpoints([path], ["random", "last"], settings, out)
    assert len(records) == 4
    assert [json.loads(line)["method"] for line in lines] == [record["method"] for record in records]
    first = json.loads(lines[0])
    assert {"suite", "table", "task", "method", "seed", "decision_seconds", "decisions"} <= set(first)
    assert (first["suite"], first["table"]) == ("checkpoints", "run")
    rows = summary(records)
    assert [(row["method"], row["share"]) for row in rows] == [
        ("random", 0.1),
        ("random", 0.2),
        ("last", 0.1),
        ("last", 0.2),
    ]
    last = [record["regret"][0] for record in records if record["method"] == "last"]
    assert rows[2]["regret"] == pytest.approx(np.mean(last))


def test_two_processes_give_the_same_records(path):
    both = [compare_checkpoints([path], ["kg"], ReplaySettings((0.1,), seeds=2, workers=workers)) for workers in (1, 2)]
    for one, two in zip(*both, strict=True):
        assert {**one, "decision_seconds": 0.0} == {**two, "decision_seconds": 0.0}


def test_incomplete_tables_and_unknown_methods_are_refused(path, tmp_path):
    with pytest.raises(MethodError, match="no method 'magic'"):
        compare_checkpoints([path], ["magic"], ReplaySettings())
    half = tmp_path / "half.csv"
    half.write_text("checkpoint,task,score\n1,a,0.5\n2,b,0.5\n", encoding="utf-8")
    with pytest.raises(TableError, match="only complete tables can be replayed"):
        compare_checkpoints([half], ["kg"], ReplaySettings())
