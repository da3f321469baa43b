"""EleutherAI's lm-evaluation-harness, question by question, with the checkpoint kept in memory.

    from scrimp.integrations.lm_eval import LmEval

    harness = LmEval(model_args="pretrained=checkpoints/{checkpoint}", batch_size=16)
    best = scrimp.select_checkpoint(
        harness, ["step-1000", "step-2000"], harness.questions(["arc_easy", "gsm8k"]), answers=0.01
    )

The harness is asked for single questions (its ``samples``) and logs every one (``log_samples``). The
last checkpoint stays loaded until another is asked for; a race asks all questions of a round of one
checkpoint in a row, so each is loaded once per round at most. In ``scrimp select run`` the same
settings are the table ``[lm_eval]``. Any model class of the harness works, such as ``vllm``.
"""

import contextlib
import gc
import io
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from scrimp.checkpoint_selection.answer_files import sample_score
from scrimp.errors import ObjectiveError
from scrimp.integrations.extras import extra

with extra("lm-eval", "LmEval"):
    from lm_eval.api.registry import get_model
    from lm_eval.evaluator import evaluate
    from lm_eval.tasks import TaskManager, get_task_dict

_loaded: dict[tuple[object, ...], object] = {}
"""The model of the last checkpoint, by its settings; at most one."""


@dataclass(frozen=True)
class LmEval:
    """The settings of the harness; an ``evaluate`` function of a selection by question.

    ``model`` is its class in the harness, and ``model_args`` its arguments with ``{checkpoint}``
    filled in. ``metric`` is as in its results, ``acc_norm`` or ``exact_match,strict-match``; by
    default the first of the task. ``include_path`` is a folder of your own tasks; without the
    tasks that the harness brings along (``include_defaults=False``) it starts sooner. ``folder`` is
    where checkpoints lie that are paths. ``options`` go to ``lm_eval.evaluate``.
    """

    model: str = "hf"
    model_args: str = "pretrained={checkpoint}"
    metric: str | None = None
    batch_size: int | str = 1
    device: str | None = None
    include_path: str | None = None
    include_defaults: bool = True
    folder: str = ""
    num_fewshot: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def questions(self, tasks: Sequence[str]) -> dict[str, int]:
        """Return the number of questions of each task."""
        found = get_task_dict(list(tasks), self._manager)
        for task in tasks:
            if task not in found:
                raise ObjectiveError(
                    f"{task!r} is a group of tasks, and a race asks single ones; list its members"
                )
        return {task: len(list(found[task].eval_docs)) for task in tasks}

    def __call__(self, checkpoint: object, task: str, questions: Sequence[int]) -> list[float]:
        model = self._model(checkpoint)
        # Without the progress bars of every few questions; messages and errors remain.
        with contextlib.redirect_stderr(io.StringIO()):
            found = evaluate(
                model,
                {task: _task(self._manager, task, self.num_fewshot)},
                samples={task: sorted(questions)},
                log_samples=True,
                bootstrap_iters=0,
                verbosity="ERROR",
                **self.options,
            )
        scores: dict[int, float] = {}
        for sample in found["samples"][task]:
            score = sample_score(sample, self.metric)
            if score is not None:
                scores.setdefault(int(sample["doc_id"]), score)
        missing = [question for question in questions if question not in scores]
        if missing:
            raise ObjectiveError(
                f"lm-evaluation-harness logged no answer of {checkpoint!r} to question {missing[0]} of"
                f" {task!r}; it has {len(scores)} of {len(questions)}"
            )
        return [scores[question] for question in questions]

    @property
    def _manager(self) -> TaskManager:
        return _task_manager(self.include_path, self.include_defaults)

    def _model(self, checkpoint: object) -> object:
        """Return the model of a checkpoint, which replaces the one in memory."""
        path = Path(self.folder) / str(checkpoint)
        name = str(path if path.exists() else checkpoint)
        arguments = self.model_args.replace("{checkpoint}", name)
        key = (self.model, arguments, self.batch_size, self.device)
        if key not in _loaded:
            _loaded.clear()
            gc.collect()
            print(f"scrimp: loading checkpoint {checkpoint}", file=sys.stderr, flush=True)
            logging.getLogger("lm_eval").setLevel(logging.ERROR)
            more = {"batch_size": self.batch_size, "device": self.device}
            _loaded[key] = get_model(self.model).create_from_arg_string(arguments, more)
        return _loaded[key]


@lru_cache(maxsize=4)
def _task_manager(include_path: str | None, include_defaults: bool) -> TaskManager:
    return TaskManager(include_path=include_path, include_defaults=include_defaults)


@lru_cache(maxsize=256)
def _task(manager: TaskManager, name: str, num_fewshot: int | None) -> object:
    """Return a task with its questions, which are read once."""
    task = get_task_dict([name], manager)[name]
    if num_fewshot is not None or task.get_config("num_fewshot") is None:
        task.set_config(key="num_fewshot", value=num_fewshot or 0)
    task.set_fewshot_seed(seed=1234)
    return task
