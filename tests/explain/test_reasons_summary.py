"""Why, in two sentences, with numbers that can be checked against the curves."""

import pytest

import scrimp
from scrimp.explain.reasons import explain, path_words
from scrimp.explain.seen import Rank
from scrimp.study_log.decision_record import (
    DecisionRecord,
    Expected,
    FirstDesign,
    Fit,
    Horizon,
    Modelled,
    Rival,
    Sources,
)
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    SourceAttached,
    TrialAdded,
)

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))

EPOCHS = scrimp.Budget("epoch", 1, 27)


def study(**settings: object) -> scrimp.Study:
    given = {"metric": "error", "method": "random", "storage": "memory://", "seed": 0, **settings}
    return scrimp.create_study("s", SPACE, **given)  # type: ignore[arg-type]


def decided(made: scrimp.Study, number: int, record: DecisionRecord, *events: Event) -> None:
    event = Decided(decision=number, seen=made.history.length, record=record)
    made._ledger.append([event, *events], number)


def frozen() -> scrimp.Study:
    """Two trials: the second is granted more against the first, as freeze-thaw notes it."""
    made = study(budget=scrimp.Budget("epoch", 1, 27), method="freeze-thaw")
    design = DecisionRecord(reason=FirstDesign())
    for trial, error in ((0, 0.4), (1, 0.3)):
        added = TrialAdded(trial=trial, config={"lr": 0.1, "layers": trial + 1})
        decided(made, trial, design, added, BudgetGranted(trial=trial, budget=1.0))
        made._ledger.append([Reported(trial=trial, step=1.0, metrics={"error": error})])
    rival = Rival(-1.0, trial=0, expected=Expected(0.31, 0.3, 0.6, 26.0))
    expected, asked = Expected(0.3, 0.3, 0.5, 26.0), Horizon(25.0, 0.3)
    record = DecisionRecord(reason=Modelled(0.0, expected, rivals=(rival,), question=asked))
    decided(made, 2, record, BudgetGranted(trial=1, budget=3.0, attempt=2))
    return made


def test_freeze_thaw_tells_chances_and_the_runner_up() -> None:
    told = explain(frozen().history, 1)
    way, why = told.summary
    assert way.startswith("It belongs to the first design")
    assert way.endswith(" Its rank when it continued: 1 of 2 after 1 epoch.")
    assert why == (
        "It was given 3 epochs in all, since it had the best chance, 50%, of beating its own error"
        " of 0.3 by epoch 26; runner-up: trial 0 (16%)."
    )
    lines = told.decisions[-1].lines
    assert "It was the most likely to beat the best error so far by epoch 26." in lines
    expected = "The model predicted a new best error after 26 epochs (95% interval: up to 0.5)"
    assert any(line.startswith(expected) for line in lines)
    assert "It had the highest chance: 50%." in lines and "Runner-up: trial 0, with 16%." in lines
    assert "interval 0.3 to" not in told.details and "more." not in why


def test_promotions_tell_their_ranks_and_who_stood_behind() -> None:
    made = study(budget=scrimp.Budget("epoch", 1, 9), method="asha")
    for trial, value in zip(made.ask(count=3), (0.5, 0.25, 0.75), strict=True):
        made.report(trial, step=1, error=value)
    assert made.ask().id == 1
    way, why = explain(made.history, 1).summary
    assert way.endswith(". Its rank when it continued: 1 of 3 after 1 epoch.")
    assert why.startswith("It was given 3 epochs in all: its value was within the cutoff at 1")
    assert why.endswith("next was trial 0 with 0.5.")
    way, why = explain(made.history, 2).summary
    assert why == (
        "It was given 1 epoch and no more: trial 1 with 0.25 was ahead of it and continued."
    )
    assert str(made.explain(2)) == explain(made.history, 2).text
    assert made.explain().trial == 1  # the best one


def test_trials_over_a_limit_are_not_ahead_of_those_within_it() -> None:
    limits = {"size": scrimp.AtMost(1)}
    made = study(budget=EPOCHS, method="asha", constraints=limits)
    reports = ((0.1, 5.0), (0.5, 1.0), (0.3, 1.0))
    for trial, (error, size) in enumerate(reports):
        added = TrialAdded(trial=trial, config={"lr": 0.1 + 0.1 * trial, "layers": 1})
        decided(made, trial, DecisionRecord(), added, BudgetGranted(trial=trial, budget=1.0))
        report = Reported(trial=trial, step=1.0, metrics={"error": error, "size": size})
        made._ledger.append([report])
    decided(made, 3, DecisionRecord(), BudgetGranted(trial=2, budget=3.0, attempt=2))
    given = "It was given 1 epoch and no more:"
    assert explain(made.history, 0).summary[1] == (
        f"{given} trial 2 with 0.3 was ahead of it and continued."
    )
    decided(made, 4, DecisionRecord(), BudgetGranted(trial=0, budget=3.0, attempt=2))
    assert (
        explain(made.history, 1).summary[1] == f"{given} the 3 later grants went to other trials."
    )


@pytest.mark.parametrize(
    ("method", "begun"),
    [
        ("asha-stopping", "A worker was free, so a new trial started with 9 epochs."),
        ("median:least=2", "It was drawn at random."),
    ],
)
def test_a_stopped_trial_tells_its_rank_then_and_nothing_of_promotions(
    method: str, begun: str
) -> None:
    made = study(budget=scrimp.Budget("epoch", 1, 9), method=method)
    for trial, value in zip(made.ask(count=5), (0.5, 0.25, 0.3, 0.75, 0.1), strict=True):
        made.report(trial, step=1, error=value)
    way, why = explain(made.history, 3).summary
    assert way == begun
    assert why == (
        "It was given 9 epochs at once, the whole training, and was stopped after 1 epoch, number 4 of"
        " the 4 trials that had come that far."
    )


@pytest.mark.parametrize(
    ("method", "trial", "begun"),
    [
        ("random", 3, "It was drawn at random."),
        ("ei-icm", 0, "It belongs to the method's first cells, which are chosen without a model."),
        ("kg", 8, "It is the most valuable cell "),
    ],
)
def test_the_cells_of_a_selection_are_chosen_as_the_method_says(
    method: str, trial: int, begun: str
) -> None:
    chosen = scrimp.create_selection(
        "cells", checkpoints=[1, 2, 3, 4], tasks=list("abc"), storage="memory://", method=method
    )
    chosen.run(lambda checkpoint, task: 0.1 * checkpoint, share=0.9, progress=False)
    assert explain(chosen.history, trial).summary[0].startswith(begun)


def test_a_method_without_a_model_speaks_of_none() -> None:
    made = study(method="nsga2")
    made.optimize(lambda trial: trial.params["lr"], n_trials=3, progress=False)
    assert explain(made.history, 2).summary[0] == (
        "It belongs to the first design: configurations spread over the space before there are enough"
        " results to learn from."
    )


def test_a_model_tells_what_it_expected_beside_the_best_and_the_alternative() -> None:
    made = study(method="gp")
    made.optimize(lambda trial: trial.params["lr"] + trial.params["layers"], n_trials=9)
    told = made.explain(6)
    assert told.summary[0].startswith("Chosen by a model after 6 reports, when ")
    assert ". By the model, error changes fastest along " in told.summary[0]
    assert ", when the best error so far was" in told.summary[0]
    assert f"; the result was {made.trials[6].value:.4g}." in told.summary[0]
    if told.decisions[0].competitors:
        other = told.decisions[0].competitors[0]["text"]
        assert told.summary[1] == f"Runner-up: {other}."


def test_constraints_cost_and_past_studies_are_told() -> None:
    made = study(constraints={"size": scrimp.AtMost(4)}, cost="seconds", method="gp")
    made._ledger.append([SourceAttached(study="old", length=3, digest="x")])
    sources = Sources(weights={"old": 0.7, "this study": 0.3})
    record = DecisionRecord(reason=Modelled(1.0), sources=sources)
    added = TrialAdded(trial=0, config={"lr": 0.1, "layers": 1})
    decided(made, 0, record, added, BudgetGranted(trial=0, budget=1.0))
    made.tell(0, {"error": 0.1, "size": 9.0, "seconds": 12.5})
    text = made.explain(0).text
    assert "Not all constraints are met (size at most 4: 9)." in text
    assert "It cost 12.5 seconds; the median trial cost 12.5." in text
    assert "Past studies had a weight of 70% in all; the largest was that of old, 70%." in text
    assert "Plain `gp` without past studies would have tried lr=" in text


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (
            {"old": 0.7, "older": 0.3, "this study": 0.0},
            "over 99% in all; the largest was that of old, 70%.",
        ),
        (
            {"old": 1.0, "this study": 0.0},
            "over 99% in all; the largest was that of old, over 99%.",
        ),
        (
            {"old": 0.4, "older": 0.4, "this study": 0.2},
            "80% in all; the largest was that of old and older, 40% each.",
        ),
        (
            {"old": 0.3, "older": 0.3, "oldest": 0.3, "this study": 0.1},
            "90% in all; the largest was that of old, older and oldest, 30% each.",
        ),
        ({"old": 1.0}, "100% in all; the largest was that of old, 100%."),
    ],
)
def test_a_rounded_weight_is_never_all_and_equal_ones_are_named_together(
    weights: dict[str, float], words: str
) -> None:
    made = study(method="gp")
    for name in ("old", "older", "oldest"):
        made._ledger.append([SourceAttached(study=name, length=3, digest="x")])
    record = DecisionRecord(reason=Modelled(1.0), sources=Sources(weights=weights))
    added = TrialAdded(trial=0, config={"lr": 0.1, "layers": 1})
    decided(made, 0, record, added, BudgetGranted(trial=0, budget=1.0))
    assert f"Past studies had a weight of {words}" in made.explain(0).text


def test_a_trial_that_nobody_decided_on() -> None:
    made = study(budget=EPOCHS)
    made._ledger.append([TrialAdded(trial=0, config={"lr": 0.1, "layers": 1})])
    told = "No decision about it is recorded: its result was entered or imported."
    assert made.explain(0).summary == (told,)


def test_the_way_is_short() -> None:
    ranks = [Rank(float(step), 0.1, 1 if step > 2 else step, 2) for step in range(1, 9)]
    assert path_words(ranks, EPOCHS) == "1 of 2 after 1, 2 of 2 after 2, 1 of 2 after 3 to 8 epochs"
    long = [Rank(float(step), 0.1, step, 20) for step in range(1, 10)]
    shown = path_words(long, EPOCHS)
    assert shown.count("after") == 6 and "…" in shown and shown.endswith("9 of 20 after 9 epochs")


def modelled(made: scrimp.Study, *fits: DecisionRecord) -> str:
    """The first sentence on the last of some trials, one for each record."""
    for number, record in enumerate(fits):
        added = TrialAdded(trial=number, config={"lr": 0.1 * (number + 1), "layers": 1})
        decided(made, number, record, added, BudgetGranted(trial=number, budget=1.0))
        made.tell(number, 0.5)
    return made.explain(len(fits) - 1).summary[0]


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (
            0.6,
            "Predicted 0.6 (95% interval 0.4 to 0.9, noise excluded), tried because it was uncertain; the",
        ),
        (0.5, "Predicted 0.5 (95% interval 0.4 to 0.9, noise excluded); the result was 0.5."),
        (0.45, "Predicted 0.45 (95% interval 0.4 to 0.9, noise excluded); the result was 0.5."),
    ],
)
def test_a_choice_that_promised_no_better_value_is_called_a_try(loss: float, words: str) -> None:
    record = DecisionRecord(reason=Modelled(1.0, Expected(loss, 0.4, 0.9)))
    sentence = modelled(study(method="gp"), DecisionRecord(reason=FirstDesign()), record)
    assert "the best error so far was 0.5 (trial 0)" in sentence and words in sentence


def test_a_decision_without_a_fit_used_the_latest_one_before() -> None:
    layers_first, lr_first = (
        DecisionRecord(reason=Modelled(1.0), fit={"gp": Fit(3, {}, length_scales=scales)})
        for scales in ((2.0, 0.1), (0.1, 2.0))
    )
    unfitted = DecisionRecord(reason=Modelled(1.0))
    for records, fastest in (
        ((layers_first, lr_first, unfitted), "lr, then layers"),
        ((lr_first, layers_first, unfitted), "layers, then lr"),
        ((lr_first, layers_first), "layers, then lr"),
    ):
        assert f"changes fastest along {fastest}" in modelled(study(method="gp"), *records)


@pytest.mark.parametrize(
    ("costs", "middle"), [((9.0, 1.0, 5.0), "5"), ((4.0, 1.0), "4"), ((2.0, 8.0, 6.0, 4.0), "6")]
)
def test_the_median_cost_is_that_of_the_middle_trial(costs: tuple[float, ...], middle: str) -> None:
    made = study(cost="dollars", method="gp")
    for cost in costs:
        made.tell(made.ask(), {"error": 0.5, "dollars": cost})
    made.ask()
    assert f"It cost {costs[0]:g} dollars; the median trial cost {middle}." in made.explain(0).text


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_equal_trials_share_a_rank(direction: str) -> None:
    made = study(direction=direction)
    sign = 1.0 if direction == "minimize" else -1.0
    for value in (0.2, 0.1, 0.1, 0.3):
        made.tell(made.ask(), sign * value)
    made.tell(made.ask(), state="failed")
    headlines = [made.explain(number).headline for number in range(5)]
    ranks = [line.partition("; ")[2] for line in headlines]
    assert ranks == ["rank 3 of 4", "rank 1 of 4", "rank 1 of 4", "rank 4 of 4", ""]


def trained(trial: scrimp.LiveTrial) -> None:
    for epoch in trial.steps():
        trial.report(error=abs(trial.params["lr"] - 0.1) + 0.1 * trial.params["layers"] + 1 / epoch)


@pytest.mark.parametrize("method", ["hyperband", "asha", "sync-hyperband", "freeze-thaw", "median"])
def test_why_a_trial_got_no_more_agrees_with_the_log(method: str) -> None:
    """If all trials that were given the same budget and more later reported lower values there, they
    continued ahead of it; a trial is not called worse because the study ended."""
    made = study(budget=EPOCHS, method=method)
    made.optimize(trained, n_trials=25, total_budget=150)
    grants = [event for event in made.history.events if isinstance(event, BudgetGranted)]
    given = {t.id: [one.budget for one in grants if one.trial == t.id] for t in made.trials}
    values = {t.id: {point.step: point.loss for point in t.curve} for t in made.trials}
    for trial in made.trials:
        (budget, *more) = given[trial.id]
        text = str(made.explain(trial.id))
        if more or not trial.curve:
            continue
        if budget == 27:
            assert ("stopped after" in text) == (trial.status == "stopped")
            continue
        ahead = [
            other for other, budgets in given.items() if budget in budgets and budgets[-1] > budget
        ]
        if any(values[other][budget] >= values[trial.id][budget] for other in ahead):
            ahead = []
        if len(ahead) > 1:
            assert f"{len(ahead)} trials ahead of it continued" in text
        elif ahead:
            assert f"trial {ahead[0]} with" in text and "was ahead of it and continued" in text
        else:
            later = max(place for place, one in enumerate(grants) if one.trial == trial.id)
            words = "later grant" if later + 1 < len(grants) else "no grant was made after its"
            assert words in text and "promising" not in text


def test_a_trial_is_not_called_worse_if_a_worse_one_continued() -> None:
    made = study(budget=scrimp.Budget("epoch", 1, 9), method="asha")
    for trial, value in zip(made.ask(count=3), (0.5, 0.25, 0.75), strict=True):
        made.report(trial, step=1, error=value)
    assert made.ask().id == 1
    assert "trial 1 with 0.25 was ahead" in str(made.explain(0))
    decided(made, 4, DecisionRecord(), BudgetGranted(trial=2, budget=3.0))
    text = str(made.explain(0))
    assert "ahead of it" not in text and "the 2 later grants went to other trials" in text


def test_a_trial_is_not_called_worse_because_the_study_ended() -> None:
    made = study(budget=EPOCHS, method="asha")
    made.optimize(trained, n_trials=1)
    assert "1 epoch and no more: no grant was made after its report." in str(made.explain(0))
