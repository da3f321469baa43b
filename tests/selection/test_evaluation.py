"""Functions of checkpoint and task as objectives, and checkpoints as plain values."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrimp.errors import StudyError, TableError
from scrimp.selection.evaluation import Evaluation, plain_checkpoint


class Heard:
    """A trial that remembers what it is told."""

    def __init__(self) -> None:
        self.params = {"checkpoint": 3, "task": "a"}

    def report(self, score: float, stderr: float | None = None) -> None:
        self.told = score, stderr


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (0.5, (0.5, None)),
        ((0.5, 0.1), (0.5, 0.1)),
        ({"score": np.float32(0.5), "stderr": 0.1, "other": 3}, (0.5, 0.1)),
        ({"score": 0.5, "stderr": "N/A"}, (0.5, None)),
    ],
)
def test_a_score_with_its_error_in_three_forms(result: Any, told: tuple[float, float]) -> None:
    heard = Heard()
    Evaluation(lambda checkpoint, task: result)(heard)
    assert heard.told == told


def test_a_score_that_cannot_be_is_refused() -> None:
    with pytest.raises(TableError):
        Evaluation(lambda checkpoint, task: (0.5, -1.0))(Heard())


def test_checkpoints_become_text_or_numbers() -> None:
    given = [Path("a/b"), np.int64(3), "x", 2.5]
    assert [plain_checkpoint(each) for each in given] == ["a/b", 3, "x", 2.5]
    for wrong in (True, None, [1]):
        with pytest.raises(StudyError, match="neither text nor a number"):
            plain_checkpoint(wrong)
