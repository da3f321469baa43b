"""Replays of small tables: what is recorded, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.checkpoints import checkpoint_cells, checkpoint_summary, replay, run_checkpoints
from scrimp.bench.results import cell_of
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


def test_runs_know_their_shares_and_tables(path):
    cells = checkpoint_cells([path], ["random", "last"], (0.2, 0.1), seeds=2)
    assert [(cell.method, cell.seed) for cell in cells] == [("random", 0), ("last", 0), ("random", 1), ("last", 1)]
    record = run_checkpoints(cells[0])
    assert (record["suite"], record["table"], record["task"], record["size"]) == ("checkpoints", "run", "0.1,0.2", 24)
    assert {"method", "seed", "decision_seconds", "decisions"} <= set(record)
    assert cell_of(json.loads(json.dumps(record))) == replace(cells[0], source="")


def test_a_run_is_reproduced(path):
    cell = checkpoint_cells([path], ["kg"], (0.1, 0.2), seeds=1)[0]
    first, second = run_checkpoints(cell), run_checkpoints(cell)
    assert {**first, "decision_seconds": 0.0} == {**second, "decision_seconds": 0.0}


def test_the_summary_has_a_row_per_method(path):
    records = [run_checkpoints(cell) for cell in checkpoint_cells([path], ["random", "last"], (0.1, 0.2), seeds=2)]
    header, rows = checkpoint_summary(records)
    assert header == ["regret x 1000 / smoothed", "0.1", "0.2", "ms per decision"]
    assert [row[0] for row in rows] == ["random", "last"]
    last = records[1]
    assert rows[1][1] == f"{1e3 * last['regret'][0]:.2f} / {1e3 * last['smoothed_regret'][0]:.2f}"
    mean = np.mean([records[0]["regret"][1], records[2]["regret"][1]])
    assert rows[0][2].startswith(f"{1e3 * mean:.2f} / ")


def test_incomplete_tables_unknown_methods_and_bad_shares_are_refused(path, tmp_path):
    with pytest.raises(MethodError, match="no method 'magic'"):
        checkpoint_cells([path], ["magic"], (0.1,), 1)
    with pytest.raises(TableError, match=r"share 1\.5"):
        checkpoint_cells([path], ["kg"], (0.1, 1.5), 1)
    half = tmp_path / "half.csv"
    half.write_text("checkpoint,task,score\n1,a,0.5\n2,b,0.5\n", encoding="utf-8")
    with pytest.raises(TableError, match="only complete tables can be replayed"):
        checkpoint_cells([half], ["kg"], (0.1,), 1)
