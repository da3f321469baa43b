"""Scores of checkpoints."""

import numpy as np

from scrimp.bench.making import (
    RUNS,
    MakingSettings,
    _spoilt_tasks,
    run_checkpoint_work,
    table_work,
    write_checkpoints,
)
from scrimp.checkpoint_selection.score_files import read_scores

SMALL = MakingSettings(small=True)


def test_a_small_run(tmp_path):
    (cell,) = table_work("checkpoints", RUNS[0], SMALL)
    record = run_checkpoint_work(cell)
    scores = np.array(record["scores"])
    assert scores.shape == (4, 24) and record["checkpoints"][-1] == 40
    assert scores[-1].mean() > scores[0].mean() + 0.05
    path = tmp_path / "good-labels.csv"
    write_checkpoints(path, record)
    lines = path.read_text().splitlines()
    assert len(lines) == 1 + 4 * 24
    assert lines[0] == "checkpoint,task,score,stderr" and lines[1].startswith("4,digit-0,")
    assert read_scores(path)


def test_tasks_are_what_they_say():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0, 16, (40, 64)), np.arange(40) % 10
    tasks = _spoilt_tasks(x, y, rng)
    assert len(tasks) == 24
    assert (tasks["digit-3"][1] == 3).all() and len(tasks["digit-3"][0]) == 4
    picture = tasks["left"][0][0].reshape(8, 8)
    np.testing.assert_array_equal(picture[:, :7], x[0].reshape(8, 8)[:, 1:])
    assert set(np.unique(tasks["black-white"][0])) == {0.0, 16.0}
