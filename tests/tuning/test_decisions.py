"""What the next decision is, and which events record it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import ConfigError, ScrimpError, StudyError
from scrimp.explaining.replay import replay
from scrimp.history.events import (
    BudgetGranted,
    Enqueued,
    Lost,
    Noted,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.history.history import History
from scrimp.history.limits import Totals
from scrimp.history.problem import Budget, Problem
from scrimp.policies.policy import Action, Decision, Finish, Policy, Resume, Start, Wait
from scrimp.tuning.decisions import MOST_NOTES, decision_events, next_decision, room_for_trials

PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)), budget=Budget("epoch", 1, 9))


@dataclass(frozen=True)
class Always(Policy):
    """The same action whatever happened."""

    action: Action

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        return Decision(self.action, {"scores": np.array([1.0, 2.0]), "best": np.float64(0.5)})


START = Always(Start({"x": 0.5}, 3.0, {"bracket": 1}, reason="promising"))


def history_of(*events: Any) -> History:
    return History.of(
        [
            StudyCreated(
                name="s", problem=PROBLEM.to_json(), method={"name": "random", "settings": {}}
            ),
            *events,
        ]
    )


def added(number: int) -> list[Any]:
    return [
        Noted(decision=number, seen=1),
        TrialAdded(trial=number, config={"x": 0.1 * number}),
        BudgetGranted(trial=number, budget=3.0, worker="w"),
    ]


def test_a_start_is_recorded_as_one_batch() -> None:
    history = history_of(*added(0))
    events = decision_events(history, next_decision(START, history), "me", 12.5)
    noted, trial, grant = events
    assert isinstance(noted, Noted) and (noted.decision, noted.seen, noted.time) == (1, 4, 12.5)
    assert noted.notes == {
        "scores": [1.0, 2.0],
        "best": 0.5,
        "reason": "promising",
    }  # plain JSON values
    assert isinstance(trial, TrialAdded) and (trial.trial, trial.config, trial.tag) == (
        1,
        {"x": 0.5},
        {"bracket": 1},
    )
    assert isinstance(grant, BudgetGranted) and (grant.budget, grant.attempt, grant.worker) == (
        3.0,
        1,
        "me",
    )


def test_a_resume_is_a_new_attempt() -> None:
    history = history_of(*added(0), Reported(trial=0, step=3.0, metrics={"value": 1.0}))
    noted, grant = decision_events(
        history, next_decision(Always(Resume(0, 27.0)), history), "me", 0.0
    )
    assert isinstance(grant, BudgetGranted) and (grant.trial, grant.budget, grant.attempt) == (
        0,
        9.0,
        2,
    )  # not beyond the maximum
    assert isinstance(noted, Noted) and noted.decision == 1


def test_a_lost_trial_comes_first() -> None:
    history = history_of(*added(0), Lost(trial=0))
    action = next_decision(START, history).action
    assert isinstance(action, Resume) and (action.trial, action.budget) == (0, 3.0)


def test_the_queue_takes_the_place_of_the_policys_own_configuration() -> None:
    history = history_of(Enqueued(config={"x": 0.9}))
    decision = next_decision(START, history)
    assert (
        isinstance(decision.action, Start)
        and decision.action.config == {"x": 0.9}
        and decision.action.budget == 3.0
    )
    events = decision_events(history, decision, "", 0.0)
    assert isinstance(events[1], TrialAdded) and events[1].enqueued
    assert not history.with_events(events).queue


def test_no_model_is_fitted_for_a_configuration_from_the_queue() -> None:
    study = scrimp.create_study(
        "s", PROBLEM.space, method="gp:initial=2", storage="memory://", seed=0
    )
    for x in (0.1, 0.2, 0.3):
        study.tell(study.ask(), x)
    study.enqueue({"x": 0.75})
    asked = study.ask()
    noted = [event for event in study.history.events if isinstance(event, Noted)]
    assert asked.config == {"x": 0.75} and noted[-1].notes == {"reason": "enqueued by the user"}
    study.tell(asked, 0.5)
    study.ask()
    assert "fit" in [event for event in study.history.events if isinstance(event, Noted)][-1].notes
    assert all(outcome.same for outcome in replay(study.history.events))


def test_without_room_only_the_outline_is_asked_for() -> None:
    class Outlined(Policy):
        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            raise AssertionError("no configuration is wanted")

        def outline(self, history: History, rng: np.random.Generator) -> Decision:
            return Decision(Start({}, 3.0, {"bracket": 1}))

    full = history_of(StudyChanged(totals=Totals(n_trials=1)), *added(0))
    assert next_decision(Outlined(), full).action == Wait("all trials are added")
    queued = next_decision(Outlined(), history_of(Enqueued(config={"x": 0.9}))).action
    assert queued == Start({"x": 0.9}, 3.0, {"bracket": 1}, None, "enqueued by the user")


def test_nothing_is_added_beyond_the_total() -> None:
    history = history_of(StudyChanged(totals=Totals(n_trials=1)), *added(0))
    assert not room_for_trials(history)
    assert isinstance(next_decision(START, history).action, Wait)
    done = history.with_events([Reported(trial=0, step=9.0, metrics={"value": 1.0})])
    assert isinstance(next_decision(START, done).action, Finish)


def test_a_spent_budget_ends_the_study() -> None:
    history = history_of(
        StudyChanged(totals=Totals(budget=3)),
        *added(0),
        Reported(trial=0, step=3.0, metrics={"value": 1.0}),
    )
    assert isinstance(next_decision(START, history).action, Finish)


def test_a_policy_cannot_smuggle_in_a_bad_configuration() -> None:
    with pytest.raises(ConfigError, match="x"):
        next_decision(Always(Start({"x": 7.0}, 1.0)), history_of())


def test_waiting_is_not_recorded() -> None:
    with pytest.raises(ScrimpError, match="only Start and Resume"):
        decision_events(history_of(), Decision(Wait()), "", 0.0)


def test_a_paused_study_waits_and_a_stopped_one_ends() -> None:
    lost = [*added(0), Lost(trial=0, attempt=1)]
    for halt, kind in (("paused", Wait), ("stopped", Finish), (None, Resume)):
        action = next_decision(START, history_of(*lost, StudyChanged(halt=halt))).action
        assert isinstance(action, kind)


def test_notes_that_are_too_large_go_whole_and_say_so() -> None:
    history = history_of()
    fit = {"loss": {"state": {"theta": [0.123456789] * (MOST_NOTES // 10)}}}
    notes = {"fit": fit, "scores": [1.0, 2.0], "degraded": "singular" + "x" * 1_000_000}
    noted, *_ = decision_events(history, Decision(Start({"x": 0.5}, 1.0), notes), "me", 0.0)
    assert isinstance(noted, Noted)
    assert set(noted.notes) == {"scores", "degraded", "left_out"} and noted.notes["scores"] == [
        1.0,
        2.0,
    ]
    assert (
        noted.notes["left_out"]["fit"] > MOST_NOTES
        and "characters left out" in noted.notes["degraded"]
    )


def test_a_study_whose_fits_are_too_large_goes_on_and_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrimp.tuning.decisions.MOST_NOTES", 200)
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="gp", storage="memory://", seed=0
    )
    study.optimize(lambda trial: (trial.params["x"] - 0.3) ** 2, n_trials=8, progress=False)
    assert study.history.note("fit") is None and "fit" in study.history.note("left_out")
    assert all(outcome.same for outcome in replay(study.history.events))


def told(method: str, trials: int) -> scrimp.Study:
    """A study with so many results; its method then reads its notes."""
    budget = None if method in ("gp", "random", "tpe") else Budget("epoch", 1, 9)
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "s", space, method=method, budget=budget, storage="memory://", seed=0
    )
    for number in range(trials):
        study.tell(study.ask(), 0.1 * number)
    return study


def planted(study: scrimp.Study, notes: dict[str, Any]) -> None:
    study._ledger.append(
        [Noted(decision=study.history.decisions, seen=study.history.length, notes=notes)]
    )


@pytest.mark.parametrize(
    ("method", "notes"),
    [
        ("gp", {"fit": [1, "a"]}),
        ("gp", {"fit": {"loss": 5}}),
        ("gp", {"fit": {"loss": {"n": "x", "state": []}}}),
        ("gp", {"fit": {"loss": {"n": 4, "state": 5}}}),
        ("freeze-thaw", {"freeze_thaw": {"theta": 3}}),
    ],
)
def test_notes_of_another_type_end_in_words(method: str, notes: dict[str, Any]) -> None:
    """The decision that reads them says so, and nothing is lost."""
    study = told(method, 4)
    length = study.history.length
    planted(study, notes)
    with pytest.raises(StudyError, match=r"cannot be taken.*`scrimp verify`"):
        study.ask()
    assert study.history.length == length + 1 and study.best_value == 0.0


@pytest.mark.parametrize("method", ["random", "tpe", "hypertune-indep", "dehb"])
def test_notes_that_a_method_does_not_read_change_nothing(method: str) -> None:
    study, other = told(method, 4), told(method, 4)
    planted(study, {"fit": "x", "freeze_thaw": 3, "density": [1]})
    planted(other, {})
    assert study.ask().params == other.ask().params


def test_a_method_that_fails_is_named_with_the_place() -> None:
    @dataclass(frozen=True)
    class Broken(Policy):
        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            return Decision(Wait(str(dict[str, str]()["missing"])))

    with pytest.raises(
        StudyError,
        match=r"decision 0 cannot be taken: 'missing' \(KeyError, .*test_decisions.py, line",
    ):
        next_decision(Broken(), history_of())
