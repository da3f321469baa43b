"""Chosen trials beside each other."""

import scrimp
from scrimp.dashboard.views import compare_rows, latest_activity


def test_rows_say_what_differs_and_what_is_best() -> None:
    space = scrimp.Space(
        x=scrimp.Float(0, 1),
        kind=scrimp.Categorical(["a"]),
        y=scrimp.Float(0, 1, when={"kind": "a"}),
    )
    study = scrimp.create_study(
        "s",
        space,
        direction="maximize",
        metric="score",
        method="random",
        storage="memory://",
        seed=0,
    )
    for score in (0.5, 0.7, 0.7):
        study.tell(study.ask(), {"score": score, "speed": 10 * score})
    study.tell(study.ask(), state="failed")
    rows = {row.label: row for row in compare_rows(study.history, study.trials)}
    assert rows["best score"].values == (0.5, 0.7, 0.7, None) and rows["best score"].good == {1, 2}
    assert rows["status"].differs and not rows["kind"].differs and rows["x"].differs
    assert rows["speed, last"].values == (5.0, 7.0, 7.0, None) and not rows["x"].good
    alone = compare_rows(study.history, study.trials[:1])
    assert not any(row.good or row.differs for row in alone)


def test_with_several_metrics_each_has_its_best_and_the_front_is_told() -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "speed": "maximize"},
        method="random",
        storage="memory://",
        seed=0,
    )
    for error, speed in ((0.5, 5.0), (0.2, 2.0), (0.9, 1.0)):
        study.tell(study.ask(), {"error": error, "speed": speed})
    rows = {row.label: row for row in compare_rows(study.history, study.trials)}
    assert rows["on the front"].values == ("yes", "yes", "no")
    assert rows["error, last"].good == {1} and rows["speed, last"].good == {0}
    assert "best error" not in rows
    told = [words for _, _, words in latest_activity(study.history)]
    assert told[0] == "completed, error 0.9, speed 1"
