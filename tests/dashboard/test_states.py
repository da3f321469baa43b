"""Finished, failed and idle are told apart."""

import scrimp
from scrimp.dashboard.states import state_of
from scrimp.history.events import Lost

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def made(**settings: object) -> scrimp.Study:
    return scrimp.create_study("s", SPACE, method="random", storage="memory://", **settings)  # type: ignore[arg-type]


def test_from_new_to_finished() -> None:
    study = made()
    assert state_of(study.history).word == "new"
    trial = study.ask()
    assert state_of(study.history).word == "running"
    study.tell(trial, 0.5)
    assert state_of(study.history).word == "idle"
    assert state_of(study.history, study.history.time + 1).word == "running"
    assert state_of(study.history, study.history.time + 60).word == "idle"
    study.optimize(lambda trial: 0.1, n_trials=3)
    assert state_of(study.history).word == "finished"
    assert state_of(study.history).why == "all 3 trials are done"


def test_a_study_whose_trials_all_failed() -> None:
    study = made()
    study.tell(study.ask(), state="failed", message="no such file")
    state = state_of(study.history)
    assert state.word == "failed" and "no such file" in state.why
    study.tell(study.ask(), 0.5)
    assert state_of(study.history).word == "idle"


def test_halted_and_interrupted() -> None:
    study = made()
    trial = study.ask()
    study.pause()
    assert state_of(study.history).word == "paused"
    assert state_of(study.history).why.startswith("1 still running")
    study.stop()
    assert state_of(study.history).word == "stopped"
    study.resume()
    study._ledger.append([Lost(trial=trial.id)])
    assert state_of(study.history).word == "interrupted"


def test_a_budget_that_is_spent() -> None:
    study = made(budget=scrimp.Budget("epoch", 1, 1))
    study.optimize(lambda trial: [trial.report(value=0.1) for _ in trial.steps()], budget=2)
    assert state_of(study.history).why == "its budget is spent"


def test_a_selection_is_finished_with_its_last_cell() -> None:
    selection = scrimp.create_selection("c", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    selection.tell(1, "a", 0.5)
    assert state_of(selection.history).word == "idle"
    selection.tell(2, "a", 0.6)
    assert state_of(selection.history).word == "finished"
