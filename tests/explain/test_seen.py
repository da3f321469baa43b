"""What a decision could see, counted by hand."""

import scrimp
from scrimp.explain.seen import Rank, rank_then, seen_by, state_after
from scrimp.study_log.events import BudgetGranted, Ended, Event, Lost, Reported, TrialAdded
from scrimp.study_log.problem import Problem

PROBLEM = Problem(
    scrimp.Space(x=scrimp.Float(0, 1)),
    metrics={"error": "minimize"},
    budget=scrimp.Budget("epoch", 1, 9),
    constraints={"size": scrimp.AtMost(4)},
)


def report(trial: int, step: float, error: float | None, size: float = 1.0) -> Event:
    return Reported(trial=trial, step=step, metrics={"error": error, "size": size})


EVENTS: list[Event] = [
    *(TrialAdded(trial=number, config={"x": 0.1 * number}) for number in range(4)),
    report(0, 1.0, 0.5),
    report(1, 1.0, 0.4),
    report(1, 2.0, 0.3),
    report(2, 1.0, 0.1, size=9.0),  # the lowest, and over the limit
    report(3, 1.0, None),
    Ended(trial=3, status="failed"),
]
THEN = state_after(PROBLEM, EVENTS)


def test_what_was_seen() -> None:
    seen = seen_by(THEN, 1)
    assert (seen.trials, seen.reports, seen.failures) == (4, 5, 1)
    assert seen.best == (0.3, 1) and seen.reached == 2.0
    assert seen.best_words(PROBLEM) == "the best error so far was 0.3 (trial 1)"
    assert seen_by(state_after(PROBLEM, []), 0).best_words(PROBLEM) == ""
    # A late report of a lower step takes no budget back.
    assert seen_by(state_after(PROBLEM, [*EVENTS, report(1, 1.5, 0.35)]), 1).reached == 2.0


def test_reports_that_do_not_count_were_not_seen() -> None:
    again = [
        report(1, 1.0, 0.05),  # trained again after a loss of its state: the first report counts
        BudgetGranted(trial=0, budget=9.0, attempt=1),
        Lost(trial=0, attempt=1),
        BudgetGranted(trial=0, budget=9.0, attempt=2),
        report(0, 2.0, 0.01),  # of the attempt that was lost
    ]
    then = state_after(PROBLEM, [*EVENTS, *again])
    seen = seen_by(then, 0)
    assert (seen.reports, seen.best, seen.reached) == (5, (0.3, 1), 1.0)
    assert rank_then(then, 1, 1.0) == Rank(1.0, 0.4, 1, 3, 0, 0.5)


def test_trials_that_do_not_fit_the_space_are_counted_apart() -> None:
    seen = seen_by(THEN, 0, unfit={1, 3})
    assert (seen.trials, seen.reports, seen.failures, seen.unfit) == (2, 2, 0, 2)
    assert seen.best == (0.5, 0)


def test_ranks_are_among_those_that_had_come_as_far() -> None:
    assert rank_then(THEN, 1, 2.0) == Rank(2.0, 0.3, 1, 1)
    assert rank_then(THEN, 1, 1.0) == Rank(1.0, 0.4, 1, 3, 0, 0.5)  # as it was then
    first = rank_then(THEN, 0, 1.0)
    assert first == Rank(1.0, 0.5, 2, 3, 2, 0.1)  # behind it the one over the limit
    words = "After 1 epoch it had error 0.5, rank 2 of the 3 trials that had come that far; next was trial 2"
    assert first is not None and first.sentence(PROBLEM) == f"{words} with 0.1."
    assert Rank(2.0, 0.3, 1, 1).sentence(PROBLEM).endswith("no other trial had come that far.")
    assert rank_then(THEN, 3, 1.0) is None
