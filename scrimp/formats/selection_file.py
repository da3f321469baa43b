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

Paths are relative to the file's folder, where the command runs too. By question, ``tasks`` has the
number of questions of each task, and the command ``{questions}`` or ``{samples}``; or the table
``[lm_eval]`` has the settings of `scrimp.integrations.lm_eval.LmEval` in place of a command:

    tasks = ["arc_easy", "gsm8k"]                    # their questions are counted
    answers = "logs"                                 # answers from elsewhere, not asked again
    [lm_eval]
    model_args = "pretrained=ckpt/{checkpoint}"
    [run]
    answers = 0.01
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from scrimp.checkpoint_selection.cell_policy import cell_space
from scrimp.checkpoint_selection.question_command import QuestionCommand
from scrimp.checkpoint_selection.score_files import by_numbers, sample_costs, trainer_checkpoints
from scrimp.checkpoint_selection.score_table import Checkpoint
from scrimp.errors import StudyError
from scrimp.executors.command_line import Command
from scrimp.formats.toml_reading import Count, Entries, Natural, Positive, Text, TomlReading


class _Run(msgspec.Struct, frozen=True):
    """The [run] table: the arguments of `Selection.run`."""

    share: Positive | None = None
    answers: Positive | None = None
    budget: Positive | None = None
    loss: Positive | None = None
    loss_per_cost: Positive | None = None
    workers: Count = 1
    gpus_per_worker: Natural = 0
    retries: Natural = 1
    timeout: Positive | None = None
    time_limit: Positive | None = None


class _LmEval(msgspec.Struct, frozen=True):
    """The [lm_eval] table: lm-evaluation-harness with the checkpoint kept in memory."""

    model: Text = "hf"
    model_args: Text = "pretrained={checkpoint}"
    batch_size: int | str = 1
    device: Text | None = None
    include_path: Text | None = None
    include_defaults: bool = True
    num_fewshot: Natural | None = None
    options: dict[str, object] = {}


class _File(msgspec.Struct, frozen=True):
    """The top level: the arguments of `create_selection`, and the command."""

    name: Text
    checkpoints: Text | Annotated[list[int | float | str], msgspec.Meta(min_length=1)]
    tasks: (
        Annotated[list[Text], msgspec.Meta(min_length=1)]
        | Annotated[dict[str, Count], msgspec.Meta(min_length=1)]
    )
    command: Text | list[Text] | None = None
    lm_eval: _LmEval | None = None
    answers: Text | None = None
    results: Text | None = None
    metric: Text | None = None
    scores: Text | None = None
    cost: dict[str, Positive] | Literal["samples"] = {}
    weights: dict[str, Positive] = {}
    scales: dict[str, Positive] = {}
    groups: dict[str, list[Text]] = {}
    directions: dict[str, Literal["maximize", "minimize"]] = {}
    ordered: bool = True
    method: Text | dict[str, object] = "auto"
    load_cost: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    repeats: Count = 1
    use_stderr: bool = True
    tolerance: float = 0.002
    answer: Literal["measured", "smooth"] = "measured"
    storage: Text | None = None
    seed: Natural | None = None
    run: _Run = _Run()


@dataclass(frozen=True)
class SelectionPlan:
    """A valid file: ``question`` goes to `create_selection`, ``run`` and ``command`` to
    `Selection.run`; ``lm_eval`` are the settings of the harness in place of a command."""

    name: str
    storage: str | None
    question: Entries
    command: Command | Callable[..., object] | None
    run: Entries
    scores: Path | None
    lm_eval: Entries | None = None
    answers: Path | None = None


def read_selection_file(path: Path) -> SelectionPlan:
    """Read a selection file; raises `StudyError` with every mistake."""
    reading = TomlReading.of(path, _EXAMPLES, {})
    top = reading.table(_File, reading.record, ())
    reading.refuse(str(path))
    file, folder = msgspec.convert(top, _File), reading.folder
    given = msgspec.structs.asdict(file)
    question = {key: value for key, value in given.items() if key not in _NOT_ASKED}
    run = msgspec.structs.asdict(file.run)
    retries = run.pop("retries")
    scores, answers = (
        None if name is None else folder / name for name in (file.scores, file.answers)
    )
    command: Command | QuestionCommand | None = None
    with reading.blamed_on("checkpoints"):
        question["checkpoints"] = _checkpoints(file.checkpoints, folder)
    with reading.blamed_on("cost"):
        question["cost"] = _costs(file, scores)
    with reading.blamed_on("command"):
        command = _evaluation(file, retries, folder)
    reading.refuse(str(path))
    harness = _harness(file, folder)
    return SelectionPlan(file.name, file.storage, question, command, run, scores, harness, answers)


_NOT_ASKED = (
    "name", "command", "results", "metric", "scores", "storage", "run", "lm_eval", "answers",
)  # fmt: skip
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
    """Return the given list, the matches of a pattern in numeric order, or the checkpoints in a folder
    of the Hugging Face Trainer."""
    if not isinstance(given, str):
        return given
    if (folder / given).is_dir():
        return [str(Path(given) / name) for name in trainer_checkpoints(folder / given)]
    found = sorted((str(path.relative_to(folder)) for path in folder.glob(given)), key=by_numbers)
    if not found:
        raise StudyError(
            f"no file or folder matches checkpoints = {given!r} in {folder}; name them in a list"
            " instead"
        )
    return found


def _evaluation(file: _File, retries: int, folder: Path) -> Command | QuestionCommand | None:
    """Return the command of a cell, or that of questions; None if lm-evaluation-harness is used."""
    if (file.command is None) == (file.lm_eval is None):
        raise StudyError(
            "give either command = …, which says how to score a cell, or the table [lm_eval]"
        )
    if file.command is None:
        return None
    if not isinstance(file.tasks, dict):
        return _cell_command(file, retries, folder)
    words = Command(file.command, folder).words
    if not any("{questions}" in word or "{samples}" in word for word in words):
        raise StudyError(
            f"the command {file.command!r} has neither {{questions}} nor {{samples}}; to select by"
            " question, the command must say which questions to ask"
        )
    return QuestionCommand(words, folder, file.results, file.metric, retries)


def _harness(file: _File, folder: Path) -> Entries | None:
    """Return the arguments of `LmEval`, with paths from the file's folder."""
    if file.lm_eval is None:
        return None
    settings = msgspec.structs.asdict(file.lm_eval)
    if settings["include_path"] is not None:
        settings["include_path"] = str(folder / settings["include_path"])
    return {**settings, "metric": file.metric, "folder": str(folder)}


def _cell_command(file: _File, retries: int, folder: Path) -> Command:
    """Wrap the user's command in one that retries it and reads the score."""
    assert file.command is not None
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
