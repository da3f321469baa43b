"""The trials of a study as a table for people: the ones asked for, in order, with the columns that fit.

table = trial_table(history, TableQuery(top=10, sort="best"))
fitted(table, width=80)             # one line per trial; columns without room are named in .left_out
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.reports import headline, printable
from scrimp.history.standings import standings
from scrimp.history.trial import STATUSES, Trial
from scrimp.json_values import Json
from scrimp.showing.figures import number, shortened_text

__all__ = [
    "FIXED",
    "TableQuery",
    "TrialTable",
    "column_names",
    "fitted",
    "padded_lines",
    "selected_trials",
    "trial_table",
]

FIXED = ("trial", "status", "best", "last", "budget")
"""Columns of every study, the first ones."""

EXTRA = ("front", "feasible", "cost", "attempts", "worker", "note", "error")
"""Columns that are shown when they are asked for; errors also when there is one, and with several
metrics whether the trial is on the front. A parameter, metric or attribute of the same name comes
before them; the errors are then called ``failure``."""

GAP = 2
NARROWEST_ERROR = 20


@dataclass(frozen=True)
class TableQuery:
    """Which trials and what of them.

    ``sort`` is a column; ``best`` and ``last`` begin with the best value, the others with the
    smallest, and a minus in front turns the order round. With several metrics ``best`` begins with
    the front (`standings`). ``top`` cuts the list.
    """

    top: int | None = None
    sort: str = "best"
    status: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def check(self, history: History) -> None:
        """Refuse what the study does not have, with what it has."""
        known = column_names(history)
        for name in (*self.columns, self.sort.removeprefix("-")):
            if name not in known:
                near = get_close_matches(name, known, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise StudyError(f"the study has no column {name!r}; {hint}")
        for status in self.status:
            if status not in STATUSES:
                raise StudyError(f"status is {status!r}; it must be one of {', '.join(STATUSES)}")
        if self.top is not None and self.top < 1:
            raise StudyError(f"top is {self.top}; ask for at least one trial")


@dataclass(frozen=True)
class TrialTable:
    """``rows`` of cells under ``columns``; ``matching`` trials there are, and ``left_out`` columns had no room.
    ``messages`` is the column that holds why trials failed."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    matching: int
    left_out: tuple[str, ...] = ()
    messages: str = "error"


def column_names(history: History) -> tuple[str, ...]:
    """Everything that can be a column of this study: fixed ones, parameters, metrics, attributes, extras."""
    names = (*FIXED, *_own_names(history), *EXTRA, _messages_name(history))
    return tuple(dict.fromkeys(names))


def _own_names(history: History) -> dict[str, None]:
    """What the study itself names: parameters, metrics, attributes, in this order."""
    metrics = (
        name for trial in history.trials if trial.last is not None for name in trial.last.metrics
    )
    attributes = (name for trial in history.trials for name in trial.user_attrs)
    problem = history.problem
    return dict.fromkeys([*problem.space, *problem.metrics, *metrics, *attributes])


def _messages_name(history: History) -> str:
    """What the column of failures is called: ``error``, unless the study has something of that name."""
    own = _own_names(history)
    return next(name for name in ("error", "failure", "failure message") if name not in own)


def selected_trials(history: History, query: TableQuery) -> list[Trial]:
    """The trials that match, in order, not yet cut to the top; those without a value come last."""
    query.check(history)
    trials = [trial for trial in history.trials if not query.status or trial.status in query.status]
    name, backwards = query.sort.removeprefix("-"), query.sort.startswith("-")
    several = history.problem.trade_off is not None
    by_place = several and name == "best"
    value = _place_reader(history) if by_place else _reader(history, name)
    sign = history.problem.sign if name in ("best", "last") and not by_place else 1.0

    best = None if history.best is None else history.best[0].id

    def key(trial: Trial) -> tuple[int, float | str]:
        found = value(trial)
        return (0, sign * float(found)) if isinstance(found, int | float) else (1, str(found))

    known = [trial for trial in trials if value(trial) is not None]
    known.sort(key=lambda trial: trial.id != best)  # of equal ones the study's best comes first
    return [
        *sorted(known, key=key, reverse=backwards),
        *(trial for trial in trials if value(trial) is None),
    ]


def trial_table(history: History, query: TableQuery) -> TrialTable:
    """The table that ``query`` asks for, with every column; `fitted` drops those without room."""
    matching = selected_trials(history, query)
    shown = matching if query.top is None else matching[: query.top]
    columns = query.columns or _usual(history, shown)
    readers = [_reader(history, name) for name in columns]
    rows = [tuple(printable(number(read(trial), 5)) for read in readers) for trial in shown]
    messages = _messages_name(history)
    return TrialTable(tuple(columns), tuple(rows), len(matching), messages=messages)


def _usual(history: History, shown: Sequence[Trial]) -> tuple[str, ...]:
    """What is shown unless somebody asks: no budget where there is none, errors where there are some."""
    fixed = [name for name in FIXED if name != "budget" or history.problem.budget is not None]
    if history.problem.budget is None:
        fixed.remove("last")  # the same as the best
    if history.problem.trade_off is not None:
        fixed = [name for name in fixed if name not in ("best", "last")]
        fixed += ["front", *history.problem.metrics]
    if history.problem.constraints:
        fixed.append("feasible")
    searched = history.problem.space.searched
    metrics = [name for name in history.problem.constraints if name not in (*fixed, *searched)]
    failed = [_messages_name(history)] * any(_error(trial) for trial in shown)
    return (*fixed, *searched, *metrics, *failed)


def _place_reader(history: History) -> Callable[[Trial], float | None]:
    """How to read where a trial's last report stands among those of all."""
    held = {trial.id: trial.last for trial in history.trials if trial.last is not None}
    places = dict(zip(held, standings(list(held.values())), strict=True))
    return lambda trial: places.get(trial.id)


def _error(trial: Trial) -> str | None:
    failed = trial.status in ("failed", "stale") and trial.message
    return headline(trial.message)[:200] if failed else None


def _reader(history: History, name: str) -> Callable[[Trial], Json]:
    """How to read a column of a trial; None where it has nothing there."""
    front = {trial.id for trial, _ in history.front} if name == "front" else set()
    fixed: Mapping[str, Callable[[Trial], Json]] = {
        "trial": lambda trial: trial.id,
        "status": lambda trial: trial.status,
        "best": lambda trial: trial.best,
        "last": lambda trial: trial.value,
        "budget": lambda trial: trial.budget,
        "feasible": lambda trial: (
            None if trial.last is None else ("no", "yes")[trial.last.feasible]
        ),
        "front": lambda trial: ("no", "yes")[trial.id in front],
        "cost": lambda trial: trial.cost,
        "attempts": lambda trial: trial.attempt,
        "worker": lambda trial: trial.worker or None,
        "note": lambda trial: trial.note or None,
        _messages_name(history): _error,
    }
    if name in FIXED or (name in fixed and name not in _own_names(history)):
        return fixed[name]
    if name in history.problem.space:
        return lambda trial: trial.config.get(name)
    return lambda trial: _metric(trial, name)


def _metric(trial: Trial, name: str) -> Json:
    if trial.last is not None and name in trial.last.metrics:
        return trial.last.metrics[name]
    return trial.user_attrs.get(name)


def fitted(table: TrialTable, width: int) -> TrialTable:
    """The table with the columns that fit ``width``, in order; the error gets what is left, cut between words."""
    widths = {
        name: max(len(name), *(len(row[place]) for row in table.rows), 1)
        for place, name in enumerate(table.columns)
    }
    error = table.messages in table.columns
    room = width - ((NARROWEST_ERROR + GAP) if error else 0)
    kept: list[str] = []
    for name in table.columns:
        if name == table.messages:
            continue
        needed = widths[name] + (GAP if kept else 0)
        if needed <= room:
            kept.append(name)
            room -= needed
    left_out = tuple(name for name in table.columns if name not in (*kept, table.messages))
    columns = (*kept, *([table.messages] if error else []))
    places = [table.columns.index(name) for name in columns]
    most = room + NARROWEST_ERROR
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


def padded_lines(table: TrialTable) -> list[tuple[str, ...]]:
    """Header and rows with every cell as wide as its column; numbers stand at the right."""
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
