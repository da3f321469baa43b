"""The state of a study in words: nothing is claimed before it is known."""

import pytest

import scrimp
from scrimp.display.study_words import (
    best_words,
    method_words,
    running_words,
    spent_words,
    states_words,
    summary_line,
    time_words,
    waiting_words,
)
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.record import StudyRecord, is_over, share_done


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
    assert is_over(study.history) and StudyRecord.of(study.history).done == 1.0
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
        StudyRecord.of(study.history, seconds=10.0, done_before=0.0).seconds_left is None
    )  # after four trials nobody knows
    study.tell(study.ask(), 1.0)
    assert StudyRecord.of(study.history, seconds=10.0, done_before=0.0).seconds_left == 30.0
    assert (
        time_words(StudyRecord.of(study.history, seconds=10.0, done_before=0.0))
        == "10 s, about 30 s left"
    )
    assert (
        StudyRecord.of(study.history, seconds=10.0, done_before=0.125).seconds_left == 60.0
    )  # half of it was there before
    assert StudyRecord.of(study.history, seconds=10.0).seconds_left is None
    study._change(StudyChanged(totals=Totals(n_trials=200)))
    assert (
        StudyRecord.of(study.history, seconds=10.0, done_before=0.0).seconds_left is None
    )  # five of 200 say little


def test_savings_are_told_of_a_study_that_is_over(halving: scrimp.Study) -> None:
    history = halving.history
    record = StudyRecord.of(history)
    assert share_done(history) == 4 / 15  # halving spends 5 x 1 on each of three rungs
    assert spent_words(record) == "4 epochs spent" and waiting_words(record) == "2 at 1 epoch"
    assert (
        running_words(record.problem, history.with_status("running")[0])
        == "trial 1  epoch 2 of 3  error 0.2"
    )
    assert best_words(record) == "0.2  trial 1 after 2 epochs"
    assert (
        spent_words(StudyRecord.of(history, over=True))
        == "4 epochs spent; 27 without early stopping"
    )


def test_states_have_the_names_that_tables_and_filters_have() -> None:
    counts = {"running": 0, "paused": 10, "stopped": 1, "completed": 2, "failed": 3}
    assert states_words(counts) == "10 paused, 1 stopped, 2 completed, 3 failed"
    assert states_words({}) == "no trials yet"


def test_the_line_says_where_the_study_stands(halving: scrimp.Study) -> None:
    study = finished([0.5, 0.25])
    line = summary_line(StudyRecord.of(study.history, seconds=10.0))
    assert line == "best error 0.25 (trial 1)  ·  2 completed  ·  10 s"
    empty = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert (
        summary_line(StudyRecord.of(empty.history, seconds=0.0))
        == "best value none  ·  no trials yet  ·  0 s"
    )
    words = "best error 0.2 (trial 1)  ·  1 running, 2 paused  ·  4 epochs spent  ·  1 s"
    assert summary_line(StudyRecord.of(halving.history, seconds=1.0)) == words


def test_a_selection_is_shown_with_the_name_of_its_method_alone() -> None:
    made = scrimp.create_selection("s", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    assert method_words(StudyRecord.of(made.history)) == "kg"
    assert "tolerance" in str(made.history.method)
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="asha:brackets=4",
        budget=scrimp.Budget("epoch", 1, 27),
        storage="memory://",
    )
    assert method_words(StudyRecord.of(study.history)) == "asha:brackets=4"


@pytest.mark.parametrize("method", ["gp", "asha"])
def test_failures_are_no_savings_of_early_stopping(method: str) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["good", "bad"])),
        budget=scrimp.Budget("epoch", 1, 9),
        method=method,
        storage="memory://",
        seed=0,
    )

    def train(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            (trial.checkpoint_dir / "state").write_text(str(step))
            if trial.params["kind"] == "bad" and step > 1:
                raise ValueError("diverged")
            trial.report(value=trial.params["x"] + 1 / step)

    study.optimize(train, n_trials=9, catch=(ValueError,))
    record = StudyRecord.of(study.history)
    failed = [trial for trial in study.trials if trial.status == "failed"]
    whole = 9.0 * (9 - len(failed)) + sum(trial.budget for trial in failed)
    assert failed and record.over
    said = f"; {whole:g} without early stopping" if record.spent < whole else ""
    assert spent_words(record) == f"{record.spent:g} epochs spent{said}"
    assert bool(said) == (method == "asha")  # every trial of gp trained as long as it could
    assert record.saved == 1.0 - record.spent / whole
    again = StudyRecord.of(History.of(study.history.events))
    assert again.without_early_stopping == record.without_early_stopping
