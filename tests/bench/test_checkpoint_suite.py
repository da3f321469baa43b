"""Replays of small tables: what is recorded, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter1d

from scrimp.bench.checkpoint_suite import (
    checkpoint_cells,
    checkpoint_summary,
    mean_scores,
    replay_table,
    run_checkpoints,
)
from scrimp.bench.results import result_cell
from scrimp.checkpoint_selection.score_files import read_scores
from scrimp.checkpoint_selection.selector import Selector
from scrimp.errors import MethodError, TableError


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["checkpoint,task,score,stderr"]
    for step in range(20):
        x = step / 19
        lines += [
            f"{100 * step},t{j},{0.4 + 0.02 * j + 0.2 * x * (1.4 - x) + 0.01 * rng.normal():.5f},"
            for j in range(6)
        ]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("method", ["kg", "stride", "last", "random"])
def test_a_record_has_one_entry_per_share(path, method):
    record = replay_table(read_scores(path), method, 0, (0.1, 0.2, 1.0))
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
    record = replay_table(table, "last", 0, (0.1,))
    means = table.scores.mean(axis=1)
    smooth = gaussian_filter1d(means, 20 / 15, mode="reflect")
    assert record["regret"][0] == pytest.approx(means.max() - means[-1])
    assert record["smoothed_regret"][0] == pytest.approx(smooth.max() - smooth[-1])


def test_runs_know_their_shares_and_tables(path):
    cells = checkpoint_cells([path], ["random", "last"], (0.2, 0.1), seeds=2)
    assert [(cell.method, cell.seed) for cell in cells] == [
        ("random", 0),
        ("last", 0),
        ("random", 1),
        ("last", 1),
    ]
    record = run_checkpoints(cells[0])
    assert (record["suite"], record["table"], record["task"], record["size"]) == (
        "checkpoints",
        "run",
        "0.1,0.2",
        24,
    )
    assert {"method", "seed", "decision_seconds", "decisions"} <= set(record)
    assert result_cell(json.loads(json.dumps(record))) == cells[0]


def test_a_run_is_reproduced(path):
    cell = checkpoint_cells([path], ["kg"], (0.1, 0.2), seeds=1)[0]
    first, second = run_checkpoints(cell), run_checkpoints(cell)
    assert {**first, "decision_seconds": 0.0} == {**second, "decision_seconds": 0.0}


def test_the_summary_has_a_row_per_method(path):
    records = [
        run_checkpoints(cell)
        for cell in checkpoint_cells([path], ["random", "last"], (0.1, 0.2), seeds=2)
    ]
    header, rows = checkpoint_summary(records)
    assert header == ["regret x 1000 / smoothed", "0.1", "0.2", "ms per decision"]
    assert [row[0] for row in rows] == ["random", "last"]
    last = records[1]
    assert rows[1][1] == f"{1e3 * last['regret'][0]:.2f} / {1e3 * last['smoothed_regret'][0]:.2f}"
    mean = np.mean([records[0]["regret"][1], records[2]["regret"][1]])
    assert rows[0][2].startswith(f"{1e3 * mean:.2f} / ")


def test_empty_tables_unknown_methods_and_bad_shares_are_refused(path, tmp_path):
    with pytest.raises(MethodError, match="no method 'magic'"):
        checkpoint_cells([path], ["magic"], (0.1,), 1)
    with pytest.raises(TableError, match=r"share 1\.5"):
        checkpoint_cells([path], ["kg"], (0.1, 1.5), 1)
    with pytest.raises(MethodError, match="has no setting 'rank'"):
        checkpoint_cells([path], ["kg:rank=2"], (0.1,), 1)
    empty = tmp_path / "empty.csv"
    empty.write_text("checkpoint,task,score\n1,a,\n2,b,nan\n", encoding="utf-8")
    with pytest.raises(TableError, match="has no scores"):
        checkpoint_cells([empty], ["kg"], (0.1,), 1)


def with_holes(full, share, seed=1):
    """The table without a share of its cells."""
    holes = np.random.default_rng(seed).random(full.shape) < share
    return replace(full, scores=np.where(holes, np.nan, full.scores)), holes


@pytest.mark.parametrize("method", ["kg", "ei-icm", "random", "stride", "last"])
def test_what_a_table_lacks_is_never_chosen(path, method, monkeypatch):
    table, holes = with_holes(read_scores(path), 0.4)
    asked = []
    decide = Selector.decide

    def watched(self, table, *rest):
        decision = decide(self, table, *rest)
        asked.extend(decision.cells)
        return decision

    monkeypatch.setattr(Selector, "decide", watched)
    record = replay_table(table, method, 0, (0.2, 0.5, 1.0))
    assert not any(holes[cell] for cell in asked)
    if method not in ("last", "stride"):
        present = int((~holes).sum())
        assert record["cells"] == [round(0.2 * present), round(0.5 * present), present]
        assert record["regret"][-1] < 0.01
    assert all(np.isfinite(record["regret"])) and min(record["regret"]) >= 0.0


def test_means_of_incomplete_tables_are_filled_in_additively(path):
    full = read_scores(path)
    rows, columns = np.arange(20)[:, None], np.arange(6)
    additive = replace(full, scores=0.3 + 0.01 * rows + 0.05 * columns)
    table, _ = with_holes(additive, 0.3)
    scores = table.scores.copy()
    scores[-1, 1:] = np.nan  # the best row, of which one task is known, cannot be the best
    means, able = mean_scores(replace(table, scores=scores))
    np.testing.assert_allclose(means, additive.scores.mean(axis=1), atol=1e-9)
    assert not able[-1] and able[:-1].sum() >= 15
    np.testing.assert_allclose(mean_scores(full)[0], full.scores.mean(axis=1))


def test_rows_and_tasks_without_any_score_do_not_count(tmp_path):
    path = tmp_path / "holes.csv"
    lines = [
        f"{step},{task},{0.1 * step}"
        for step in (1, 2, 3)
        for task in "ab"
        if (step, task) != (2, "b")
    ]
    path.write_text("\n".join(["checkpoint,task,score", *lines, "4,a,", "1,c,"]), encoding="utf-8")
    (cell,) = checkpoint_cells([path], ["kg"], (1.0,), 1)
    record = run_checkpoints(cell)
    assert cell.size == 5 and record["cells"] == [5] and record["regret"] == [0.0]


def test_both_answers_are_judged_on_both_curves(path):
    full = read_scores(path)
    record = replay_table(full, "kg", 0, (0.1,))
    means = full.scores.mean(axis=1)
    smooth = gaussian_filter1d(means, 20 / 15.0, mode="reflect")
    for truth, names in (
        (means, ("regret", "underlying_regret")),
        (smooth, ("answer_smoothed_regret", "smoothed_regret")),
    ):
        for name in names:
            assert np.min(np.abs(truth.max() - truth - record[name][0])) < 1e-12


def test_settings_of_methods_reach_the_replay(path):
    full = read_scores(path)
    plain, settled = (
        replay_table(full, method, 0, (0.3,))
        for method in ("ei-icm", "ei-icm:rank=full,diagonal=true")
    )
    assert plain["probability_best"] != settled["probability_best"]
