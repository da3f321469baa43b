"""A function of checkpoint and task as the objective of a trial, and checkpoints as plain values."""

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrimp.errors import StudyError
from scrimp.executors.run_context import RunContext
from scrimp.history.reports import as_metrics
from scrimp.selection.score_table import Checkpoint, check_score, known_error

if TYPE_CHECKING:  # loading it takes SciPy
    pass

__all__ = ["METRIC", "Evaluation", "plain_checkpoint"]


METRIC = "score"


@dataclass(frozen=True)
class Evaluation:
    """A function of checkpoint and task, as an objective of trials."""

    function: Callable[[Checkpoint, str], object]

    def __call__(self, trial: RunContext) -> None:
        checkpoint, task = trial.params["checkpoint"], trial.params["task"]
        result: Any = self.function(checkpoint, task)
        stderr: object = None
        if isinstance(result, tuple) and len(result) == 2:
            result, stderr = result
        elif isinstance(result, Mapping):
            result, stderr = result.get(METRIC), result.get("stderr")
        score = as_metrics(result, METRIC)[METRIC]
        error = known_error(stderr)
        if math.isfinite(score):
            check_score(score, error, checkpoint, task)
        trial.report(score, stderr=error)


def plain_checkpoint(checkpoint: object) -> Checkpoint:
    """A checkpoint as text or number: paths become text, numbers of other libraries Python's
    own."""
    if isinstance(checkpoint, Path):
        return str(checkpoint)
    number: Any = checkpoint
    if not isinstance(number, str | int | float):
        with contextlib.suppress(AttributeError, ValueError):
            number = number.item()
    if isinstance(number, bool) or not isinstance(number, str | int | float):
        raise StudyError(
            f"checkpoint {checkpoint!r} is neither text nor a number; name it or give its training"
            " step"
        )
    return number
