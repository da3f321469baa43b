"""Score tables in files: CSV with a header ``checkpoint,task,score[,stderr]``, in any order of rows
and columns.

JSON holds a list of objects with these keys, or scores by checkpoint and task: {"1000": {"mmlu":
0.61}}. A folder is searched for results of lm-evaluation-harness: ``results_*.json`` below
``FOLDER/<checkpoint>/``.

Checkpoints that are all numbers are training steps and are sorted; others keep the order in which
they first appear. An empty score is a cell that has not been measured; ``nan`` is one that was
tried and failed.

    table = read_scores("scores.csv")
"""

import csv
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import cast

from scrimp.errors import TableError
from scrimp.json_values import Json
from scrimp.selection.results import HarnessRecord, benchmarks_of, harness_scores, sample_counts
from scrimp.selection.score_table import UNKNOWN, Checkpoint, Entry, ScoreTable

__all__ = [
    "by_numbers",
    "read_results_folder",
    "read_scores",
    "sample_costs",
    "table_from_records",
    "write_scores",
]

logger = logging.getLogger("scrimp")

_COLUMNS = ("checkpoint", "task", "score")


def read_scores(path: str | Path) -> ScoreTable:
    """The score table of a CSV or JSON file or a folder of results; errors name the file and the
    line."""
    if Path(path).is_dir():
        return read_results_folder(Path(path))
    try:
        if Path(path).suffix.lower() == ".json":
            return table_from_records(
                _from_json(json.loads(Path(path).read_text("utf-8-sig")), path), str(path), "entry"
            )
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            missing = [name for name in _COLUMNS if name not in (reader.fieldnames or ())]
            if missing:
                raise TableError(
                    f"{path} has no column {missing[0]!r}; its first line must name"
                    f" {', '.join(_COLUMNS)}[, stderr]"
                )
            return table_from_records(list(reader), str(path))
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
        raise TableError(f"{path} cannot be read as a table of scores: {error}") from error


def write_scores(table: ScoreTable, path: str | Path) -> None:
    """The table as CSV that `read_scores` reads: every cell a row, empty where not measured,
    ``nan`` where it failed."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*_COLUMNS, "stderr"])
        for row, checkpoint in enumerate(table.checkpoints):
            for column, task in enumerate(table.tasks):
                score = repr(float(table.scores[row, column])) if table.seen[row, column] else ""
                error = float(table.errors[row, column])
                known = "" if math.isnan(error) else repr(error)
                writer.writerow(
                    [checkpoint, task, "nan" if table.failed[row, column] else score, known]
                )


def table_from_records(
    records: Iterable[Mapping[str, Json]], source: str = "the scores", place: str = "line"
) -> ScoreTable:
    """A table from rows by column name; ``place`` is what a row is called in errors."""
    first = 2 if place == "line" else 1
    rows = [
        _parse(record, f"{source}, {place} {number}")
        for number, record in enumerate(records, start=first)
    ]
    if not rows:
        raise TableError(f"{source} has no rows; each must name a checkpoint, a task and a score")
    table = ScoreTable.empty(
        _checkpoints([row[0] for row in rows]), list(dict.fromkeys(row[1] for row in rows))
    )
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
    return table.with_failures(failures)


def _from_json(record: object, path: str | Path) -> list[Mapping[str, Json]]:
    """Rows of a JSON file."""
    if isinstance(record, list) and all(isinstance(row, dict) for row in record):
        return record
    if (
        isinstance(record, dict)
        and record
        and all(isinstance(scores, dict) for scores in record.values())
    ):
        return [
            {
                "checkpoint": checkpoint,
                "task": task,
                **(score if isinstance(score, dict) else {"score": score}),
            }
            for checkpoint, scores in record.items()
            for task, score in scores.items()
        ]
    raise TableError(
        f"{path} is no table of scores; write a list of objects with {', '.join(_COLUMNS)}[,"
        " stderr]"
    )


def read_results_folder(folder: Path, metric: str | None = None) -> ScoreTable:
    """All results of lm-evaluation-harness below ``FOLDER/<checkpoint>/``; of a cell with several
    the newest counts, and a group that has a score stands for its members.

    ``metric`` chooses among the harness's, as in `results.harness_scores`. A file that was cut
    short while it was written is left out, with a warning.
    """
    found: dict[tuple[str, str], Mapping[str, Json]] = {}
    for file, record in _harness_records(folder):
        checkpoint = file.relative_to(folder).parts[0]
        try:
            scores = benchmarks_of(record, harness_scores(record, metric))
        except (KeyError, AttributeError, TypeError) as error:
            raise TableError(
                f"{file} cannot be read as results of lm-evaluation-harness: {error!r}"
            ) from None
        for task, (score, stderr) in scores.items():
            found[checkpoint, task] = {
                "checkpoint": checkpoint,
                "task": task,
                "score": score,
                "stderr": stderr,
            }
    if not found:
        raise TableError(
            f"{folder} has no results_*.json with scores below it; expected"
            f" {folder}/CHECKPOINT/results_*.json"
        )
    return table_from_records(
        [found[key] for key in sorted(found, key=lambda cell: by_numbers(cell[0]))],
        str(folder),
        "result",
    )


def sample_costs(folder: Path, tasks: Iterable[str]) -> dict[str, float]:
    """What a cell of each task costs by its number of samples, the smallest task at one: as the
    newest results of lm-evaluation-harness below ``folder`` have it."""
    counts: dict[str, float] = {}
    for _, record in _harness_records(folder):
        counts |= sample_counts(record)
    wanted = list(tasks)
    missing = [task for task in wanted if task not in counts]
    if missing:
        raise TableError(
            f"cost = 'samples': no results_*.json below {folder} says how many samples"
            f" {missing[0]!r} has; run it once, or give its cost as a number"
        )
    least = min(counts[task] for task in wanted)
    return {task: counts[task] / least for task in wanted}


def _harness_records(folder: Path) -> Iterator[tuple[Path, HarnessRecord]]:
    """Every file of results and what it holds, the oldest first."""
    for file in sorted(
        folder.rglob("results*.json"), key=lambda file: (file.stat().st_mtime, file.name)
    ):
        try:
            record = json.loads(file.read_text("utf-8-sig"))
        except (OSError, ValueError) as error:
            logger.warning("%s is left out: %s; an evaluation may be writing it", file, error)
            continue
        if not isinstance(record, dict):
            raise TableError(
                f"{file} cannot be read as results of lm-evaluation-harness: it is no JSON object"
            )
        yield file, cast(HarnessRecord, record)


def by_numbers(name: str) -> list[tuple[bool, float, str]]:
    """Numbers within names count as numbers: step900 before step1000."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), float(part) if part.isdigit() else 0.0, part) for part in parts]


def _parse(record: Mapping[str, Json], where: str) -> tuple[str, str, float | None, float | None]:
    checkpoint, task, score, stderr = (_text(record.get(name)) for name in (*_COLUMNS, "stderr"))
    if not checkpoint or not task:
        raise TableError(f"{where}: a row must name its checkpoint and its task")
    parsed = []
    stderr = "" if stderr.lower() in UNKNOWN else stderr
    for name, text in (("score", score), ("stderr", stderr)):
        try:
            parsed.append(float(text) if text else None)
        except ValueError:
            raise TableError(
                f"{where}: the {name} {text!r} is no number; leave it empty if it is not known"
            ) from None
    return checkpoint, task, parsed[0], parsed[1]


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _checkpoints(names: list[str]) -> list[Checkpoint]:
    """Distinct checkpoints: sorted numbers if all of them are, names in order of appearance
    otherwise."""
    distinct = list(dict.fromkeys(names))
    try:
        return sorted({_number(name) for name in distinct})
    except ValueError:
        return list(distinct)


def _number(name: str) -> int | float:
    value = float(name)
    return int(value) if value.is_integer() else value
