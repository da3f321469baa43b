"""Where a study stands: nothing is claimed before it is known."""

import scrimp
from scrimp.history.events import StudyChanged
from scrimp.history.limits import Totals
from scrimp.showing.standing import (
    Standing,
    best_words,
    is_over,
    running_words,
    saved_words,
    share_done,
    spent_words,
    states_words,
    summary_line,
    waiting_words,
)


def finished(values: list[float], **options: object) -> scrimp.Study:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        method="random",
        storage="memory://",
    )
    return study.optimize(lambda trial: values[trial.id], n_trials=len(values), **options)  # type: ignore[arg-type]


def test_a_study_is_over_when_its_total_is_reached_and_nothing_runs() -> None:
    study = finished([0.5, 0.25])
    assert is_over(study.history) and Standing.of(study.history, 1.0).done == 1.0
    study._change(StudyChanged(totals=Totals(n_trials=3)))
    assert not is_over(study.history)
    trial = study.ask()
    assert not is_over(study.history)  # it runs
    study.tell(trial, 1.0)
    assert is_over(study.history)
    study.enqueue({"x": 0.5})
    assert not is_over(study.history)


def test_the_time_left_comes_late_and_is_that_of_this_run() -> None:
    study = finished([1.0] * 4)
    study._change(StudyChanged(totals=Totals(n_trials=20)))
    assert (
        Standing.of(study.history, 10.0, before=0.0).left is None
    )  # after four trials nobody knows
    study.tell(study.ask(), 1.0)
    assert Standing.of(study.history, 10.0, before=0.0).left == 30.0
    assert Standing.of(study.history, 10.0, before=0.0).time_words == "10 s, about 30 s left"
    assert (
        Standing.of(study.history, 10.0, before=0.125).left == 60.0
    )  # half of it was there before
    assert Standing.of(study.history, 10.0).left is None
    study._change(StudyChanged(totals=Totals(n_trials=200)))
    assert Standing.of(study.history, 10.0, before=0.0).left is None  # five of 200 say little


def test_savings_are_told_of_a_study_that_is_over(halving: scrimp.Study) -> None:
    history = halving.history
    assert share_done(history) == 4 / 15  # halving spends 5 x 1 on each of three rungs
    assert spent_words(history) == "4 epochs spent" and waiting_words(history) == "2 at 1 epoch"
    assert (
        running_words(history, history.with_status("running")[0])
        == "trial 1  epoch 2 of 3  error 0.2"
    )
    assert best_words(history) == "0.2  trial 1 after 2 epochs"
    assert saved_words(history) == "4 epochs spent where training all 3 takes 27: 85% saved"


def test_states_have_the_names_that_tables_and_filters_have() -> None:
    counts = {"running": 0, "paused": 10, "stopped": 1, "completed": 2, "failed": 3}
    assert states_words(counts) == "10 paused, 1 stopped, 2 completed, 3 failed"
    assert states_words({}) == "no trials yet"


def test_the_line_says_where_the_study_stands(halving: scrimp.Study) -> None:
    study = finished([0.5, 0.25])
    line = summary_line(study.history, 10.0)
    assert line == "best error 0.25 (trial 1)  ·  2 completed  ·  10 s"
    empty = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert summary_line(empty.history, 0.0) == "best value none  ·  no trials yet  ·  0 s"
    words = "best error 0.2 (trial 1)  ·  1 running, 2 paused  ·  4 epochs spent  ·  1 s"
    assert summary_line(halving.history, 1.0) == words
