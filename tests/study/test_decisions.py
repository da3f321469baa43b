"""What the next decision is, and which events record it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import ConfigError, MethodError, PluginError, ScrimpError, StudyError
from scrimp.explain.replay import replay
from scrimp.gp import stationary as catalog
from scrimp.gp.kernel import Scaled
from scrimp.gp.stationary import Matern32
from scrimp.methods.policy import Action, Decision, Policy, Start
from scrimp.schedulers.scheduler import Finish, Resume, Wait, may_add
from scrimp.study.decisions import (
    MAX_RECORD_BYTES,
    checked_record,
    decision_events,
    next_decision,
    policy_of,
)
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    CurveFit,
    DecisionRecord,
    DrawnAt,
    Fit,
    MetricFit,
    Modelled,
    Promoted,
    Queued,
    Said,
)
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Enqueued,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem

PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)), budget=Budget("epoch", 1, 9))


@dataclass(frozen=True)
class Always(Policy):
    """The same action whatever happened."""

    action: Action

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        return Decision(
            self.action,
            DecisionRecord(own={"scores": np.array([1.0, 2.0]), "best": np.float64(0.5)}),
        )


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
        Decided(decision=number, seen=1),
        TrialAdded(trial=number, config={"x": 0.1 * number}),
        BudgetGranted(trial=number, budget=3.0, worker="w"),
    ]


def test_a_start_is_recorded_as_one_batch() -> None:
    history = history_of(*added(0))
    events = decision_events(history, next_decision(START, history), "me", 12.5)
    noted, trial, grant = events
    assert isinstance(noted, Decided) and (noted.decision, noted.seen, noted.time) == (1, 4, 12.5)
    own = {"scores": [1.0, 2.0], "best": 0.5}  # plain JSON values
    assert noted.record == DecisionRecord(grant=Said("promising"), own=own)
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
    assert isinstance(noted, Decided) and noted.decision == 1


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
    noted = [event for event in study.history.events if isinstance(event, Decided)]
    assert asked.config == {"x": 0.75} and noted[-1].record == DecisionRecord(reason=Queued())
    study.tell(asked, 0.5)
    study.ask()
    assert [event for event in study.history.events if isinstance(event, Decided)][-1].record.fit
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
    assert queued == Start({"x": 0.9}, 3.0, {"bracket": 1})


def test_nothing_is_added_beyond_the_total() -> None:
    history = history_of(StudyChanged(totals=Totals(n_trials=1)), *added(0))
    assert not may_add(history)
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


def test_a_study_whose_fits_are_too_large_goes_on_and_replays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrimp.study.decisions.MAX_RECORD_BYTES", 200)
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="gp", storage="memory://", seed=0
    )
    study.optimize(lambda trial: (trial.params["x"] - 0.3) ** 2, n_trials=8, progress=False)
    assert study.history.recorded.fit is None and "fit" in study.history.recorded.left_out
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


def planted(study: scrimp.Study, record: DecisionRecord) -> None:
    study._ledger.append(
        [Decided(decision=study.history.decisions, seen=study.history.length, record=record)]
    )


@pytest.mark.parametrize(
    ("method", "record"),
    [
        ("gp", DecisionRecord(fit={"loss": Fit(4, {})})),
        ("gp", DecisionRecord(fit={"loss": Fit(4, {"choice": 5, "model": []})})),
        ("gp", DecisionRecord(fit={"loss": Fit(4, {"choice": "power", "model": {"steps": 3}})})),
        (
            "mobster-joint:initial=2,random_fraction=0",
            DecisionRecord(fit={"gp_multitask": Fit(4, {})}),
        ),
        (
            "freeze-thaw:initial=2",
            DecisionRecord(curves=CurveFit((MetricFit((1.0,)),), 3, DrawnAt(1, 2, 3))),
        ),
    ],
)
def test_a_fit_of_another_model_is_made_anew(method: str, record: DecisionRecord) -> None:
    study = told(method, 4)
    planted(study, record)
    assert 0 <= study.ask().params["x"] <= 1


@pytest.mark.parametrize("method", ["random", "tpe", "hypertune-indep", "dehb"])
def test_records_that_a_method_does_not_read_change_nothing(method: str) -> None:
    study, other = told(method, 4), told(method, 4)
    curves = CurveFit((MetricFit((1.0,)),), 3, DrawnAt(1, 2, 3))
    planted(study, DecisionRecord(fit={"x": Fit(1, {})}, curves=curves, own={"density": [1]}))
    planted(other, DecisionRecord())
    assert study.ask().params == other.ask().params


@pytest.mark.parametrize("tag", [{"bracket": "mine"}, {"bracket": 0, "slot": [1]}, {"slot": 1}])
def test_bracket_and_slot_of_a_tag_are_whole_numbers(tag: dict[str, Any]) -> None:
    decision = Decision(Start({"x": 0.5}, 1.0, tag))
    with pytest.raises(MethodError, match="`bracket` and `slot` in a tag belong to scrimp"):
        decision_events(history_of(), decision, "me", 0.0)
    free = Decision(Start({"x": 0.5}, 1.0, {"place": "mine", "bracket": 2}))
    assert decision_events(history_of(), free, "me", 0.0)


@pytest.mark.parametrize("tag", ["mine", [1], 5, None, {1: 2}])
def test_a_tag_that_is_no_table_is_refused_with_its_method(tag: Any) -> None:
    with pytest.raises(MethodError, match=r"the method tags trial 0 with .* a tag is a table"):
        decision_events(history_of(), Decision(Start({"x": 0.5}, 1.0, tag)), "me", 0.0)


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


def test_the_reason_of_the_action_becomes_the_grant() -> None:
    assert checked_record(EMPTY_RECORD, "", 0) is EMPTY_RECORD
    assert checked_record(EMPTY_RECORD, "promising", 0) == DecisionRecord(grant=Said("promising"))
    assert checked_record(DecisionRecord(reason=Queued()), Promoted(3), 0).grant == Promoted(3.0)
    assert checked_record(DecisionRecord(grant=Said("mine")), Promoted(3), 0).grant == Said("mine")


def test_arrays_become_lists() -> None:
    state: Any = {"theta": np.array([1.0, np.inf]), "n": np.int64(3)}
    found = checked_record(DecisionRecord(fit={"loss": Fit(3, state)}), "", 0)
    assert found.fit == {"loss": Fit(3, {"theta": [1.0, None], "n": 3})}


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"fit": 3}, "record of decision 4 is a dict; it must be"),
        (
            DecisionRecord(reason=Modelled(score="high")),
            "the log cannot keep the record of decision 4",
        ),  # type: ignore[arg-type]
        (DecisionRecord(own={"mine": object()}), "a object is not plain data"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_recorded_is_named(record: Any, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        checked_record(record, "", 4)


def test_records_that_are_too_large_lose_whole_parts_and_say_so() -> None:
    large = Fit(3, {"theta": [0.123456789] * (MAX_RECORD_BYTES // 10)})
    degraded = "singular" + "x" * MAX_RECORD_BYTES
    found = checked_record(
        DecisionRecord(fit={"loss": large}, own={"scores": [1.0, 2.0]}, degraded=degraded), "", 0
    )
    assert found.fit is None and found.own == {"scores": [1.0, 2.0]}
    assert found.left_out["fit"] > MAX_RECORD_BYTES and "characters left out" in found.degraded


def test_the_values_of_an_author_go_one_by_one() -> None:
    own = {"small": [1], "large": "x" * MAX_RECORD_BYTES, "larger": "x" * (2 * MAX_RECORD_BYTES)}
    found = checked_record(DecisionRecord(own=own, reason=Queued()), "", 0)
    assert found.own == {"small": [1]} and set(found.left_out) == {"large", "larger"}
    assert found.reason == Queued()


SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_what_a_study_is_made_of_is_recorded_without_being_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    catalog.register_kernel("of-this-test", lambda columns: Scaled(Matern32(columns)))
    study = scrimp.create_study("s", SPACE, method="gp:kernel=of-this-test", storage="memory://")
    assert study.history.plugins == (__name__,)
    assert policy_of(study.history) is not None
    plain = scrimp.create_study("t", SPACE, method="gp", storage="memory://")
    assert plain.history.plugins == ()


def test_a_plugin_that_is_missing_ends_decisions_and_not_reading() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    study.tell(study.ask(), 0.5)
    study._ledger.append([StudyChanged(plugins=("no_such_module",))])
    with pytest.raises(PluginError, match="study 's' needs the plugin 'no_such_module'"):
        policy_of(study.history)
    assert study.best_value == 0.5 and len(study.trials) == 1


def test_naming_more_plugins_later_is_recorded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "toy_deciding.py").write_text("")
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("s", SPACE, method="random", storage=url)
    again = scrimp.create_study(
        "s", SPACE, method="random", storage=url, load_if_exists=True, plugins=["toy_deciding"]
    )
    assert again.history.plugins == ("toy_deciding",)


@pytest.mark.parametrize(("parent", "runs"), [(0, True), (1, False), (7, False), (-1, False)])
def test_a_planted_trial_continues_an_earlier_one_only(parent: int, runs: bool) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    study.tell(study.ask(), 0.5)
    study._ledger.append(
        [
            TrialAdded(trial=1, config={"x": 0.5}, continue_from=parent),
            BudgetGranted(trial=1, budget=1.0),
            Lost(trial=1),
        ]
    )
    assert study.ask().id == (1 if runs else 2)
    if not runs:
        assert study.trials[1].status == "failed"
        assert f"continues trial {parent}, which does not exist" in study.trials[1].message
