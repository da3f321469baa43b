"""The trials of a study as a table of text: selected, sorted, with the columns that fit.

table = trial_table(record, TableQuery(top=10, sort="best"))
fitted(table, width=80)             # one line per trial; .left_out names the columns without room
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scrimp.checks import did_you_mean
from scrimp.display.figures import number, shortened_text
from scrimp.errors import StudyError
from scrimp.json_values import Json
from scrimp.study_log.messages import headline, printable
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.standings import standings
from scrimp.study_log.trial import STATUSES, Trial

COLUMN_GAP = 2
MIN_ERROR_COLUMNS = 20


@dataclass(frozen=True)
class TableQuery:
    """The trials and columns to show.

    ``sort`` is a column; ``best`` and ``last`` start with the best value, other columns with the
    smallest, and a minus sign in front reverses the order. With several metrics ``best`` starts with
    the front (`standings`). ``top`` limits the number of trials.
    """

    top: int | None = None
    sort: str = "best"
    status: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def check(self, record: StudyRecord) -> None:
        """Refuse columns and states that the study does not have."""
        known = column_readers(record)
        for name in (*self.columns, self.sort.removeprefix("-")):
            if name not in known:
                hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise StudyError(f"the study has no column {name!r}{hint}")
        for status in self.status:
            if status not in STATUSES:
                raise StudyError(f"status is {status!r}; it must be one of {', '.join(STATUSES)}")
        if self.top is not None and self.top < 1:
            raise StudyError(f"top is {self.top}; ask for at least one trial")


@dataclass(frozen=True)
class TextTable:
    """``rows`` of cells under ``columns``; ``matching``: the number of matching trials, shown or
    not; ``left_out``: columns without room; ``messages``: the column of errors."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    matching: int
    left_out: tuple[str, ...] = ()
    messages: str = "error"


Read = Callable[[Trial], Json]


def column_readers(record: StudyRecord) -> dict[str, Read]:
    """Return all possible columns of a study with how to read them from a trial, None where it has no
    value: fixed ones, parameters, metrics, attributes, extras."""
    problem, front = record.problem, {member["trial"] for member in record.front or ()}
    metrics = (name for trial in record.trials if trial.last for name in trial.last.metrics)
    attributes = (name for trial in record.trials for name in trial.user_attrs)
    own = dict.fromkeys([*problem.space, *problem.metrics, *metrics, *attributes])
    fixed: dict[str, Read] = {
        "trial": lambda trial: trial.id,
        "status": lambda trial: trial.status,
        "best": lambda trial: trial.best,
        "last": lambda trial: trial.value,
        "budget": lambda trial: trial.budget,
    }
    extra: dict[str, Read] = {
        "front": lambda trial: ("no", "yes")[trial.id in front],
        "feasible": lambda trial: ("no", "yes")[trial.last.feasible] if trial.last else None,
        "cost": lambda trial: trial.cost,
        "attempts": lambda trial: trial.attempt,
        "worker": lambda trial: trial.worker or None,
        "note": lambda trial: trial.note or None,
        # Under another name if the study has this one.
        next(name for name in ("error", "failure", "failure message") if name not in own): _error,
    }
    found = fixed | {name: _own(name, name in problem.space) for name in own if name not in fixed}
    return found | {name: read for name, read in extra.items() if name not in found}


def _own(name: str, parameter: bool) -> Read:
    if parameter:
        return lambda trial: trial.config.get(name)

    def metric_or_attribute(trial: Trial) -> Json:
        if trial.last is not None and name in trial.last.metrics:
            return trial.last.metrics[name]
        return trial.user_attrs.get(name)

    return metric_or_attribute


def selected_trials(record: StudyRecord, query: TableQuery) -> list[Trial]:
    """Return all matching trials, sorted; those without a value come last."""
    query.check(record)
    trials = [trial for trial in record.trials if not query.status or trial.status in query.status]
    name, backwards = query.sort.removeprefix("-"), query.sort.startswith("-")
    by_place = record.problem.several and name == "best"
    value = _place_reader(record) if by_place else column_readers(record)[name]
    sign = record.problem.sign if name in ("best", "last") and not by_place else 1.0
    best = None if record.best is None else record.best["trial"]

    def key(trial: Trial) -> tuple[int, float | str]:
        found = value(trial)
        return (0, sign * float(found)) if isinstance(found, int | float) else (1, str(found))

    known = [trial for trial in trials if value(trial) is not None]
    # Of equal trials, the best one of the study comes first.
    known.sort(key=lambda trial: trial.id != best)
    return [
        *sorted(known, key=key, reverse=backwards),
        *(trial for trial in trials if value(trial) is None),
    ]


def trial_table(record: StudyRecord, query: TableQuery) -> TextTable:
    """Return the table of a query with all its columns; `fitted` drops those without room."""
    matching = selected_trials(record, query)
    shown = matching if query.top is None else matching[: query.top]
    readers = column_readers(record)
    messages = next(name for name, read in readers.items() if read is _error)
    columns = query.columns or _usual_columns(record, shown, messages)
    rows = [
        tuple(printable(number(readers[name](trial), 5)) for name in columns) for trial in shown
    ]
    return TextTable(tuple(columns), tuple(rows), len(matching), messages=messages)


def _usual_columns(record: StudyRecord, shown: Sequence[Trial], messages: str) -> tuple[str, ...]:
    """Return the columns to show by default."""
    problem = record.problem
    # Without budgets, the last value is the best one.
    left_out = ("budget", "last") if problem.budget is None else ()
    if problem.several:
        left_out = ("best", "last", *left_out)
    first = ("trial", "status", "best", "last", "budget")
    fixed = [name for name in first if name not in left_out]
    fixed += ["front", *problem.metrics] if problem.several else []
    if problem.constraints:
        fixed.append("feasible")
    searched = problem.space.searched
    metrics = [name for name in problem.constraints if name not in (*fixed, *searched)]
    failed = [messages] * any(_error(trial) for trial in shown)
    return (*fixed, *searched, *metrics, *failed)


def _place_reader(record: StudyRecord) -> Callable[[Trial], float | None]:
    """Return a function that gives the place of a trial's last report among those of all trials."""
    held = {trial.id: trial.last for trial in record.trials if trial.last is not None}
    places = dict(zip(held, standings(list(held.values())), strict=True))
    return lambda trial: places.get(trial.id)


def _error(trial: Trial) -> str | None:
    failed = trial.status in ("failed", "stale") and trial.message
    return headline(trial.message)[:200] if failed else None


def fitted(table: TextTable, width: int) -> TextTable:
    """Return the table with the columns that fit; errors get the rest of the width."""
    widths = {
        name: max(len(name), *(len(row[place]) for row in table.rows), 1)
        for place, name in enumerate(table.columns)
    }
    error = table.messages in table.columns
    room = width - ((MIN_ERROR_COLUMNS + COLUMN_GAP) if error else 0)
    kept: list[str] = []
    for name in table.columns:
        if name == table.messages:
            continue
        needed = widths[name] + (COLUMN_GAP if kept else 0)
        if needed <= room:
            kept.append(name)
            room -= needed
    left_out = tuple(name for name in table.columns if name not in (*kept, table.messages))
    columns = (*kept, *([table.messages] if error else []))
    places = [table.columns.index(name) for name in columns]
    most = room + MIN_ERROR_COLUMNS
    rows = [
        tuple(
            shortened_text(row[place], most)
            if table.columns[place] == table.messages
            else row[place]
            for place in places
        )
        for row in table.rows
    ]
    return replace(table, columns=columns, rows=tuple(rows), left_out=left_out)


def padded_lines(table: TextTable) -> list[tuple[str, ...]]:
    """Return header and rows with every cell as wide as its column; numbers are right-aligned."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.columns))]
    right = [all(_numeric(row[place]) for row in table.rows) for place in range(len(table.columns))]
    return [
        tuple(
            cell.rjust(wide) if end else cell.ljust(wide)
            for cell, wide, end in zip(line, widths, right, strict=True)
        )
        for line in lines
    ]


def _numeric(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell == "-"
    return True
