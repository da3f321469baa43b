"""Answers in files: sample logs of lm-evaluation-harness, runs of HELM, JSONL and CSV.

    known = read_answers("logs")
    known.checkpoints, known.tasks                 # ('1000', '2000'), {'arc': 1172, 'gsm8k': 1319}
    select_checkpoint(known, known.checkpoints, known.tasks)     # a race over answers that exist

| source | what is read |
|---|---|
| a folder of lm-evaluation-harness | ``FOLDER/<checkpoint>/**/samples_<task>_<time>.jsonl`` (``--log_samples``) |
| a folder of HELM | ``**/run_spec.json`` with ``per_instance_stats.json`` beside it; checkpoints are models |
| JSONL, CSV | a row per answer: ``checkpoint, task, question, score`` |

Questions are places 0, 1, ...; where a file names them by text, they are numbered in sorted order.
"""

import csv
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from scrimp.checkpoint_selection.answer_book import Array
from scrimp.checkpoint_selection.score_files import by_numbers, oldest_first
from scrimp.errors import TableError
from scrimp.json_values import Json

logger = logging.getLogger("scrimp")

Row = tuple[str, str, int | str, float]
"""Checkpoint, task, question and score."""

HELM_METRICS = (
    "exact_match", "quasi_exact_match", "math_equiv_chain_of_thought", "f1_score", "rouge_l", "bleu_4",
)  # fmt: skip
"""The main metric of a HELM scenario is the first of these that its instances have."""


@dataclass(frozen=True)
class KnownAnswers:
    """Answers by checkpoint and task, each a mapping from question to score. Call it like an
    ``evaluate`` function; ``otherwise`` answers what is not known."""

    scores: Mapping[tuple[str, str], Mapping[int, float]]
    source: str = "the answers"
    otherwise: Callable[..., object] | None = None

    @cached_property
    def checkpoints(self) -> tuple[str, ...]:
        """The checkpoints with answers; numbers in names count as numbers."""
        return tuple(sorted({name for name, _ in self.scores}, key=by_numbers))

    @cached_property
    def tasks(self) -> dict[str, int]:
        """The number of questions of each task."""
        sizes: dict[str, int] = {}
        for (_, task), answers in sorted(self.scores.items()):
            sizes[task] = max(sizes.get(task, 0), max(answers) + 1)
        return sizes

    def levels(self, task: str, size: int) -> Array | None:
        """Return the mean score of every question of a task over all checkpoints (size,); the mean of
        the others where it has no answer, None if the task has none."""
        sums, counts = np.zeros(size), np.zeros(size)
        for (_, name), answers in self.scores.items():
            for question, score in answers.items() if name == task else ():
                if question < size:
                    sums[question] += score
                    counts[question] += 1
        if not counts.any():
            return None
        return np.where(counts > 0, sums / np.maximum(counts, 1), sums.sum() / counts.sum())

    def __call__(self, checkpoint: object, task: str, questions: Sequence[int]) -> object:
        known = self.scores.get((str(checkpoint), task), {})
        missing = [question for question in questions if question not in known]
        if not missing:
            return [known[question] for question in questions]
        if self.otherwise is not None:
            return self.otherwise(checkpoint, task, list(questions))
        raise TableError(
            f"{self.source} has no answer of checkpoint {checkpoint!r} to question {missing[0]} of"
            f" {task!r}"
        )


def read_answers(path: str | Path, metric: str | None = None) -> KnownAnswers:
    """Read the answers in a file or folder. ``metric`` chooses among several of a task, such as
    ``acc_norm`` or ``exact_match,strict-match``."""
    place = Path(path)
    try:
        if place.is_dir():
            rows = list(_helm_rows(place, metric)) or list(_harness_rows(place, metric))
        elif place.suffix.lower() == ".csv":
            with open(place, newline="", encoding="utf-8-sig") as file:
                rows = list(_plain_rows(csv.DictReader(file, skipinitialspace=True), place))
        else:
            rows = list(_plain_rows(_json_lines(place), place))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{place} cannot be read as answers: {error}") from error
    if not rows:
        raise TableError(
            f"{place} has no answers: expected samples_*.jsonl of lm-evaluation-harness below"
            f" {place}/CHECKPOINT, run_spec.json of HELM, or rows of checkpoint, task, question, score"
        )
    return KnownAnswers(_by_cell(rows), str(place))


def read_sample_log(folder: Path, task: str, metric: str | None = None) -> dict[int, float]:
    """Return the scores by question in the newest log of a task below ``folder``."""
    found = [file for file in oldest_first(folder, "samples_*.jsonl") if _task_of(file) == task]
    if not found:
        raise TableError(
            f"{folder} has no samples_{task}_*.jsonl; run lm-evaluation-harness with --log_samples"
            " and --output_path"
        )
    return dict(_samples(found[-1], metric))


def sample_score(sample: Mapping[str, Json], metric: str | None = None) -> float | None:
    """Return the score of one logged sample; None if it is of another filter than ``metric`` names.

    >>> sample_score({"doc_id": 3, "filter": "none", "metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": 0.0})
    1.0
    """
    name, _, rest = (metric or "").partition(",")
    if rest and sample.get("filter", rest) != rest:
        return None
    listed = sample.get("metrics")
    known = [str(each) for each in listed] if isinstance(listed, Sequence) else []
    for each in [name] if name else known:
        value = sample.get(each)
        if isinstance(value, int | float):
            return float(value)
    raise TableError(
        f"a logged sample has no number for the metric {name or 'of its task'}; it has"
        f" {', '.join(known)}"
    )


def _by_cell(rows: Sequence[Row]) -> dict[tuple[str, str], dict[int, float]]:
    """Group the rows; number questions that are named by text, alike for all checkpoints."""
    names: dict[str, set[int | str]] = {}
    for _, task, question, _ in rows:
        names.setdefault(task, set()).add(question)
    places = {
        task: {name: place for place, name in enumerate(sorted(map(str, known), key=by_numbers))}
        for task, known in names.items()
        if any(isinstance(question, str) for question in known)
    }
    cells: dict[tuple[str, str], dict[int, float]] = {}
    for checkpoint, task, question, score in rows:
        place = places[task][str(question)] if task in places else int(question)
        cells.setdefault((checkpoint, task), {})[place] = score
    return cells


def _json_lines(path: Path) -> Iterator[Mapping[str, Json]]:
    """Yield the objects of a JSONL file; a last line that was cut while it was written is left out."""
    lines = path.read_text("utf-8-sig").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            if number == len(lines):
                logger.warning("the last line of %s is left out: %s", path, error)
                return
            raise TableError(f"{path}, line {number} is not JSON: {error}") from None
        if not isinstance(record, dict):
            raise TableError(f"{path}, line {number} is not an object with fields")
        yield record


def _plain_rows(records: Iterable[Mapping[str, Json]], path: Path) -> Iterator[Row]:
    """Yield the rows of a JSONL or CSV file."""
    for number, record in enumerate(records, start=1):
        wanted = [record.get(name) for name in ("checkpoint", "task", "question", "score")]
        if any(value is None or value == "" for value in wanted):
            raise TableError(
                f"{path}, answer {number}: it must have checkpoint, task, question and score, and"
                f" has {', '.join(str(name) for name in record)}"
            )
        checkpoint, task, question, score = wanted
        text = str(question).strip()
        try:
            known = float(str(score))
        except ValueError:
            raise TableError(f"{path}, answer {number}: score {score!r} is not a number") from None
        yield str(checkpoint), str(task), int(text) if text.isdigit() else text, known


def _task_of(file: Path) -> str:
    """Return the task of samples_<task>_<time>.jsonl."""
    return file.stem.removeprefix("samples_").rpartition("_")[0]


def _samples(file: Path, metric: str | None) -> Iterator[tuple[int, float]]:
    """Yield question and score of a sample log, of the first filter unless ``metric`` names one."""
    seen: set[int] = set()
    for record in _json_lines(file):
        if "doc_id" not in record:
            raise TableError(f"{file} is not a sample log: a line has no doc_id")
        score, question = sample_score(record, metric), int(str(record["doc_id"]))
        if score is not None and question not in seen:
            seen.add(question)
            yield question, score


def _harness_rows(folder: Path, metric: str | None) -> Iterator[Row]:
    """Yield the samples of lm-evaluation-harness below ``FOLDER/<checkpoint>/``."""
    for file in oldest_first(folder, "samples_*.jsonl"):
        checkpoint = file.relative_to(folder).parts[0]
        for question, score in _samples(file, metric):
            yield checkpoint, _task_of(file), question, score


class _HelmAdapter(msgspec.Struct):
    model: str


class _HelmRun(msgspec.Struct):
    """The part of a run_spec.json that is read."""

    name: str
    adapter_spec: _HelmAdapter


class _HelmName(msgspec.Struct):
    name: str
    perturbation: dict[str, Json] | None = None


class _HelmStat(msgspec.Struct):
    name: _HelmName
    mean: float | None = None


class _HelmInstance(msgspec.Struct):
    """An entry of per_instance_stats.json."""

    instance_id: str
    stats: list[_HelmStat]


def _helm_rows(folder: Path, metric: str | None) -> Iterator[Row]:
    """Yield the instances of HELM runs below a folder: the task is the scenario with its settings."""
    for file in sorted(folder.rglob("run_spec.json")):
        try:
            spec = msgspec.json.decode(file.read_bytes(), type=_HelmRun)
            text = (file.parent / "per_instance_stats.json").read_bytes()
            instances = msgspec.json.decode(text, type=list[_HelmInstance])
        except (OSError, msgspec.DecodeError) as error:
            raise TableError(f"{file.parent} cannot be read as a run of HELM: {error}") from None
        parts = [part for part in spec.name.split(",") if not part.startswith("model=")]
        task = ",".join(parts).partition(":model=")[0]
        for instance in instances:
            score = _helm_score(instance.stats, metric)
            if score is not None:
                yield spec.adapter_spec.model, task, instance.instance_id, score


def _helm_score(stats: Sequence[_HelmStat], metric: str | None) -> float | None:
    """Return the main metric of an instance; None if it has none, as for perturbed copies."""
    found = {
        stat.name.name: stat.mean
        for stat in stats
        if stat.name.perturbation is None and stat.mean is not None
    }
    wanted = HELM_METRICS if metric is None else (metric,)
    return next((found[name] for name in wanted if name in found), None)
