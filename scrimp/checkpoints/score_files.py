"""Score tables in files: CSV with a header ``checkpoint,task,score[,stderr]``, in any order of rows and columns.

Checkpoints that are all numbers are training steps and are sorted; others keep the order in which they first appear. An
empty score is a cell that has not been measured; ``nan`` is one that was tried and failed.

    table = read_scores("scores.csv")
"""

import csv
import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from scrimp.checkpoints.score_table import Checkpoint, Entry, ScoreTable
from scrimp.errors import TableError

__all__ = ["read_scores", "table_from_records"]

_COLUMNS = ("checkpoint", "task", "score")


def read_scores(path: str | Path) -> ScoreTable:
    """The score table of a CSV file; errors name the file and the line."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise TableError(
                    f"{path} has no column {missing[0]!r}; its first line must name {', '.join(_COLUMNS)}[, stderr]"
                )
            return table_from_records(list(reader), str(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{path} cannot be read as a table of scores: {error}") from error


def table_from_records(records: Iterable[Mapping[str, str | None]], source: str = "the scores") -> ScoreTable:
    """A table from rows of text by column name."""
    rows = [_parse(record, f"{source}, line {number}") for number, record in enumerate(records, start=2)]
    if not rows:
        raise TableError(f"{source} has no rows; each must name a checkpoint, a task and a score")
    table = ScoreTable.empty(_checkpoints([row[0] for row in rows]), list(dict.fromkeys(row[1] for row in rows)))
    numeric = not isinstance(table.checkpoints[0], str)
    entries: list[Entry] = []
    failures: list[tuple[Checkpoint, str]] = []
    for checkpoint, task, score, stderr in rows:
        label: Checkpoint = _number(checkpoint) if numeric else checkpoint
        if score is not None and math.isnan(score):
            failures.append((label, task))
        elif score is not None:
            entries.append((label, task, score, stderr))
    try:
        table = table.with_scores(entries)
    except TableError as error:
        raise TableError(f"{source}: {error}") from error
    for label, task in failures:
        table = table.with_failure(label, task)
    return table


def _parse(record: Mapping[str, str | None], where: str) -> tuple[str, str, float | None, float | None]:
    checkpoint, task, score, stderr = ((record.get(name) or "").strip() for name in (*_COLUMNS, "stderr"))
    if not checkpoint or not task:
        raise TableError(f"{where}: a row must name its checkpoint and its task")
    parsed = []
    for name, text in (("score", score), ("stderr", stderr)):
        try:
            parsed.append(float(text) if text else None)
        except ValueError:
            raise TableError(f"{where}: the {name} {text!r} is no number; leave it empty if it is not known") from None
    return checkpoint, task, parsed[0], parsed[1]


def _checkpoints(names: list[str]) -> list[Checkpoint]:
    """Distinct checkpoints: sorted numbers if all of them are, names in order of appearance otherwise."""
    distinct = list(dict.fromkeys(names))
    try:
        return sorted({_number(name) for name in distinct})
    except ValueError:
        return list(distinct)


def _number(name: str) -> int | float:
    value = float(name)
    return int(value) if value.is_integer() else value
