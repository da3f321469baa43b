"""The Trainer of Hugging Face transformers as a trial, with epochs or optimizer steps as budget.

    def objective(trial):
        callback = ScrimpCallback("eval_loss", trial)
        arguments = TrainingArguments(
            **callback.arguments, num_train_epochs=9, eval_strategy="epoch", **trial.params
        )
        trainer = Trainer(model_init=build, args=arguments, callbacks=[callback], ...)
        trainer.train(resume_from_checkpoint=callback.resume_from)

``num_train_epochs`` or ``max_steps`` are those of a full training: the callback ends each grant, so
schedules of learning rates do not depend on grants. With several processes (``torchrun``,
``accelerate``) the script runs as a command: all of them save, and the first one speaks.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Protocol

from scrimp.errors import ReportError
from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, unreadable

try:
    import torch.distributed
    from transformers.trainer_callback import TrainerCallback
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpCallback needs {error.name}, not installed here; pip install 'scrimp[transformers]'"
    ) from None

__all__ = ["ScrimpCallback"]

STATE = "trainer_state.json"


class TrainerProgress(Protocol):
    """What is used of the trainer's state."""

    @property
    def epoch(self) -> float | None: ...
    @property
    def global_step(self) -> int: ...
    @property
    def is_world_process_zero(self) -> bool: ...


class Control(Protocol):
    """What a callback may ask of the trainer."""

    should_evaluate: bool
    should_save: bool
    should_training_stop: bool


class ScrimpCallback(TrainerCallback):  # type: ignore[misc]
    """Reports ``metrics``, such as ``"eval_loss"``, after every evaluation, each with a checkpoint,
    and ends where the trial ends; there it evaluates in any case.

    ``unit`` is what the study's budget counts: ``"epoch"``, or ``"step"`` for optimizer steps.
    ``compute_objective`` makes one more metric of the others, ``"objective"``. ``trial`` is the
    objective's; a script that runs as a command leaves it out. ``arguments`` are keywords for
    `TrainingArguments`, ``resume_from`` is the checkpoint to go on from, None at the beginning.
    """

    def __init__(
        self,
        metrics: Metrics,
        trial: RunningTrial | None = None,
        *,
        unit: Literal["epoch", "step"] = "epoch",
        compute_objective: Callable[[dict[str, float]], float] | None = None,
    ) -> None:
        if unit not in ("epoch", "step"):
            raise ReportError(f"unit is {unit!r}; it must be 'epoch' or 'step'")
        self._loop = Loop.of(metrics, trial)
        self._unit = unit
        self._compute = compute_objective
        self._found: dict[str, float] | None = None
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        folder = self._loop.folder
        if folder is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="scrimp-")
            folder = Path(self._scratch.name)
        self.arguments: dict[str, str | int] = {
            "output_dir": str(folder),
            "save_strategy": "no",  # the callback saves with every report
            "save_total_limit": 1,
        }
        self.resume_from = self._newest()

    def on_step_end(
        self, args: object, state: TrainerProgress, control: Control, **rest: object
    ) -> None:
        """The trainer calls it after each optimizer step."""
        if self._unit == "step" and self._loop.ends(state.global_step):
            control.should_evaluate = True

    def on_epoch_end(
        self, args: object, state: TrainerProgress, control: Control, **rest: object
    ) -> None:
        """The trainer calls it after each epoch."""
        if self._unit == "epoch" and self._loop.ends(self._place(state)):
            control.should_evaluate = True

    def on_evaluate(
        self,
        args: object,
        state: TrainerProgress,
        control: Control,
        metrics: Mapping[str, float] | None = None,
        **rest: object,
    ) -> None:
        """The trainer calls it after each evaluation, before it saves."""
        self._found = dict(metrics or {})
        if self._compute is not None:
            self._found["objective"] = self._compute(dict(self._found))
        control.should_save = True

    def on_save(
        self, args: object, state: TrainerProgress, control: Control, **rest: object
    ) -> None:
        """The trainer calls it when a checkpoint is written, on every device."""
        if self._found is None:
            return
        speaks = state.is_world_process_zero
        goes_on = speaks and self._loop.tell(self._place(state), self._found)
        self._found = None
        if not _first_says(goes_on):
            control.should_training_stop = True

    def on_train_end(
        self, args: object, state: TrainerProgress, control: Control, **rest: object
    ) -> None:
        """Training has ended."""
        if state.is_world_process_zero:
            self._loop.check_reported()

    def _place(self, state: TrainerProgress) -> float:
        if self._unit == "step":
            return float(state.global_step)
        return round(float(state.epoch or 0.0), 6)

    def _newest(self) -> str | None:
        """The last checkpoint in the folder, whose state can be read."""
        if not self._loop.trial.resumed:
            return None
        folder = self._loop.trial.checkpoint_dir
        found = sorted(folder.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
        path = found[-1] if found else folder / "checkpoint"
        try:
            json.loads((path / STATE).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise unreadable(path, self._loop.trial.step, error) from error
        return str(path)


def _first_says(goes_on: bool) -> bool:
    """What the first process decided, in all of them."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return goes_on
    said = [goes_on]
    torch.distributed.broadcast_object_list(said, src=0)
    return said[0]
