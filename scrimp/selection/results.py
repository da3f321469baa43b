"""The score of one cell, read from what an evaluation wrote.

    # (0.61, 0.011): score, standard error or None
    read_result(Path("out/1000/mmlu"), 1000, "mmlu")

A folder stands for the newest ``results_*.json`` in it that knows the task. Files may be results of
lm-evaluation-harness, JSON ({"score": 0.61, "stderr": 0.011}, {"mmlu": 0.61}, or a list of records
with checkpoint, task and score), or CSV with such columns.
"""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from scrimp.checks import is_number
from scrimp.errors import TableError
from scrimp.json_values import Json
from scrimp.selection.score_table import known_error

__all__ = [
    "HarnessRecord",
    "Score",
    "benchmarks_of",
    "harness_scores",
    "read_result",
    "sample_counts",
]

Score = tuple[float, float | None]

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
"""What is read of the JSON that lm-evaluation-harness writes."""

_LOWER_IS_BETTER = ("perplexity", "bits_per_byte")


def read_result(path: Path, checkpoint: object, task: str, metric: str | None = None) -> Score:
    """The score of ``task`` on ``checkpoint`` in a file or folder of results; ``metric`` chooses
    among the harness's."""
    files = _newest_first(path) if path.is_dir() else [path]
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
    """Scores by task from the JSON that lm-evaluation-harness writes.

    ``metric`` is a name such as ``acc_norm``, or with its filter ``exact_match,strict-match``; the
    first one listed otherwise. Metrics of which lower is better are negated: those the file says it
    of, and perplexities and bits per byte in older files.

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
        better = (
            record.get("higher_is_better", {})
            .get(task, {})
            .get(name, not name.endswith(_LOWER_IS_BETTER))
        )
        sign = -1.0 if better is False else 1.0
        stderr = named.get(f"{name}_stderr{comma}{rest}")
        scores[task] = sign * float(named[wanted[0]]), None if stderr is None else float(stderr)
    return scores


def benchmarks_of(record: HarnessRecord, scores: Mapping[str, Score]) -> dict[str, Score]:
    """Without the members of groups that have a score of their own: a group is one benchmark.

    >>> benchmarks_of({"group_subtasks": {"mmlu": ["law"]}}, {"mmlu": (0.5, None), "law": (0.4, None)})
    {'mmlu': (0.5, None)}
    """
    groups = record.get("group_subtasks") or {}
    members = {name for group, names in groups.items() if group in scores for name in names}
    return {task: score for task, score in scores.items() if task not in members}


def sample_counts(record: HarnessRecord) -> dict[str, float]:
    """How many samples each task of the harness's results was run on; a group has those of its
    members.

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


def _newest_first(folder: Path) -> list[Path]:
    files = sorted(
        folder.rglob("results*.json"),
        key=lambda file: (file.stat().st_mtime, file.name),
        reverse=True,
    )
    return files or sorted([*folder.glob("*.json"), *folder.glob("*.csv")])


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
            return (
                _score(value.get("score"), value.get("stderr"))
                if isinstance(value, dict)
                else _score(value, None)
            )
        case [*records]:
            return _of_records(records, checkpoint, task)
    return _score(record, None) if _is_number(record) else None


def _of_records(
    records: Sequence[Mapping[str, Json]], checkpoint: object, task: str
) -> Score | None:
    """The last record of the cell; one that names no task or no checkpoint is about any."""
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
        raise TableError(f"the score {score!r} (standard error {stderr!r}) is no number") from None


def _is_number(value: object) -> bool:
    return is_number(value)
