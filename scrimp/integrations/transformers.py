"""The Trainer of Hugging Face transformers as a trial; its budget is epochs or optimizer steps.

    def objective(trial):
        callback = ScrimpCallback("eval_loss", trial)
        arguments = TrainingArguments(
            **callback.arguments, num_train_epochs=9, eval_strategy="epoch", **trial.params
        )
        trainer = Trainer(model_init=build, args=arguments, callbacks=[callback])
        trainer.train(resume_from_checkpoint=callback.resume_from)

``num_train_epochs`` or ``max_steps`` is the length of a full training: the callback ends each grant,
so learning rate schedules do not depend on grants. With several processes (``torchrun``,
``accelerate``), run the script as a command: all processes save, and the first one reports.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from scrimp.errors import ReportError
from scrimp.integrations.extras import extra
from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, unreadable

with extra("transformers", "ScrimpCallback"):
    import torch.distributed
    from transformers.trainer_callback import TrainerCallback, TrainerControl, TrainerState

STATE = "trainer_state.json"


class ScrimpCallback(TrainerCallback):  # type: ignore[misc]
    """Save a checkpoint and report ``metrics``, such as ``"eval_loss"``, after every evaluation; end
    training with the grant, after a last evaluation.

    ``unit`` is the unit of the study's budget: ``"epoch"``, or ``"step"`` for optimizer steps.
    ``compute_objective`` computes one more metric, ``"objective"``, from the others. Pass the
    objective's ``trial``; leave it out in a script that runs as a command. ``arguments`` are
    keywords for `TrainingArguments`; ``resume_from`` is the checkpoint to continue from, None at the
    beginning.
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
        # The callback itself requests a checkpoint with every report.
        self.arguments: dict[str, str | int] = {
            "output_dir": str(folder),
            "save_strategy": "no",
            "save_total_limit": 1,
        }
        self.resume_from = self._newest()

    def on_step_end(
        self, args: object, state: TrainerState, control: TrainerControl, **rest: object
    ) -> None:
        if self._unit == "step" and self._loop.ends(state.global_step):
            control.should_evaluate = True

    def on_epoch_end(
        self, args: object, state: TrainerState, control: TrainerControl, **rest: object
    ) -> None:
        if self._unit == "epoch" and self._loop.ends(self._place(state)):
            control.should_evaluate = True

    def on_evaluate(
        self,
        args: object,
        state: TrainerState,
        control: TrainerControl,
        metrics: Mapping[str, float] | None = None,
        **rest: object,
    ) -> None:
        """Called by the trainer after each evaluation, before it saves."""
        self._found = dict(metrics or {})
        if self._compute is not None:
            self._found["objective"] = self._compute(dict(self._found))
        control.should_save = True

    def on_save(
        self, args: object, state: TrainerState, control: TrainerControl, **rest: object
    ) -> None:
        """Called by the trainer on every device when a checkpoint is written."""
        if self._found is None:
            return
        reports = state.is_world_process_zero
        continues = reports and self._loop.tell(self._place(state), self._found)
        self._found = None
        if not _broadcast(continues):
            control.should_training_stop = True

    def on_train_end(
        self, args: object, state: TrainerState, control: TrainerControl, **rest: object
    ) -> None:
        if state.is_world_process_zero:
            self._loop.check_reported()

    def _place(self, state: TrainerState) -> float:
        if self._unit == "step":
            return float(state.global_step)
        return round(float(state.epoch or 0.0), 6)

    def _newest(self) -> str | None:
        """Return the latest checkpoint in the folder; `StorageError` if its state cannot be read."""
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


def _broadcast(continues: bool) -> bool:
    """Return the first process's answer in every process."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return continues
    answer = [continues]
    torch.distributed.broadcast_object_list(answer, src=0)
    return answer[0]
