"""Finished, failed and idle are told apart."""

import scrimp
from scrimp.study_log.events import Lost
from scrimp.study_log.record import StudyRecord

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def made(**settings: object) -> scrimp.Study:
    return scrimp.create_study("s", SPACE, method="random", storage="memory://", **settings)  # type: ignore[arg-type]


def test_from_new_to_finished() -> None:
    study = made()
    assert StudyRecord.of(study.history).state == "new"
    trial = study.ask()
    assert StudyRecord.of(study.history).state == "running"
    study.tell(trial, 0.5)
    assert StudyRecord.of(study.history).state == "idle"
    assert StudyRecord.of(study.history, now=study.history.time + 1).state == "running"
    assert StudyRecord.of(study.history, now=study.history.time + 60).state == "idle"
    study.optimize(lambda trial: 0.1, n_trials=3)
    assert StudyRecord.of(study.history).state == "finished"
    assert StudyRecord.of(study.history).why == "all 3 trials are done"


def test_a_study_whose_trials_all_failed() -> None:
    study = made()
    study.tell(study.ask(), state="failed", message="no such file")
    record = StudyRecord.of(study.history)
    assert record.state == "failed" and "no such file" in record.why
    study.tell(study.ask(), 0.5)
    assert StudyRecord.of(study.history).state == "idle"


def test_halted_and_interrupted() -> None:
    study = made()
    trial = study.ask()
    study.pause()
    assert StudyRecord.of(study.history).state == "paused"
    assert StudyRecord.of(study.history).why.startswith("1 still running")
    study.stop()
    assert StudyRecord.of(study.history).state == "stopped"
    study.resume()
    study._ledger.append([Lost(trial=trial.id)])
    assert StudyRecord.of(study.history).state == "interrupted"


def test_a_budget_that_is_spent() -> None:
    study = made(budget=scrimp.Budget("epoch", 1, 1))
    study.optimize(lambda trial: [trial.report(value=0.1) for _ in trial.steps()], total_budget=2)
    assert StudyRecord.of(study.history).why == "its budget is spent"


def test_a_selection_is_finished_with_its_last_cell() -> None:
    selection = scrimp.create_selection("c", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    selection.tell(1, "a", 0.5)
    assert StudyRecord.of(selection.history).state == "idle"
    selection.tell(2, "a", 0.6)
    assert StudyRecord.of(selection.history).state == "finished"
