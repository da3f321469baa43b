"""Explanations say what the log says, for every kind of method."""

import json

import pytest

import scrimp
from scrimp.display.figures import config_words
from scrimp.errors import StudyError
from scrimp.explain.reasons import explain
from scrimp.study_log.decision_record import DecisionRecord, Modelled, Rival, Sources
from scrimp.study_log.events import BudgetGranted, Decided, SourceAttached, TrialAdded

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))


def tuned(method: str, **settings: object) -> scrimp.Study:
    study = scrimp.create_study(
        "s", SPACE, metric="error", method=method, storage="memory://", seed=0, **settings
    )  # type: ignore[arg-type]

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(error=trial.params["lr"] + trial.params["layers"] + 1 / step)

    study.optimize(objective, n_trials=10)
    return study


def test_a_model_based_decision() -> None:
    study = tuned("gp:initial=4")
    decided = [event for event in study.history.events if isinstance(event, Decided)]
    number = next(
        place
        for place, event in enumerate(decided)
        if isinstance(event.record.reason, Modelled) and event.record.reason.rivals
    )  # one decision per trial
    first, last = explain(study.history, 0), explain(study.history, number)
    assert "first design" in first.details and first.decisions[0].trials_seen == 0
    (decision,) = last.decisions
    reason = decided[number].record.reason
    assert isinstance(reason, Modelled) and reason.expected and reason.rivals
    assert decision.new and decision.trials_seen == decision.reports_seen == number >= 4
    assert (
        f"predicted error {reason.expected.loss:.4g} (95% interval {reason.expected.low:.4g}"
        in last.details
    )
    best = min(trial.value for trial in study.trials[:number] if trial.value is not None)
    assert f"the best error so far was {best:.4g}" in last.details
    assert f"The result was {study.trials[number].value:.4g}" in last.details
    assert f"It had the highest score: {reason.score:.4g}" in last.details
    runner = reason.rivals[0]
    assert f"Runner-up: {config_words(runner.config)}, with {runner.score:.4g}" in last.details
    assert decision.competitors[0] == {
        "text": config_words(runner.config),
        "score": runner.score,
    }
    assert f"fitted for this decision, to {number} observations" in last.details
    json.dumps(last.to_json())


def test_promotions_are_decisions_too() -> None:
    study = tuned("asha", budget=scrimp.Budget("epoch", 1, 9))
    best = explain(study.history, study.best_trial.id)
    assert [decision.budget for decision in best.decisions] == [1.0, 3.0, 9.0]
    assert [decision.new for decision in best.decisions] == [True, False, False]
    assert "within the cutoff at 1, so it was promoted to 3 epochs" in best.details
    assert "so a new one started with 1 epoch." in best.details
    assert f"error {best.value:.6g} after 9 epochs" in best.headline
    assert best.decisions[1].title == "more budget, 3 epochs in all"
    grants = [event for event in study.history.events if isinstance(event, BudgetGranted)]
    told = sum(len(explain(study.history, number).decisions) for number in range(len(study.trials)))
    assert told == len(grants)


def test_enqueued_and_taken_up_again() -> None:
    study = scrimp.create_study("q", SPACE, method="random", storage="memory://", seed=0)
    study.enqueue({"lr": 0.1, "layers": 2})
    study.ask()
    assert "queue comes before the method" in explain(study.history, 0).details


def test_degraded_decisions_say_so() -> None:
    study = scrimp.create_study("d", SPACE, method="random", storage="memory://", seed=0)
    record = DecisionRecord(
        degraded="the model failed (singular); quasi-random instead",
        sources=Sources(weights={"old": 0.7, "this study": 0.3}),
    )
    batch = [
        Decided(decision=0, seen=1, record=record),
        TrialAdded(trial=0, config={"lr": 0.1, "layers": 1}),
        BudgetGranted(trial=0, budget=1.0),
    ]
    study._ledger.append(batch, 0)
    explanation = explain(study.history, 0)
    assert "Degraded: the model failed (singular)" in explanation.details
    assert "Weights of studies: old 70%, this study 30%." in explanation.details
    assert explanation.without_sources is None


def test_what_would_have_been_chosen_without_the_past() -> None:
    study = scrimp.create_study("t", SPACE, method="random", storage="memory://", seed=0)
    study._ledger.append([SourceAttached(study="old", length=3, digest="x")])
    study.ask()  # at random: past studies had no part in it
    assert explain(study.history, 0).without_sources is None
    config = {"lr": 0.1, "layers": 1}
    for trial, weight in ((1, 0.0), (2, 0.7)):
        sources = Sources(weights={"old": weight, "this study": 1.0 - weight})
        batch = [
            Decided(decision=trial, seen=1, record=DecisionRecord(sources=sources)),
            TrialAdded(trial=trial, config=config),
            BudgetGranted(trial=trial, budget=1.0),
        ]
        study._ledger.append(batch, trial)
    assert explain(study.history, 1).without_sources is None
    explanation = explain(study.history, 2)
    assert explanation.without_sources is not None and set(explanation.without_sources) == {
        "lr",
        "layers",
    }
    assert "Plain `gp` without past studies would have tried lr=" in explanation.details
    same = [
        Decided(decision=3, seen=1, record=DecisionRecord(sources=sources)),
        TrialAdded(trial=3, config=explanation.without_sources),
        BudgetGranted(trial=3, budget=1.0),
    ]
    study._ledger.append(same, 3)
    assert explain(study.history, 3).without_sources is None


def test_a_promoted_trial_is_told_its_rank() -> None:
    study = scrimp.create_study(
        "r", SPACE, metric="error", budget=scrimp.Budget("epoch", 1, 9), method="asha", storage="memory://", seed=0,
        constraints={"size": scrimp.AtMost(4)},
    )  # fmt: skip
    for trial, (value, size) in zip(
        study.ask(count=3), ((0.1, 9.0), (0.3, 1.0), (0.4, 2.0)), strict=True
    ):
        study.report(trial, step=1, error=value, size=size)  # the first violates the limit
    assert study.ask().id == 1  # promoted
    lines = explain(study.history, 1).decisions[1].lines
    assert (
        "After 1 epoch it had error 0.3, rank 1 of the 3 trials that had come that far; next was trial 2"
        " with 0.4." in lines
    )


def test_a_competitor_is_somebody_else() -> None:
    study = scrimp.create_study(
        "c", SPACE, metric="error", method="gp", storage="memory://", seed=0
    )
    same = {"lr": 0.1, "layers": 1}
    others = [
        Rival(1.0, same | {"lr": 0.1 + 1e-9}),
        Rival(1.0, same | {"lr": 0.1005}),  # within a hundredth: the same place
        Rival(0.9, {"lr": 0.5, "layers": 2}),
    ]
    for number, competitors in enumerate((others, others[:1])):
        reason = Modelled(1.0, rivals=tuple(competitors), exploring=number == 1)
        batch = [
            Decided(decision=number, seen=1, record=DecisionRecord(reason=reason)),
            TrialAdded(trial=number, config=same),
        ]
        study._ledger.append([*batch, BudgetGranted(trial=number, budget=1.0)], number)
    first, second = explain(study.history, 0), explain(study.history, 1)
    assert (
        "Runner-up: lr=0.5, layers=2, with 0.9." in first.details
        and "expected improvement" in first.details
    )
    assert "There was no runner-up" in second.details and "to explore where" in second.details
    assert "expected improvement" not in second.details  # an optimistic bound decided


def test_a_cell_of_a_selection_is_explained_by_the_answer_of_the_time() -> None:
    selection = scrimp.create_selection(
        "t", checkpoints=[1, 2, 3, 4], tasks=["a", "b"], storage="memory://", seed=0
    )
    for score in (0.1, 0.2, 0.3, 0.4, 0.5):
        selection.tell(*selection.ask(), score, stderr=0.05)
    text = explain(selection.history, 4).details
    assert (
        "The answer then was checkpoint" in text
        and "with probability" in text
        and "best score" not in text
    )


@pytest.mark.parametrize("number", [-1, 5])
def test_unknown_trials_are_said(number: int) -> None:
    study = scrimp.create_study("e", SPACE, method="random", storage="memory://")
    with pytest.raises(StudyError, match=f"no trial {number}"):
        explain(study.history, number)
