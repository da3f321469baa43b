"""The state of a study in words, for the terminal, notebook cards and log lines.

    record = StudyRecord.of(history, seconds=12.0, done_before=0.0)
    summary_line(record)

The savings of early stopping are shown only when a study is over: until then, a paused trial may
still continue.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from scrimp.display.figures import duration, number, shortened_text
from scrimp.study_log.advice import AdviserRecord
from scrimp.study_log.decision_record import AskedInRound
from scrimp.study_log.messages import headline
from scrimp.study_log.problem import Problem
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import Trial

MAX_RUNNING_TRIALS_SHOWN = 8


def summary_line(record: StudyRecord) -> str:
    """Describe the state of a study in one line."""
    if record.kind == "selection":
        parts = [cells_words(record)]
    else:
        best, metric = record.best, record.metric
        found = "none" if best is None else f"{number(best['value'], 6)} (trial {best['trial']})"
        found = best_words(record) if record.front is not None else f"best {metric} {found}"
        parts = [found, states_words(record.counts)]
        if record.problem.budget is not None:
            parts.append(spent_words(record))
    return "  ·  ".join([*parts, time_words(record)])


MAX_ADVISERS_SHOWN = 20


def adviser_lines(advisers: Sequence[AdviserRecord]) -> list[str]:
    """Return a line for each adviser, the one with the most trials first."""
    ordered = sorted(advisers, key=lambda one: -one.tried)
    lines = [adviser_words(adviser) for adviser in ordered[:MAX_ADVISERS_SHOWN]]
    more = len(advisers) - len(lines)
    return [*lines, f"and {more} more"] if more else lines


def adviser_words(adviser: AdviserRecord) -> str:
    """Describe the record of an adviser in one line.

    >>> adviser_words(AdviserRecord("ann", 9, 5, 4, 1, 3, 18, 6, 2))
    'ann: 1 of 4 trials brought progress (6 of 18 of the study itself); 5 proposals waiting'
    """
    line = f"{shortened_text(adviser.by, 60)}: {adviser.progress} of {adviser.tried} trials brought"
    line += f" progress ({adviser.own_progress} of {adviser.own_tried} of the study itself)"
    if adviser.waiting:
        line += f"; {adviser.waiting} proposal{'s' if adviser.waiting > 1 else ''} waiting"
    if not adviser.heard:
        line += f"; no turn after {adviser.misses} trials without progress"
    return line


def time_words(record: StudyRecord) -> str:
    """Describe how long the run has taken and, if known, how long it will take."""
    left = record.seconds_left
    rest = "" if left is None else f", about {duration(left)} left"
    return f"{duration(record.seconds or 0.0)}{rest}"


def cells_words(record: StudyRecord) -> str:
    """Count the evaluated cells of a checkpoint selection, or describe its race over questions."""
    reason = record.history.recorded.reason
    if isinstance(reason, AskedInRound):
        leader = "" if reason.leader is None else f", {reason.leader} leads"
        asked = f"{record.history.spent:,.0f} of {reason.answers:,} answers"
        race = (
            f"round {reason.round}, {reason.alive} of {reason.checkpoints} checkpoints in the race"
        )
        return f"{asked}, {race}{leader}"
    return f"{states_words(record.counts)}, of {record.problem.space.size:g} cells"


def best_words(record: StudyRecord) -> str:
    """Describe the best value with its trial, or with several metrics the front."""
    best, budget = record.best, record.problem.budget
    if record.front is not None:
        return front_words(len(record.front))
    if best is None:
        return "none yet"
    after = "" if budget is None else f" after {budget.amount(best['budget'])}"
    return f"{number(best['value'], 6)}  trial {best['trial']}{after}"


def front_words(count: int) -> str:
    """Describe the size of a front.

    >>> front_words(0), front_words(3)
    ('nothing on the front yet', '3 on the front')
    """
    return f"{count} on the front" if count else "nothing on the front yet"


def values_words(problem: Problem, trial: Trial, digits: int = 6) -> str:
    """List the latest value of every metric of the study."""
    last = {} if trial.last is None else trial.last.metrics
    return ", ".join(f"{name} {number(last.get(name), digits)}" for name in problem.metrics)


def failure_line(trial: Trial, length: int = 200) -> str:
    """Name a failed trial and its error, on one line."""
    return shortened_text(f"trial {trial.id}: {headline(trial.message)}", length)


def states_words(counts: Mapping[str, int]) -> str:
    """Count the trials in each state, by the names that tables and filters use.

    >>> states_words({"paused": 10, "completed": 2})
    '10 paused, 2 completed'
    """
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    return ", ".join(parts) or "no trials yet"


def method_words(record: StudyRecord) -> str:
    """Format the method with the settings that were chosen, as it can be passed to `create_study`;
    of a selection, whose log has all settings, the name alone: ``asha:published,brackets=4``."""
    method = record.method_record
    settings = method.get("settings") if record.kind == "study" else None
    listed = settings.items() if isinstance(settings, Mapping) else ()
    said = ",".join(
        name if name == "published" and value is True else f"{name}={number(value)}"
        for name, value in listed
    )
    return f"{method.get('name', 'unknown')}{':' if said else ''}{said}"


def spent_words(record: StudyRecord) -> str:
    """Describe the budget used, with steps that were trained again; for a study that is over, beside
    what training all trials to the end would take."""
    budget = record.problem.budget
    spent = f"{record.spent:g}" if budget is None else budget.amount(record.spent)
    full, ran = record.without_early_stopping, record.spent + record.repeated
    again = f", {record.repeated:g} repeated" if record.repeated else ""
    if not record.over or budget is None or not 0 < ran < full:
        return f"{spent} spent{again}"
    return f"{spent} spent{again}; {full:g} without early stopping"


def waiting_words(record: StudyRecord) -> str:
    """Count the paused trials by the training they have; empty without budgets."""
    budget = record.problem.budget
    waiting = Counter(trial.budget for trial in record.trials if trial.status == "paused")
    if not waiting or budget is None:
        return ""
    *lower, highest = sorted(waiting)
    said = [f"{waiting[used]} at {used:g}" for used in lower]
    return ", ".join([*said, f"{waiting[highest]} at {budget.amount(highest)}"])


def running_words(problem: Problem, trial: Trial) -> str:
    """Describe the progress of a running trial and its latest value."""
    budget = problem.budget
    place = "" if budget is None else f"  {budget.name} {trial.budget:g} of {trial.granted:g}"
    value = "" if trial.value is None else f"  {values_words(problem, trial, 4)}"
    return f"trial {trial.id}{place}{value}"
