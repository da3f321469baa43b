"""Rungs: who stands where, counted from the trials."""

import scrimp
from scrimp.plots.learning_curves import rung_counts


def test_counts_follow_from_the_trials(staged: scrimp.Study) -> None:
    rows = rung_counts(staged.history)
    assert [row["budget"] for row in rows] == [1.0, 3.0, 9.0]
    for row in rows:
        assert row["reached"] == sum(trial.budget >= row["budget"] for trial in staged.trials)
    assert sum(row["paused"] for row in rows) == staged.history.counts["paused"]
    assert rows[-1]["completed"] == staged.history.counts["completed"] == rows[-1]["reached"]


def test_a_running_trial_stands_at_its_grant() -> None:
    study = scrimp.create_study(
        "r",
        scrimp.Space(x=scrimp.Float(0, 1)),
        budget=scrimp.Budget("step", 2, 8),
        method="asha",
        storage="memory://",
        seed=0,
    )
    study.ask()
    (row,) = rung_counts(study.history)
    assert row["budget"] == 2.0 and row["running"] == 1 and row["reached"] == 0


def test_markers_stand_where_trials_stand(staged: scrimp.Study) -> None:
    picture = scrimp.plots.rungs(staged)
    marked = {}
    for trace in picture.data:
        if trace.mode == "markers":
            status = trace.name.split(" ")[0]
            marked |= {
                number: (status, y) for number, y in zip(trace.customdata, trace.y, strict=True)
            }
    assert marked == {trial.id: (trial.status, trial.budget) for trial in staged.trials}
    assert list(picture.layout.yaxis.tickvals) == [1.0, 3.0, 9.0]  # none too close to another
    assert "trials reached 9" in picture.layout.meta["alternative"]
