"""Explain a trial: the reasons for its configuration and its budgets, from the records in the log.

Every grant is a decision that recorded what it saw and why it chose (`scrimp.explain.reason_words`).
Only three things are computed again, because no decision records them: the rank of a trial when it
was granted more, the answer of a checkpoint selection at that time, and, for a study that learned
from others, the choice of the same model without them.

The summary has two sentences: how the trial started with its ranks over time, and why it got its
last budget. Sentences on constraints, cost and past studies follow if the study has them. Its
numbers can be checked against the curves: values reported by then, ranks, and cumulative budgets.

    for decision in explain(study.history, 7).decisions:
        print(*decision.lines)
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from scrimp.checks import nearly_equal
from scrimp.display.explanation import DecisionReason, Explanation
from scrimp.display.figures import config_words
from scrimp.display.study_words import method_words
from scrimp.errors import ScrimpError
from scrimp.explain.front_words import aim_lines, front_headline, metric_words
from scrimp.explain.reason_words import (
    belief_lines,
    by_chance,
    chance,
    competitors_of,
    counted,
    depends_words,
    interval_words,
    model_lines,
    other_lines,
    score_lines,
    score_words,
    share_words,
    step_words,
    whole_training_words,
    why,
)
from scrimp.explain.seen import Rank, Seen, rank_then, seen_by, state_after
from scrimp.json_values import Config
from scrimp.methods.named_methods import Method, build_policy
from scrimp.methods.policy import Start
from scrimp.study.decisions import next_decision
from scrimp.study.outcomes import chosen_report
from scrimp.study_log.constraints import constraint_words
from scrimp.study_log.decision_record import (
    DecisionRecord,
    FromPortfolio,
    Horizon,
    Modelled,
    Recommended,
)
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import Observation, Trial

MAX_RANKS_SHOWN = 6
NEARLY_ALL = 0.9999
"""The largest weight that is not the whole, as records round it."""

INVALID_RECORD = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions of a record with content that its method would not write."""


class Moment(NamedTuple):
    """One decision about a trial, what it saw, the trial's rank at that time, the budget granted, and
    True if it added the trial."""

    decided: Decided
    seen: Seen
    rank: Rank | None
    budget: float
    new: bool

    @property
    def record(self) -> DecisionRecord:
        """The record of the decision."""
        return self.decided.record

    def why(self, history: History) -> str:
        """Return the reason for the decision, as a sentence."""
        method = str(history.method.get("name", ""))
        front = self.seen.front
        return why(self.record, history.problem, method, self.new, self.budget, front)


def explain(history: History, trial: int | None = None) -> Explanation:
    """Explain why a trial was chosen and got its budget; by default the best one, or with several
    metrics and no weights the knee of the front."""
    if trial is None:
        trial = chosen_report(history)[0].id
    shown, record = history.trial(trial), StudyRecord.of(history)
    told = history.derive(_GRANTS)
    places = range(len(told.by_trial.get(trial, [])))
    moments = [told.moment(history, shown, place) for place in places]
    without = _without_sources(history, shown, moments)
    return Explanation(
        trial=trial,
        status=shown.status,
        params=dict(shown.config),
        value=shown.value,
        budget=shown.budget,
        headline=_headline(record, shown),
        method=method_words(record),
        method_reason=record.method_reason,
        decisions=tuple(_decision_reason(history, shown, moment) for moment in moments),
        without_sources=without,
        summary=_summary(history, shown, moments, without),
    )


def _headline(record: StudyRecord, trial: Trial) -> str:
    """Return the state of a trial, its last and best value, and its rank by the best value."""
    problem = record.problem
    missing = "no value" if trial.status == "failed" else "no value yet"
    value = missing if trial.value is None else f"{problem.metric} {trial.value:.6g}"
    if trial.last is not None and problem.several:
        value = metric_words(trial.last.metrics, problem)
    after = "" if problem.budget is None else f" after {problem.budget.amount(trial.budget)}"
    line = f"Trial {trial.id}: {trial.status}, {value}{after}"
    if problem.several:
        return f"{line}; {front_headline(record.history, trial)}"
    rank = record.rank(trial)
    if rank is None or record.best is None:
        return line
    if trial.best != trial.value:
        at = next(point.step for point in trial.curve if problem.value(point.loss) == trial.best)
        line += f", best {trial.best:.6g}" + f" after {at:g}" * (problem.budget is not None)
    return f"{line}; rank {rank[0]} of {rank[1]}"


MAX_KEPT_MOMENTS = 256


@dataclasses.dataclass
class _Told:
    """The grants of each trial, each with its decision and True if that added the trial; and the
    moments of some. A moment depends on the log up to its decision, so it is computed once."""

    by_trial: dict[int, list[tuple[Decided, BudgetGranted, bool]]]
    moments: dict[tuple[int, int], Moment]
    decided: Decided | None = None
    added: int | None = None

    def moment(self, history: History, trial: Trial, place: int) -> Moment:
        """Return the moment of grant number ``place`` of a trial."""
        found = self.moments.get((trial.id, place))
        if found is None:
            found = _moment(history, trial, *self.by_trial[trial.id][place])
            if len(self.moments) >= MAX_KEPT_MOMENTS:
                self.moments.clear()
            self.moments[trial.id, place] = found
        return found


@dataclasses.dataclass(frozen=True)
class _Grants(Fold[_Told]):
    kinds = (Decided, TrialAdded, BudgetGranted, StudyChanged)

    def begin(self, problem: Problem) -> _Told:
        return _Told({}, {})

    def step(self, state: _Told, event: Event, before: Trial | None, trial: Trial | None) -> None:
        match event:
            case Decided():
                state.decided, state.added = event, None
            case TrialAdded():
                state.added = event.trial
            case BudgetGranted() if state.decided is not None:
                grant = state.decided, event, event.trial == state.added
                state.by_trial.setdefault(event.trial, []).append(grant)
            case StudyChanged():
                state.moments.clear()


_GRANTS = _Grants()


def _moment(
    history: History, trial: Trial, decided: Decided, grant: BudgetGranted, new: bool
) -> Moment:
    prefix = history.events[: decided.seen]
    then = state_after(history.problem, prefix)
    seen = seen_by(then, trial.id, StudyRecord.of(history).unfit)
    if not new:
        # Parts of a selection are of different tasks and questions, so their scores have no rank.
        ranked = not history.is_selection
        rank = rank_then(then, trial.id, seen.reached) if ranked else None
        return Moment(decided, seen, rank, grant.budget, new)
    # A decision without a fit of its own used the latest one before.
    before = (event.record for event in reversed(prefix) if isinstance(event, Decided))
    records = (decided.record, *before)
    fitted = next((record for record in records if record.fit or record.curves), decided.record)
    seen = dataclasses.replace(seen, depends=depends_words(fitted, history.problem))
    return Moment(decided, seen, None, grant.budget, new)


def _decision_reason(history: History, trial: Trial, moment: Moment) -> DecisionReason:
    """Explain one decision, or say that its record is invalid."""
    number, budget, new = moment.decided.decision, moment.budget, moment.new
    title = _title(history.problem, budget, new)
    try:
        return _reason(history, trial, moment, title)
    except INVALID_RECORD:
        words = "The record of this decision is invalid, so its reason is unknown."
        return DecisionReason(number, title, budget, new, "", 0, 0, "", {}, lines=(words,))


def _reason(history: History, trial: Trial, moment: Moment, title: str) -> DecisionReason:
    decided, seen, rank, budget, new = moment
    problem, selection, record = history.problem, history.is_selection, decided.record
    lines = [moment.why(history)]
    if rank is not None:
        lines.append(rank.sentence(problem))
        if problem.constraints and rank.count > 1:
            lines.append(
                "Trials that violate a constraint rank last, by the size of the violation."
            )
    # The score of a single cell of a selection says little.
    best = "" if selection else seen.best_words(problem)
    data = f"{counted(seen.reports, 'report')} of {counted(seen.trials, 'trial')}"
    if seen.unfit:
        data += f", without {counted(seen.unfit, 'trial')} that did not fit the space"
    lines.append(f"It was made after {data}{'; ' if best else ''}{best}.")
    lines += model_lines(record, problem)
    if isinstance(record.reason, Modelled) and record.reason.each:
        lines += aim_lines(record.reason, seen.front, problem)
    else:
        lines += belief_lines(record, problem, trial, None if seen.best is None else seen.best[0])
    infeasible = seen.infeasible(problem)
    words = score_words(record, history.method, problem, seen.failures, infeasible)
    lines += score_lines(record, words, trial)
    lines += other_lines(record, problem)
    if selection:
        lines += _answer_then(History.of(history.events[: decided.seen]), trial)
    if record.degraded:
        lines.append(f"Degraded: {record.degraded}.")
    named = record.grant if record.reason is None else record.reason
    return DecisionReason(
        decision=decided.decision,
        title=title,
        budget=budget,
        new=new,
        reason="" if named is None else str(named.__struct_config__.tag),
        trials_seen=seen.trials,
        reports_seen=seen.reports,
        degraded=record.degraded,
        record=to_builtins(replace(record, fit=None, curves=None)),
        competitors=tuple(competitors_of(record, trial)),
        lines=tuple(lines),
    )


def _title(problem: Problem, budget: float, new: bool) -> str:
    if problem.budget is None:
        return "a new configuration" if new else "another run"
    amount = problem.budget.amount(budget)
    return f"a new configuration, granted {amount}" if new else f"more budget, {amount} in all"


def _answer_then(history: History, trial: Trial) -> list[str]:
    """Return the answer of a checkpoint selection before this cell, or the state of its race."""
    from scrimp.checkpoint_selection.cell_policy import recommendation
    from scrimp.checkpoint_selection.question_policy import is_race

    if is_race(history):
        from scrimp.explain.race_words import part_lines

        return part_lines(history, trial)
    answer = recommendation(history)
    if answer.expected_score is None:
        return []
    line = f"The answer then was checkpoint {answer.checkpoint}, mean score {answer.score_text}"
    if answer.probability_best is None:
        return [f"{line}."]
    sure = f"within {answer.tolerance:g} of the best with probability {answer.probability_text}"
    return [f"{line}: {sure}; the runner-up was {answer.runner_up}."]


def _without_sources(history: History, trial: Trial, moments: Sequence[Moment]) -> Config | None:
    """Return the choice of plain ``gp`` at the decision that added the trial; None unless the
    decision used past studies, and if the choice is the same."""
    added = next((moment.decided for moment in moments if moment.new), None)
    if added is None or not history.sources:
        return None
    shares = _past_shares(history, added.record)
    used = isinstance(added.record.reason, FromPortfolio | Recommended)
    if not used and not any(weight > 0.0 for weight in shares.values()):
        return None
    before = History.of(history.events[: added.seen])
    try:
        action = next_decision(build_policy(before.problem, Method("gp")), before).action
    except ScrimpError:
        return None
    if not isinstance(action, Start) or nearly_equal(action.config, trial.config):
        return None
    return dict(action.config)


def _summary(
    history: History, trial: Trial, moments: Sequence[Moment], without: Config | None
) -> tuple[str, ...]:
    """Return the sentences of the summary."""
    try:
        lines = [_start_sentence(history, trial, moments), _why_sentence(history, trial, moments)]
        lines += _outcome_sentences(history, trial, moments)
    except INVALID_RECORD:
        lines = ["The records of its decisions are invalid, so no reason is known."]
    if without is not None:
        text = config_words(without)
        lines.append(f"Plain `gp` without past studies would have tried {text}.")
    return tuple(line for line in lines if line)


def _start_sentence(history: History, trial: Trial, moments: Sequence[Moment]) -> str:
    """Describe how a trial started, and its ranks over time."""
    if not moments:
        return "No decision about it is recorded: its result was entered or imported."
    first = moments[0]
    begun = first.why(history) if first.new else "Its start is not recorded."
    if first.new and isinstance(first.record.reason, Modelled):
        taught = any(weight > 0.0 for weight in _past_shares(history, first.record).values())
        begun = _modelled_sentence(history.problem, trial, first.record.reason, first.seen, taught)
    ranks = [moment.rank for moment in moments if moment.rank is not None]
    if not ranks or history.problem.budget is None:
        return begun
    return f"{begun} Its rank when it continued: {path_words(ranks, history.problem.budget)}."


def _modelled_sentence(
    problem: Problem, trial: Trial, reason: Modelled, seen: Seen, taught: bool
) -> str:
    """Describe the prediction of a model for a new configuration, and the best value so far. Where
    past studies have a say (``taught``), what they promise may outweigh a worse prediction."""
    past = seen.best_words(problem)
    chooser = "a model of the region around the best trials" if reason.region else "a model"
    if reason.exploring:
        chooser = "an optimistic bound of a model"
    if reason.elsewhere:
        chooser = "a model among discrete values other than those of the best trial"
    begun = f"Chosen by {chooser} after {counted(seen.reports, 'report')}"
    begun += f", when {past}" if past else ""
    begun += f". {seen.depends}" if seen.depends else ""
    aims = aim_lines(reason, seen.front, problem)
    if aims:
        return f"{begun}. {aims[0]}"
    expected = reason.expected
    if expected is None or problem.budget is not None:
        return f"{begun}."
    ends = (expected.loss if end is None else end for end in (expected.low, expected.high))
    low, high = sorted(problem.sign * end for end in ends)
    predicted = f"Predicted {problem.sign * expected.loss:.4g} ({interval_words(low, high)})"
    came = "" if trial.value is None else f"; the result was {trial.value:.4g}"
    good = expected.loss if expected.low is None else expected.low
    if not taught and seen.best is not None and good < seen.best[0] < expected.loss:
        predicted += ", tried because it was uncertain"
    return f"{begun}. {predicted}{came}."


def path_words(ranks: Sequence[Rank], budget: Budget) -> str:
    """List the ranks of a trial over time: ``2 of 20 after 1, 1 of 2 after 8 to 21 epochs``."""
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
    if len(said) > MAX_RANKS_SHOWN:
        said = [*said[:2], "…", *said[2 - MAX_RANKS_SHOWN :]]
    unit = budget.name if stops[-1][3] == 1 else budget.units
    return f"{', '.join(said)} {unit}"


def _why_sentence(history: History, trial: Trial, moments: Sequence[Moment]) -> str:
    """Explain the last budget of a trial, with the alternative."""
    if not moments:
        return ""
    problem = history.problem
    last, rank = moments[-1], moments[-1].rank
    reason = last.record.reason
    if isinstance(reason, Modelled) and isinstance(reason.question, Horizon) and problem.budget:
        return _chance_sentence(problem, trial, last)
    others = competitors_of(last.record, trial)
    instead = f"runner-up: {others[0]['text']}" if others else ""
    if problem.budget is None:
        return f"{instead[0].upper()}{instead[1:]}." if instead else ""
    little = whole_training_words(last.record)
    if last.new:
        given = _only_budget(history, trial, last.budget)
        given += f": {little[0].lower()}{little[1:]}" if little else ""
    else:
        words = last.why(history)
        if not little and not instead and rank is not None and rank.next_trial is not None:
            instead = f"next was trial {rank.next_trial} with {rank.next_value:.4g}"
        amount = problem.budget.amount(last.budget)
        given = f"{amount} in all: {words[0].lower()}{words[1:-1]}"
    return f"It was given {given}; {instead}." if instead else f"It was given {given}."


def _only_budget(history: History, trial: Trial, budget: float) -> str:
    """Describe the only budget of a trial, and which trials continued instead."""
    problem = history.problem
    assert problem.budget is not None
    amount = problem.budget.amount(budget)
    if budget >= problem.full_budget:
        return f"{amount} at once, the whole training{_stop_words(history, trial)}"
    ends = {"running": "so far", "failed": "since it failed", "stale": "since its worker vanished"}
    if trial.status in ends:
        return f"{amount} and no more, {ends[trial.status]}"
    own, events = _report_at(trial, budget), history.events
    # Trials that were given this budget, and more later; those of other brackets began with more.
    here = {
        event.trial
        for event in events
        if isinstance(event, BudgetGranted) and event.budget == budget
    }
    continued = [other for other in history.trials if other.id in here and other.granted > budget]
    # By their standings after this budget, the worst of them last.
    ahead = sorted(
        (report.standing, -other.id, report)
        for other in continued
        if (report := _report_at(other, budget)) is not None
        and (own is None or report.standing < own.standing)
    )
    if not ahead or len(ahead) < len(continued) or problem.several:
        own_last = max(
            place
            for place, event in enumerate(events)
            if isinstance(event, BudgetGranted | Reported) and event.trial == trial.id
        )
        later = sum(isinstance(event, BudgetGranted) for event in events[own_last + 1 :])
        went = f"the {counted(later, 'later grant')} went to other trials"
        return f"{amount} and no more: {went if later else 'no grant was made after its report'}"
    _, number, report = ahead[-1]
    last = f"trial {-number} with {problem.value(report.loss):.4g}"
    went = f"{len(ahead)} trials ahead of it continued, the worst of them {last}"
    if len(ahead) == 1:
        went = f"{last} was ahead of it and continued"
    return f"{amount} and no more: {went}"


def _report_at(trial: Trial, budget: float) -> Observation | None:
    """Return the first report of a trial after ``budget`` that counts."""
    counts = (point for point in trial.curve if point.loss is not None)
    return next((point for point in counts if point.step >= budget), None)


def _chance_sentence(problem: Problem, trial: Trial, moment: Moment) -> str:
    """Explain a budget of freeze-thaw: the trial was most likely to beat the best."""
    record, seen = moment.record, moment.seen
    assert problem.budget is not None and isinstance(record.reason, Modelled)
    by, score, odds = step_words(record.reason, problem), record.reason.score, by_chance(record)
    aim = f"of becoming feasible{by}"
    if odds and seen.best is not None:
        loss, holder = seen.best
        whose = "its own" if holder == trial.id else f"trial {holder}'s"
        aim = f"of beating {whose} {problem.metric} of {problem.sign * loss:.4g}{by}"
    rated = f", {chance(score)}," if odds and score is not None else ""
    given = problem.budget.amount(moment.budget)
    last = f"It was given {given} in all, since it had the best chance{rated} {aim}"
    others = competitors_of(record, trial)
    if not others:
        return f"{last}."
    second = others[0]["score"]
    with_ = f" ({chance(second)})" if odds and second is not None else ""
    return f"{last}; runner-up: {others[0]['text']}{with_}."


def _outcome_sentences(history: History, trial: Trial, moments: Sequence[Moment]) -> list[str]:
    """Describe constraints, cost and past studies, if the study has them."""
    problem, found = history.problem, []
    if problem.constraints and trial.last is not None:
        said = []
        for name, rule in problem.constraints.items():
            value = trial.last.metrics.get(name)
            words = "not reported" if value is None else f"{value:.4g}"
            said.append(f"{constraint_words(name, rule)}: {words}")
        held = "All constraints are met" if trial.last.feasible else "Not all constraints are met"
        found.append(f"{held} ({'; '.join(said)}).")
    if problem.cost is not None and trial.cost is not None:
        costs = sorted(other.cost for other in history.trials if other.cost is not None)
        middle = costs[len(costs) // 2]
        found.append(
            f"It cost {trial.cost:.4g} {problem.cost}; the median trial cost {middle:.4g}."
        )
    record = next((moment.record for moment in moments if moment.new), DecisionRecord())
    shares = _past_shares(history, record)
    if record.sources is not None and shares:
        found.append(_past_sentence(shares, alone=len(shares) == len(record.sources.weights)))
    return found


def _stop_words(history: History, trial: Trial) -> str:
    """Say when a trial was stopped, and its rank at that moment; empty for any other trial."""
    problem = history.problem
    if trial.status != "stopped" or problem.budget is None:
        return ""
    words = f", and was stopped after {problem.budget.amount(trial.budget)}"
    own = (
        place
        for place, event in enumerate(history.events)
        if isinstance(event, Reported) and event.trial == trial.id
    )
    until = history.events[: max(own, default=-1) + 1]
    rank = rank_then(state_after(problem, until), trial.id, trial.budget)
    if rank is None or rank.count == 1:
        return words
    return f"{words}, number {rank.place} of the {rank.count} trials that had come that far"


def _past_shares(history: History, record: DecisionRecord) -> dict[str, float]:
    """Return the recorded weights of past studies, without that of the new study."""
    names = {source.study for source in history.sources}
    weights = {} if record.sources is None else record.sources.weights
    return {name: weight for name, weight in weights.items() if name in names}


def _past_sentence(shares: Mapping[str, float], alone: bool) -> str:
    """Describe the weights of past studies, which the log rounds."""
    limit = 1.0 if alone else NEARLY_ALL
    total, most = (min(each, limit) for each in (sum(shares.values()), max(shares.values())))
    largest = [name for name, weight in shares.items() if min(weight, limit) == most]
    each = " each" if len(largest) > 1 else ""
    return (
        f"Past studies had a weight of {share_words(total)} in all; the largest was that of"
        f" {' and '.join(part for part in (', '.join(largest[:-1]), largest[-1]) if part)},"
        f" {share_words(most)}{each}."
    )
