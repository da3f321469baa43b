"""A command that answers questions, as the ``evaluate`` function of a selection by question.

    QuestionCommand(("python", "ask.py", "{checkpoint}", "{task}", "{questions}"))

``{questions}`` is a list of places as JSON, [7, 12], and ``{samples}`` the same with its task, as the
option ``--samples`` of lm-evaluation-harness takes it: {"arc": [7, 12]}. The answers are the last line
of the command's output, a list with one number for each question, or the sample log of
lm-evaluation-harness below ``results``.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from scrimp.checkpoint_selection.answer_files import read_sample_log
from scrimp.errors import ObjectiveError, ScrimpError

MAX_OUTPUT_SHOWN = 300
"""Characters of a command's output in an error."""


@dataclass(frozen=True)
class QuestionCommand:
    """A command in words, run in ``folder``, and again up to ``retries`` times if it fails."""

    words: tuple[str, ...]
    folder: Path = Path()
    results: str | None = None
    metric: str | None = None
    retries: int = 0

    def __call__(self, checkpoint: object, task: str, questions: Sequence[int]) -> object:
        for _ in range(self.retries):
            with suppress(ScrimpError):
                return self._answers(checkpoint, task, list(questions))
        return self._answers(checkpoint, task, list(questions))

    def _answers(self, checkpoint: object, task: str, questions: list[int]) -> object:
        texts = {
            "{checkpoint}": str(checkpoint),
            "{task}": task,
            "{questions}": json.dumps(questions),
            "{samples}": json.dumps({task: questions}),
            "{python}": sys.executable,
        }
        words = [_filled(word, texts) for word in self.words]
        done = subprocess.run(
            words, cwd=self.folder, stdout=subprocess.PIPE, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise ObjectiveError(
                f"the command {words[:3]}... ended with code {done.returncode}; its output ends with"
                f" {done.stdout[-MAX_OUTPUT_SHOWN:]!r}"
            )
        if self.results is not None:
            folder = self.folder / _filled(self.results, texts)
            scores = read_sample_log(folder, task, self.metric)
            missing = [question for question in questions if question not in scores]
            if missing:
                raise ObjectiveError(
                    f"{folder} has no answer to question {missing[0]} of {task!r}; pass"
                    " --samples {samples} to the harness"
                )
            return [scores[question] for question in questions]
        last = (done.stdout.strip().splitlines() or [""])[-1]
        try:
            return json.loads(last)
        except ValueError:
            raise ObjectiveError(
                f"the command's last line is {last[:MAX_OUTPUT_SHOWN]!r}; print one number for each"
                " question as a JSON list, or name a sample log with results = …"
            ) from None


def _filled(word: str, texts: dict[str, str]) -> str:
    for name, text in texts.items():
        word = word.replace(name, text)
    return word
