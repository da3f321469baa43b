"""Why, in two sentences: the way of a trial through the ranks, and why it got its last budget and
nobody else did. Where a study has constraints, a cost or past studies, a sentence on each follows.

Numbers are those that a person can check against the curves: values reported by then, ranks, and
budgets counted from the beginning of the trial.
"""

from collections.abc import Mapping, Sequence

from scrimp.explaining.front_words import aim_lines
from scrimp.explaining.reason_words import (
    by_chance,
    chance,
    competitors_of,
    config_text,
    counted,
    step_words,
    why,
)
from scrimp.explaining.seen import Rank, Seen
from scrimp.history.constraint_rules import constraint_words
from scrimp.history.history import History
from scrimp.history.notes import Horizon, Modelled, Notes
from scrimp.history.problem import Budget, Problem
from scrimp.history.trial import Trial

__all__ = [
    "Moment",
    "outcome_sentences",
    "path_words",
    "way_sentence",
    "why_sentence",
    "without_words",
]

Moment = tuple[Notes, Seen, Rank | None, float, bool]
"""One decision about a trial: its notes, what it saw, the trial's rank, the budget, and whether it
added the trial."""

MOST_RANKS = 6
"""Stops on the way that are named."""


def way_sentence(history: History, trial: Trial, moments: Sequence[Moment]) -> str:
    """How it began, and its ranks on the way."""
    if not moments:
        return "No decision about it is recorded: its result was told or imported."
    notes, seen, _, budget, new = moments[0]
    begun = why(notes, history.problem, str(history.method.get("name", "")), new, budget)
    if not new:
        begun = "Its beginning is not recorded."
    elif isinstance(notes.reason, Modelled):
        begun = _modelled(history.problem, trial, notes.reason, seen)
    ranks = [rank for _, _, rank, _, _ in moments if rank is not None]
    if not ranks or history.problem.budget is None:
        return begun
    return f"{begun[:-1]}; then it was {path_words(ranks, history.problem.budget)}."


def _modelled(problem: Problem, trial: Trial, reason: Modelled, seen: Seen) -> str:
    """What a model promised of a new configuration, beside the best there was."""
    past = seen.best_words(problem)
    begun = f"A model of {counted(seen.reports, 'report')}{seen.depends} chose it"
    begun += f" when {past}" if past else ""
    aims = aim_lines(reason.each, seen.front, problem.trade_off)
    if aims:
        return f"{begun}. {aims[0]}"
    expected = reason.expected
    if expected is None or problem.budget is not None:
        return f"{begun}."
    ends = (expected.loss if end is None else end for end in (expected.low, expected.high))
    low, high = sorted(problem.sign * end for end in ends)
    value, band = problem.sign * expected.loss, f"between {low:.4g} and {high:.4g}"
    came = "" if trial.value is None else f"; it came out at {trial.value:.4g}"
    if seen.best is not None and expected.loss > seen.best[0]:
        unsure = f"{value:.4g} at a guess, but anything {band}"
        return f"{begun}: it expected {unsure}, so it was worth a try{came}."
    return f"{begun}: it expected {value:.4g}, {band}{came}."


def path_words(ranks: Sequence[Rank], budget: Budget) -> str:
    """Places on the way, each once: ``rank 2 of 20 after 1, 1 of 2 after 8 to 21 epochs``."""
    stops: list[tuple[int, int, float, float]] = []
    for rank in ranks:
        if stops and stops[-1][:2] == (rank.place, rank.count):
            stops[-1] = (*stops[-1][:3], rank.reached)
        else:
            stops.append((rank.place, rank.count, rank.reached, rank.reached))
    said = [
        f"{place} of {count} after {begin:g}" + (f" to {end:g}" if end > begin else "")
        for place, count, begin, end in stops
    ]
    if len(said) > MOST_RANKS:
        said = [*said[:2], "…", *said[2 - MOST_RANKS :]]
    unit = budget.name if stops[-1][3] == 1 else budget.units
    return f"rank {', '.join(said)} {unit}"


def why_sentence(history: History, trial: Trial, moments: Sequence[Moment]) -> str:
    """Why it got its last budget, and what would have been chosen otherwise."""
    if not moments:
        return ""
    problem = history.problem
    notes, seen, rank, budget, new = moments[-1]
    reason = notes.reason
    if isinstance(reason, Modelled) and isinstance(reason.question, Horizon) and problem.budget:
        return _raced(problem, trial, notes, seen, budget)
    others = competitors_of(notes, trial)
    instead = f"otherwise {others[0]['text']} would have been chosen" if others else ""
    if problem.budget is None:
        return f"{instead[0].upper()}{instead[1:]}." if instead else ""
    if new:
        given = f"It was given {_given(history, trial, budget)}"
        return f"{given}; {instead}." if instead else f"{given}."
    words = why(notes, problem, str(history.method.get("name", "")), new, budget)
    if not instead and rank is not None and rank.next_trial is not None:
        instead = f"behind it was trial {rank.next_trial} with {rank.next_value:.4g}"
    last = f"It was given {problem.budget.amount(budget)} in all: {words[0].lower()}{words[1:-1]}"
    return f"{last}; {instead}." if instead else f"{last}."


def _given(history: History, trial: Trial, budget: float) -> str:
    """The only budget of a trial, and why it was never granted more: who of those that came as far
    went on."""
    assert history.problem.budget is not None
    amount = history.problem.budget.amount(budget)
    if budget >= history.problem.full_budget:
        return f"{amount} at once, the whole training"
    ends = {"running": "so far", "failed": "for it failed", "stale": "for its worker vanished"}
    if trial.status in ends:
        return f"{amount} and no more, {ends[trial.status]}"
    ahead = [
        other
        for other in history.trials
        if other.granted > budget
        and _at(other, budget) is not None
        and _ahead(other, trial, budget)
    ]
    if not ahead:
        return f"{amount} and no more, for others promised more"
    last = max(ahead, key=lambda other: _at(other, budget) or 0.0)
    value = history.problem.sign * (_at(last, budget) or 0.0)
    whose = f"trial {last.id} with {value:.4g}"
    if len(ahead) == 1:
        return f"{amount} and no more: {whose} stood ahead of it then, and went on"
    return f"{amount} and no more: {len(ahead)} that stood ahead of it then went on, the last of them {whose}"


def _at(trial: Trial, budget: float) -> float | None:
    """The loss of a trial after ``budget``."""
    return next((point.loss for point in trial.curve if point.step >= budget), None)


def _ahead(other: Trial, trial: Trial, budget: float) -> bool:
    """Whether another one was better after ``budget``."""
    mine, its = _at(trial, budget), _at(other, budget)
    return its is not None and (mine is None or its < mine)


def _raced(problem: Problem, trial: Trial, notes: Notes, seen: Seen, budget: float) -> str:
    """Freeze-thaw: whose curve is most likely to beat the best value by a drawn step."""
    assert problem.budget is not None and isinstance(notes.reason, Modelled)
    by, score, odds = step_words(notes.reason, problem), notes.reason.score, by_chance(notes)
    aim = f"of becoming feasible{by}"
    if odds and seen.best is not None:
        loss, holder = seen.best
        whose = "its own" if holder == trial.id else f"trial {holder}'s"
        aim = f"of beating {whose} {problem.metric} of {problem.sign * loss:.4g}{by}"
    rated = f", {chance(score)}," if odds and score is not None else ""
    given = problem.budget.amount(budget)
    last = f"It was given {given} in all, since it had the best chance{rated} {aim}"
    others = competitors_of(notes, trial)
    if not others:
        return f"{last}."
    second = others[0]["score"]
    with_ = f" ({chance(second)})" if odds and second is not None else ""
    then = "gone on" if others[0]["text"].startswith("trial ") else "begun"
    return f"{last}; otherwise {others[0]['text']}{with_} would have {then}."


def outcome_sentences(history: History, trial: Trial, moments: Sequence[Moment]) -> list[str]:
    """Constraints, cost and past studies, where a study has them."""
    problem, found = history.problem, []
    if problem.constraints and trial.last is not None:
        said = [
            f"{constraint_words(name, rule)}: {_metric(trial, name)}"
            for name, rule in problem.constraints.items()
        ]
        held = "All constraints hold" if trial.last.feasible else "Not all constraints hold"
        found.append(f"{held} ({'; '.join(said)}).")
    if problem.cost is not None and trial.cost is not None:
        costs = [other.cost for other in history.trials if other.cost is not None]
        middle = sorted(costs)[len(costs) // 2]
        found.append(
            f"It cost {trial.cost:.4g} {problem.cost}; the median trial cost {middle:.4g}."
        )
    sources = next((notes.sources for notes, _, _, _, new in moments if new), None)
    names = {source.study for source in history.sources}
    weights = {} if sources is None else sources.weights
    shares = [(weight, name) for name, weight in weights.items() if name in names]
    if shares:
        (most, who), total = max(shares), sum(weight for weight, _ in shares)
        found.append(f"Past studies counted {total:.0%} then, most {who} with {most:.0%}.")
    return found


def _metric(trial: Trial, name: str) -> str:
    value = None if trial.last is None else trial.last.metrics.get(name)
    return "not reported" if value is None else f"{value:.4g}"


def without_words(config: Mapping[str, object]) -> str:
    """What would have been chosen without past studies."""
    return f"Without the past studies the model would have chosen {config_text(config)}."
