"""Scores in files: whole tables, and the result of a single evaluation.

    table = read_scores("scores.csv")
    read_result(Path("out/1000/mmlu"), 1000, "mmlu")       # (0.61, 0.011): score, standard error

A table is CSV with the columns ``checkpoint,task,score[,stderr]`` in any order, or wide: a row per
checkpoint and a column per task, with standard errors in ``<task>_stderr``. It may also be JSON (a
list of such records, or scores by checkpoint and task: {"1000": {"mmlu": 0.61}}), or a folder with
results of lm-evaluation-harness, ``FOLDER/<checkpoint>/**/results_*.json``. Checkpoints that are all numbers
are training steps and are sorted; others keep their order. An empty score is a cell that has not
been measured; ``nan`` is one that failed.

A single result is a file of lm-evaluation-harness, JSON ({"score": 0.61, "stderr": 0.011}, {"mmlu":
0.61}, or a list of records) or CSV; a folder stands for the newest ``results_*.json`` in it that has
the task.
"""

import csv
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, cast

import numpy as np

from scrimp.checkpoint_selection.score_table import UNKNOWN, Checkpoint, ScoreTable, known_error
from scrimp.checks import is_number
from scrimp.errors import TableError
from scrimp.json_values import Json

logger = logging.getLogger("scrimp")

Score = tuple[float, float | None]
"""A score and its standard error, None if unknown."""

_COLUMNS = ("checkpoint", "task", "score")
_CHECKPOINT_COLUMNS = ("checkpoint", "step", "epoch", "iteration", "model")

HarnessRecord = TypedDict(
    "HarnessRecord",
    {
        "results": Mapping[str, Mapping[str, Json]],
        "higher_is_better": Mapping[str, Mapping[str, bool]],
        "group_subtasks": Mapping[str, Sequence[str]],
        "n-samples": Mapping[str, Mapping[str, int]],
    },
    total=False,
)
"""The part of the JSON of lm-evaluation-harness that is read."""

_LOWER_IS_BETTER = ("perplexity", "bits_per_byte")


def read_scores(path: str | Path) -> ScoreTable:
    """Read the scores in a CSV or JSON file or a folder of results; errors name the line."""
    if Path(path).is_dir():
        return read_results_folder(Path(path))
    try:
        if Path(path).suffix.lower() == ".json":
            return table_from_records(
                _from_json(json.loads(Path(path).read_text("utf-8-sig")), path), str(path), "entry"
            )
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, skipinitialspace=True)
            rows, columns = list(reader), tuple(reader.fieldnames or ())
            if all(name in columns for name in _COLUMNS):
                return table_from_records(rows, str(path))
            return table_from_records(_cells(rows, columns, path), str(path), "cell")
    except (OSError, UnicodeDecodeError, csv.Error, json.JSONDecodeError) as error:
        raise TableError(f"{path} cannot be read as a table of scores: {error}") from error


def _cells(
    rows: Sequence[Mapping[str, Json]], columns: Sequence[str], path: str | Path
) -> list[Mapping[str, Json]]:
    """Return one record per cell of a wide table, whose first column names checkpoints."""
    first, tasks = (*columns, "")[0], columns[1:]
    if first.lower() not in _CHECKPOINT_COLUMNS or {"task", "score"} & {*columns} or not tasks:
        missing = [name for name in _COLUMNS if name not in columns]
        raise TableError(
            f"{path} has no column {missing[0]!r}; its first line must name {', '.join(_COLUMNS)}[,"
            " stderr], or checkpoint and then one column per task"
        )
    if len(set(columns)) < len(columns):
        raise TableError(f"{path} has two columns of one name; each task needs its own name")
    scored = [name for name in tasks if name.removesuffix("_stderr") not in {*tasks} - {name}]
    names = ("checkpoint", "task", "score", "stderr")
    return [
        dict(zip(names, (row[first], task, row[task], row.get(f"{task}_stderr")), strict=True))
        for row in rows
        for task in scored
    ]


def write_scores(table: ScoreTable, path: str | Path) -> None:
    """Write the table as CSV for `read_scores`: a row per cell, with an empty score if it is not
    measured and ``nan`` if it failed."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*_COLUMNS, "stderr"])
        for cell in np.ndindex(table.shape):
            score = repr(float(table.scores[cell])) if table.seen[cell] else ""
            error = float(table.errors[cell])
            known = "" if math.isnan(error) else repr(error)
            writer.writerow([*table.label(cell), "nan" if table.failed[cell] else score, known])


def table_from_records(
    records: Iterable[Mapping[str, Json]], source: str = "the scores", place: str = "line"
) -> ScoreTable:
    """Return a table from rows by column name; ``place`` is the word for a row in errors."""
    first = 2 if place == "line" else 1
    rows = [
        _parse(record, f"{source}, {place} {number}")
        for number, record in enumerate(records, start=first)
    ]
    if not rows:
        raise TableError(f"{source} has no rows; each must name a checkpoint, a task and a score")
    labels = _labels(row[0] for row in rows)
    tasks = list(dict.fromkeys(row[1] for row in rows))
    table = ScoreTable.empty(list(dict.fromkeys(labels.values())), tasks)
    told = [
        (labels[name], task, score, error) for name, task, score, error in rows if score is not None
    ]
    try:
        table = table.with_scores(entry for entry in told if not math.isnan(entry[2]))
    except TableError as error:
        raise TableError(f"{source}: {error}") from error
    return table.with_failures(entry[:2] for entry in told if math.isnan(entry[2]))


def _from_json(record: object, path: str | Path) -> list[Mapping[str, Json]]:
    """Return the rows of a JSON file."""
    if isinstance(record, list) and all(isinstance(row, dict) for row in record):
        return record
    if isinstance(record, dict) and record and all(isinstance(s, dict) for s in record.values()):
        return [
            {"checkpoint": name, "task": task, **(s if isinstance(s, dict) else {"score": s})}
            for name, scores in record.items()
            for task, s in scores.items()
        ]
    raise TableError(
        f"{path} is not a table of scores; write a list of objects with {', '.join(_COLUMNS)}[,"
        " stderr]"
    )


def read_results_folder(folder: Path) -> ScoreTable:
    """Read all results of lm-evaluation-harness below ``FOLDER/<checkpoint>/``: the newest of each
    cell; a group that has a score stands for its members. A file that was truncated while it was
    written is left out with a warning."""
    found: dict[tuple[str, str], Mapping[str, Json]] = {}
    for file, record in _harness_records(folder):
        checkpoint = file.relative_to(folder).parts[0]
        try:
            scores = benchmarks_of(record, harness_scores(record))
        except (KeyError, AttributeError, TypeError) as error:
            raise TableError(
                f"{file} cannot be read as results of lm-evaluation-harness: {error!r}"
            ) from None
        for task, (score, stderr) in scores.items():
            names = {"checkpoint": checkpoint, "task": task}
            found[checkpoint, task] = {**names, "score": score, "stderr": stderr}
    if not found:
        raise TableError(
            f"{folder} has no results_*.json with scores below it; expected"
            f" {folder}/CHECKPOINT/results_*.json"
        )
    ordered = [found[key] for key in sorted(found, key=lambda cell: by_numbers(cell[0]))]
    return table_from_records(ordered, str(folder), "result")


def sample_costs(folder: Path, tasks: Iterable[str]) -> dict[str, float]:
    """Return the cost of a cell of each task by its number of samples in the newest results of
    lm-evaluation-harness below ``folder``, relative to the smallest task."""
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
    smallest = min(counts[task] for task in wanted)
    return {task: counts[task] / smallest for task in wanted}


def _harness_records(folder: Path) -> Iterator[tuple[Path, HarnessRecord]]:
    """Yield every file of results and its content, the oldest first."""
    for file in oldest_first(folder):
        try:
            record = json.loads(file.read_text("utf-8-sig"))
        except (OSError, ValueError) as error:
            logger.warning("%s is left out: %s; an evaluation may be writing it", file, error)
            continue
        if not isinstance(record, dict):
            raise TableError(
                f"{file} cannot be read as results of lm-evaluation-harness: it is not a JSON object"
            )
        yield file, cast(HarnessRecord, record)


def by_numbers(name: str) -> list[tuple[bool, float, str]]:
    """Return a sort key that compares numbers in names as numbers: step900 before step1000."""
    parts = re.split(r"(\d+)", name)
    return [(part.isdigit(), float(part) if part.isdigit() else 0.0, part) for part in parts]


def trainer_checkpoints(folder: Path) -> list[str]:
    """Return the names of the checkpoints that the Hugging Face Trainer saved in a folder,
    checkpoint-500, checkpoint-1000, ..., in the order of the run."""
    found = [path.name for path in folder.glob("checkpoint-*") if path.is_dir()]
    if not found:
        raise TableError(
            f"{folder} has no folder checkpoint-* of the Hugging Face Trainer; name the checkpoints in"
            ' a list, or give a pattern such as "run/step-*"'
        )
    return sorted(found, key=by_numbers)


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
                f"{where}: the {name} {text!r} is not a number; leave it empty if it is unknown"
            ) from None
    return checkpoint, task, parsed[0], parsed[1]


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


def _labels(names: Iterable[str]) -> dict[str, Checkpoint]:
    """Return the checkpoints by name: ascending if all are numbers, else in order of appearance."""
    distinct = list(dict.fromkeys(names))
    try:
        return {name: _number(name) for name in sorted(distinct, key=_number)}
    except ValueError:
        return {name: name for name in distinct}


def _number(name: str) -> int | float:
    value = float(name)
    return int(value) if value.is_integer() else value


def read_result(path: Path, checkpoint: object, task: str, metric: str | None = None) -> Score:
    """Read the score of ``task`` on ``checkpoint`` from a file or folder of results; ``metric`` is
    one of lm-evaluation-harness."""
    files = [path]
    if path.is_dir():
        tables = sorted([*path.glob("*.json"), *path.glob("*.csv")])
        files = oldest_first(path)[::-1] or tables
    for file in files:
        found = _in_file(file, checkpoint, task, metric)
        if found is not None:
            return found
    what = f"none of its {len(files)} files of results has a" if path.is_dir() else "it has no"
    raise TableError(
        f"{path}: {what} score of {task} on {checkpoint!r}; results = … names what the command"
        " writes"
    )


def harness_scores(record: HarnessRecord, metric: str | None = None) -> dict[str, Score]:
    """Return the scores by task from the JSON of lm-evaluation-harness.

    ``metric`` is a name such as ``acc_norm``, or with its filter ``exact_match,strict-match``; by
    default the first one listed. Metrics where lower is better are negated: those the file marks,
    and perplexities and bits per byte in older files.

    >>> harness_scores({"results": {"arc": {"alias": "arc", "acc,none": 0.5, "acc_stderr,none": 0.01}}})
    {'arc': (0.5, 0.01)}
    """
    scores: dict[str, Score] = {}
    for task, values in record["results"].items():
        named = {key: value for key, value in values.items() if is_number(value)}
        names = [
            key
            for key in named
            if not key.partition(",")[0].endswith("_stderr") and key != "sample_len"
        ]
        wanted = [key for key in names if metric is None or metric in (key, key.partition(",")[0])]
        if not wanted:
            continue
        name, comma, rest = wanted[0].partition(",")
        directions = record.get("higher_is_better", {}).get(task, {})
        higher = directions.get(name, not name.endswith(_LOWER_IS_BETTER))
        sign = -1.0 if higher is False else 1.0
        stderr = named.get(f"{name}_stderr{comma}{rest}")
        scores[task] = sign * float(named[wanted[0]]), None if stderr is None else float(stderr)
    return scores


def benchmarks_of(record: HarnessRecord, scores: Mapping[str, Score]) -> dict[str, Score]:
    """Return the scores without the members of groups that have a score: a group is one benchmark.

    >>> benchmarks_of({"group_subtasks": {"mmlu": ["law"]}}, {"mmlu": (0.5, None), "law": (0.4, None)})
    {'mmlu': (0.5, None)}
    """
    groups = record.get("group_subtasks") or {}
    members = {name for group, names in groups.items() if group in scores for name in names}
    return {task: score for task, score in scores.items() if task not in members}


def sample_counts(record: HarnessRecord) -> dict[str, float]:
    """Return the number of samples of each task; a group has those of its members.

    >>> sample_counts({"n-samples": {"law": {"original": 9, "effective": 4}}, "group_subtasks": {"mmlu": ["law"]}})
    {'law': 4.0, 'mmlu': 4.0}
    """
    found = {
        task: float(counts.get("effective") or counts["original"])
        for task, counts in (record.get("n-samples") or {}).items()
    }
    groups = record.get("group_subtasks") or {}

    def total(task: str) -> float:
        return found.get(task) or sum(total(name) for name in groups.get(task, ()) if name != task)

    return found | {group: count for group in groups if (count := total(group)) > 0}


def oldest_first(folder: Path, pattern: str = "results*.json") -> list[Path]:
    """Return the files of lm-evaluation-harness below a folder."""
    return sorted(folder.rglob(pattern), key=lambda file: (file.stat().st_mtime, file.name))


def _in_file(file: Path, checkpoint: object, task: str, metric: str | None) -> Score | None:
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() == ".csv":
            return _of_records(list(csv.DictReader(text.splitlines())), checkpoint, task)
        record = json.loads(text)
    except (OSError, ValueError, csv.Error) as error:
        raise TableError(f"{file} cannot be read as results of an evaluation: {error}") from None
    match record:
        case {"results": dict()}:
            return harness_scores(record, metric).get(task)
        case {"score": score}:
            return _score(score, record.get("stderr"))
        case {**entries} if task in entries:
            value = entries[task]
            found = value if isinstance(value, dict) else {"score": value}
            return _score(found.get("score"), found.get("stderr"))
        case [*records]:
            return _of_records(records, checkpoint, task)
    return _score(record, None) if is_number(record) else None


def _of_records(
    records: Sequence[Mapping[str, Json]], checkpoint: object, task: str
) -> Score | None:
    """Return the last record of the cell; a record without a task or a checkpoint fits any."""
    for record in reversed(records):
        names = ((record.get("task"), task), (record.get("checkpoint"), str(checkpoint)))
        if (
            all(given in (None, "") or str(given).strip() == wanted for given, wanted in names)
            and "score" in record
        ):
            return _score(record["score"], record.get("stderr"))
    return None


def _score(score: Any, stderr: Any) -> Score:
    try:
        error = known_error(stderr)
        return float(score), error if error is not None and math.isfinite(error) else None
    except (TypeError, ValueError):
        raise TableError(
            f"the score {score!r} (standard error {stderr!r}) is not a number"
        ) from None
