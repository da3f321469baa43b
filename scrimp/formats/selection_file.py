"""A selection as a TOML file, for ``scrimp select run``.

    name = "run42"
    # or a pattern of files and folders: "checkpoints/step-*"
    checkpoints = [1000, 2000, 3000]
    tasks = ["mmlu", "gsm8k"]
    command = "lm_eval --model_args pretrained=ckpt/{checkpoint} --tasks {task} --output_path out/{checkpoint}/{task}"
    # what the command writes; without it, its last line is the score
    results = "out/{checkpoint}/{task}"
    metric = "acc_norm"                              # of lm-evaluation-harness
    scores = "known.csv"                             # scores from elsewhere, told first
    cost = {mmlu = 9.0}     # or "samples": by the results of lm-evaluation-harness in scores
    directions = {wikitext = "minimize"}             # lower is better

    [run]
    share = 0.1                                      # or budget, loss, loss_per_cost
    workers = 2
    retries = 1

Paths are relative to the file's folder, where the command runs too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from scrimp.checkpoint_selection.cell_policy import cell_space
from scrimp.checkpoint_selection.score_files import by_numbers, sample_costs
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.errors import StudyError
from scrimp.executors.command_line import Command
from scrimp.formats.toml_reading import Count, Entries, Positive, Text, TomlReading


class _Run(msgspec.Struct, frozen=True):
    """The [run] table: the arguments of `Selection.run`."""

    share: Positive | None = None
    budget: Positive | None = None
    loss: Positive | None = None
    loss_per_cost: Positive | None = None
    workers: Count = 1
    gpus_per_worker: Annotated[int, msgspec.Meta(ge=0)] = 0
    retries: Annotated[int, msgspec.Meta(ge=0)] = 1
    timeout: Positive | None = None
    time_limit: Positive | None = None


class _File(msgspec.Struct, frozen=True):
    """The top level: the arguments of `create_selection`, and the command."""

    name: Text
    checkpoints: Text | Annotated[list[int | float | str], msgspec.Meta(min_length=1)]
    tasks: Annotated[list[Text], msgspec.Meta(min_length=1)]
    command: Text | list[Text]
    results: Text | None = None
    metric: Text | None = None
    scores: Text | None = None
    cost: dict[str, Positive] | Literal["samples"] = {}
    weights: dict[str, Positive] = {}
    scales: dict[str, Positive] = {}
    directions: dict[str, Literal["maximize", "minimize"]] = {}
    ordered: bool = True
    method: Text | dict[str, object] = "kg"
    use_stderr: bool = True
    tolerance: float = 0.002
    answer: Literal["measured", "smooth"] = "measured"
    storage: Text | None = None
    seed: Annotated[int, msgspec.Meta(ge=0)] | None = None
    run: _Run = _Run()


@dataclass(frozen=True)
class SelectionPlan:
    """A valid file: ``question`` goes to `create_selection`, ``run`` and ``command`` to
    `Selection.run`."""

    name: str
    storage: str | None
    question: Entries
    command: Command
    run: Entries
    scores: Path | None


def read_selection_file(path: Path) -> SelectionPlan:
    """Read a selection file; raises `StudyError` with every mistake."""
    reading = TomlReading.of(path, _EXAMPLES, {})
    top = reading.table(_File, reading.record, ())
    reading.refuse(str(path))
    file = msgspec.convert(top, _File)
    question = {
        key: value for key, value in msgspec.structs.asdict(file).items() if key not in _NOT_ASKED
    }
    run = msgspec.structs.asdict(file.run)
    command = Command("")
    with reading.blamed_on("checkpoints"):
        question["checkpoints"] = _checkpoints(file.checkpoints, reading.folder)
    scores = None if file.scores is None else reading.folder / file.scores
    with reading.blamed_on("cost"):
        question["cost"] = _costs(file, scores)
    with reading.blamed_on("command"):
        command = _command(file, run.pop("retries"), reading.folder)
    reading.refuse(str(path))
    return SelectionPlan(file.name, file.storage, question, command, run, scores)


_NOT_ASKED = ("name", "command", "results", "metric", "scores", "storage", "run")
"""Keys that are not arguments of `create_selection`."""

_EXAMPLES = {
    "name": 'give the selection one, such as name = "run42"',
    "checkpoints": 'list them, as in [1000, 2000], or give a pattern, such as "checkpoints/step-*"',
    "tasks": 'list the benchmarks, such as tasks = ["mmlu", "gsm8k"]',
    "command": 'say how to score a cell: command = "python evaluate.py {checkpoint} {task}"',
}


def _costs(file: _File, scores: Path | None) -> Mapping[str, float]:
    """Return the given costs, or the numbers of samples."""
    if not isinstance(file.cost, str):
        return file.cost
    if scores is None or not scores.is_dir():
        raise StudyError(
            "cost = 'samples' needs scores = …, a folder with results of lm-evaluation-harness that"
            " say how many samples each task has; or give numbers, as in cost = {mmlu = 9.0}"
        )
    return sample_costs(scores, file.tasks)


def _checkpoints(given: str | list[Checkpoint], folder: Path) -> Sequence[Checkpoint]:
    """Return the given list, or the matches of a pattern in numeric order."""
    if not isinstance(given, str):
        return given
    found = sorted((str(path.relative_to(folder)) for path in folder.glob(given)), key=by_numbers)
    if not found:
        raise StudyError(
            f"no file or folder matches checkpoints = {given!r} in {folder}; name them in a list"
            " instead"
        )
    return found


def _command(file: _File, retries: int, folder: Path) -> Command:
    """Wrap the user's command in one that retries it and reads the score."""
    own = Command(file.command, folder)
    own.check(cell_space(("checkpoint",), ("task",)))
    for name in ("checkpoint", "task"):
        if not any(f"{{{name}}}" in word for word in own.words):
            raise StudyError(
                f"the command {file.command!r} has no {{{name}}}; it must say what to evaluate"
            )
    options = ["--checkpoint={checkpoint}", "--task={task}", f"--retries={retries}"]
    options += [f"--results={file.results}"] if file.results is not None else []
    options += [f"--metric={file.metric}"] if file.metric is not None else []
    return Command(
        ["{python}", "-m", "scrimp.checkpoint_selection.cell_command", *options, "--", *own.words],
        folder,
    )
