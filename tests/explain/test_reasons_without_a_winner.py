"""Reasons where the usual one does not hold: nothing is feasible yet, the model failed, or paused
trials may not continue. Each is compared with the log of a real study."""

from typing import Any

import msgspec
import pytest

import scrimp
from scrimp.errors import NumericalError
from scrimp.explain.reason_words import SCORES, score_words, why
from scrimp.explain.reasons import explain
from scrimp.freeze_thaw import freeze_thaw
from scrimp.json_values import JsonObject
from scrimp.study_log.decision_record import (
    AheadOfHalf,
    DecisionRecord,
    Expected,
    Gain,
    Modelled,
    Race,
    Scouted,
    Sources,
)
from scrimp.study_log.events import Decided, SourceAttached
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))
BUDGET = scrimp.Budget("epoch", 1, 9)


def train(trial: scrimp.LiveTrial) -> None:
    for step in trial.steps():
        error = trial.params["lr"] + trial.params["layers"] + 1 / step
        trial.report(error=error, size=float(trial.params["layers"]))


def study_of(method: str, **settings: Any) -> scrimp.Study:
    return scrimp.create_study(
        "s", SPACE, metric="error", method=method, storage="memory://", seed=0, **settings
    )


def reasons(study: scrimp.Study) -> list[Modelled]:
    decided = (event for event in study.history.events if isinstance(event, Decided))
    found = (event.record.reason for event in decided)
    return [reason for reason in found if isinstance(reason, Modelled)]


@pytest.mark.parametrize("method", ["gp", "gp-pi", "gp-ucb"])
def test_while_nothing_is_feasible_the_score_is_that_of_feasibility(method: str) -> None:
    study = study_of(method, constraints={"size": scrimp.AtMost(0.5)})
    study.optimize(
        lambda trial: {"error": trial.params["lr"], "size": trial.params["layers"]}, n_trials=6
    )
    (*_, reason) = reasons(study)
    assert reason.score is not None and reason.score < 0.0  # the logarithm of a probability
    details = study.explain(5).details
    assert "(the logarithm of the probability that all constraints are satisfied)" in details
    assert "improvement" not in details and "bound in" not in details


def test_a_probability_of_improvement_is_told_as_the_logarithm_that_it_is() -> None:
    study = study_of("gp-pi")
    study.optimize(lambda trial: trial.params["lr"], n_trials=6)
    (*_, reason) = reasons(study)
    assert reason.score is not None and reason.score < 0.0
    assert "(the logarithm of the probability of improvement)" in study.explain(5).details


def test_while_nothing_is_feasible_freeze_thaw_names_no_best_value() -> None:
    study = study_of("freeze-thaw", budget=BUDGET, constraints={"size": scrimp.AtMost(0.5)})
    study.optimize(train, n_trials=8)
    asked = [reason.question for reason in reasons(study)]
    assert any(isinstance(question, Gain | Race) for question in asked)
    told = [study.explain(trial.id).details for trial in study.trials]
    assert any("progress towards feasibility" in text for text in told)
    assert not any("improvement" in text or "best error" in text for text in told)


def test_each_question_without_a_feasible_trial_has_its_own_words() -> None:
    problem = Problem(SPACE, budget=BUDGET, constraints={"size": scrimp.AtMost(0.5)})
    for question in (Gain(9.0, None, per_unit=True), Race()):
        record = DecisionRecord(reason=Modelled(-1.0, question=question))
        score = score_words(record, {"name": "freeze-thaw"}, problem, 0, True)
        assert score.startswith("the logarithm of the expected progress towards feasibility")
        assert "feasibility" in why(record, problem, "freeze-thaw", True, 1.0)


def test_a_failed_model_is_no_scout_of_a_plateau(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise NumericalError("not positive definite")

    monkeypatch.setattr(freeze_thaw, "model_study", fail)
    study = study_of("freeze-thaw:initial=2", budget=BUDGET)
    study.optimize(train, n_trials=6)
    records = [event.record for event in study.history.events if isinstance(event, Decided)]
    assert any(isinstance(record.reason, Scouted) for record in records)
    assert any(isinstance(record.reason, AheadOfHalf) for record in records)
    told = "".join(study.explain(trial.id).details for trial in study.trials)
    assert "The model failed, so it is a random configuration." in told
    assert "many trials share the best value" not in told and "Some decisions" not in told


def test_paused_trials_that_may_not_continue_are_not_denied() -> None:
    study = study_of("dyhpo", budget=scrimp.Budget("epoch", 1, 27))
    study.optimize(train, n_trials=16)
    told = 0
    for trial in study.trials:
        for decision in study.explain(trial.id).decisions:
            before = study.history.events[: study.history.events.index(_decided(study, decision))]
            paused = scrimp.study_log.history.History.of(before).with_status("paused")
            text = " ".join(decision.lines)
            assert not ("There was no paused trial" in text and paused)
            told += "No paused trial competed: what halving would train" in text
    assert told


def _decided(study: scrimp.Study, decision: object) -> Decided:
    number = decision.decision  # type: ignore[attr-defined]
    events = (event for event in study.history.events if isinstance(event, Decided))
    return next(event for event in events if event.decision == number)


def test_ranks_with_constraints_say_how_they_order() -> None:
    study = study_of("asha", budget=BUDGET, constraints={"size": scrimp.AtMost(2)})
    study.optimize(train, n_trials=8)
    told = "".join(study.explain(trial.id).details for trial in study.trials)
    assert "Trials that violate a constraint rank last" in told


def test_the_score_of_a_decision_with_past_studies_is_told_with_what_they_add() -> None:
    method: JsonObject = {"name": "task-prior", "settings": {}}
    problem = Problem(SPACE)
    past = DecisionRecord(sources=Sources(weights={"old": 0.9, "this study": 0.1}))
    assert "past studies add" in score_words(past, method, problem)
    own_turn = DecisionRecord(sources=Sources(weights={"this study": 1.0}))
    assert score_words(own_turn, method, problem) == SCORES["log-ei"]


@pytest.mark.parametrize(
    ("weights", "said"), [({"old": 0.5, "this study": 0.5}, False), ({}, True)]
)
def test_uncertainty_is_the_reason_only_where_no_past_study_has_a_say(
    weights: dict[str, float], said: bool
) -> None:
    """A decision as it stands in the log of a study with the past study "old"."""
    study = study_of("random")
    for number in range(2):
        study.tell(study.ask(), 1.0 + number)
    created, *events = study.history.events
    expected = Expected(1.2, 0.5, 1.9)
    record = DecisionRecord(
        reason=Modelled(-1.0, expected), sources=Sources(weights=weights) if weights else None
    )
    attached = SourceAttached(study="old", length=1, digest="d")
    log = [created, attached, *events]
    place = max(at for at, event in enumerate(log) if isinstance(event, Decided))
    decided = log[place]
    assert isinstance(decided, Decided)
    log[place] = msgspec.structs.replace(decided, record=record, seen=decided.seen + 1)
    history = History.of(log)
    text = " ".join(explain(history, 1).summary)
    assert "Predicted 1.2" in text and ("tried because it was uncertain" in text) == said
