"""Why, in two sentences, with numbers that can be checked against the curves."""

import scrimp
from scrimp.explaining.reasons import explain
from scrimp.explaining.seen import Rank
from scrimp.explaining.summary import path_words
from scrimp.history.events import BudgetGranted, Event, Noted, Reported, SourceAttached, TrialAdded
from scrimp.history.notes import (
    Expected,
    FirstDesign,
    Horizon,
    Modelled,
    Notes,
    Rival,
    Sources,
)

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))

EPOCHS = scrimp.Budget("epoch", 1, 27)


def study(**settings: object) -> scrimp.Study:
    given = {"metric": "error", "method": "random", "storage": "memory://", "seed": 0, **settings}
    return scrimp.create_study("s", SPACE, **given)  # type: ignore[arg-type]


def decided(made: scrimp.Study, number: int, notes: Notes, *events: Event) -> None:
    noted = Noted(decision=number, seen=made.history.length, notes=notes)
    made._ledger.append([noted, *events], number)


def frozen() -> scrimp.Study:
    """Two trials: the second is granted more against the first, as freeze-thaw notes it."""
    made = study(budget=scrimp.Budget("epoch", 1, 27), method="freeze-thaw")
    design = Notes(reason=FirstDesign())
    for trial, error in ((0, 0.4), (1, 0.3)):
        added = TrialAdded(trial=trial, config={"lr": 0.1, "layers": trial + 1})
        decided(made, trial, design, added, BudgetGranted(trial=trial, budget=1.0))
        made._ledger.append([Reported(trial=trial, step=1.0, metrics={"error": error})])
    rival = Rival(-1.0, trial=0, expected=Expected(0.31, 0.3, 0.6, 26.0))
    expected, asked = Expected(0.3, 0.3, 0.5, 26.0), Horizon(25.0, 0.3)
    notes = Notes(reason=Modelled(0.0, expected, rivals=(rival,), question=asked))
    decided(made, 2, notes, BudgetGranted(trial=1, budget=3.0, attempt=2))
    return made


def test_freeze_thaw_tells_chances_and_who_else_would_have_gone_on() -> None:
    told = explain(frozen().history, 1)
    way, why = told.summary
    assert way.startswith("It belongs to the first design")
    assert way.endswith("then it was rank 1 of 2 after 1 epoch.")
    assert why == (
        "It was given 3 epochs in all, since it had the best chance, 50%, of beating its own error"
        " of 0.3 by epoch 26; otherwise trial 0 (16%) would have gone on."
    )
    lines = told.decisions[-1].lines
    assert "It was the most likely of all to beat the best error so far by epoch 26." in lines
    expected = "The model expected a new best error after 26 epochs, and 0.5 if it goes badly"
    assert any(line.startswith(expected) for line in lines)
    assert (
        "Its chance was the best: 50%." in lines and "The runner-up was trial 0, with 16%." in lines
    )
    assert "between 0.3 and" not in told.details and "more." not in why


def test_promotions_tell_their_ranks_and_who_stood_behind() -> None:
    made = study(budget=scrimp.Budget("epoch", 1, 9), method="asha")
    for trial, value in zip(made.ask(count=3), (0.5, 0.25, 0.75), strict=True):
        made.report(trial, step=1, error=value)
    assert made.ask().id == 1
    way, why = explain(made.history, 1).summary
    assert way.endswith("; then it was rank 1 of 3 after 1 epoch.")
    assert why.startswith("It was given 3 epochs in all: its value was within the cutoff at 1")
    assert why.endswith("behind it was trial 0 with 0.5.")
    way, why = explain(made.history, 2).summary
    assert why == (
        "It was given 1 epoch and no more: trial 1 with 0.25 stood ahead of it then, and went on."
    )
    assert str(made.explain(2)) == explain(made.history, 2).text
    assert made.explain().trial == 1  # the best one


def test_a_model_tells_what_it_expected_beside_the_best_and_the_alternative() -> None:
    made = study(method="gp")
    made.optimize(lambda trial: trial.params["lr"] + trial.params["layers"], n_trials=9)
    told = made.explain(8)
    assert told.summary[0].startswith("A model of 8 reports, which saw error change fastest along ")
    assert " chose it when the best error so far was" in told.summary[0]
    assert f"; it came out at {made.trials[8].value:.4g}." in told.summary[0]
    if told.decisions[0].competitors:
        other = told.decisions[0].competitors[0]["text"]
        assert told.summary[1] == f"Otherwise {other} would have been chosen."


def test_constraints_cost_and_past_studies_are_told() -> None:
    made = study(constraints={"size": scrimp.AtMost(4)}, cost="seconds")
    made._ledger.append([SourceAttached(study="old", length=3, digest="x")])
    sources = Sources(weights={"old": 0.7, "this study": 0.3})
    notes = Notes(reason=Modelled(1.0), sources=sources)
    added = TrialAdded(trial=0, config={"lr": 0.1, "layers": 1})
    decided(made, 0, notes, added, BudgetGranted(trial=0, budget=1.0))
    made.tell(0, {"error": 0.1, "size": 9.0, "seconds": 12.5})
    text = made.explain(0).text
    assert "Not all constraints hold (size at most 4: 9)." in text
    assert "It cost 12.5 seconds; the median trial cost 12.5." in text
    assert "Past studies counted 70% then, most old with 70%." in text
    assert "Without the past studies the model would have chosen lr=" in text


def test_a_trial_that_nobody_decided_on() -> None:
    made = study(budget=EPOCHS)
    made._ledger.append([TrialAdded(trial=0, config={"lr": 0.1, "layers": 1})])
    told = "No decision about it is recorded: its result was told or imported."
    assert made.explain(0).summary == (told,)


def test_the_way_is_short() -> None:
    ranks = [Rank(float(step), 0.1, 1 if step > 2 else step, 2) for step in range(1, 9)]
    assert (
        path_words(ranks, EPOCHS)
        == "rank 1 of 2 after 1, 2 of 2 after 2, 1 of 2 after 3 to 8 epochs"
    )
    long = [Rank(float(step), 0.1, step, 20) for step in range(1, 10)]
    shown = path_words(long, EPOCHS)
    assert shown.count("after") == 6 and "…" in shown and shown.endswith("9 of 20 after 9 epochs")
