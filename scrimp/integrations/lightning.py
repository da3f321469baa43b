"""Lightning as a trial, with epochs as its budget.

    def objective(trial):
        callback = ScrimpCallback("val_loss", trial)
        trainer = Trainer(max_epochs=27, callbacks=[callback])
        trainer.fit(model, train, held_out, ckpt_path=callback.resume_from)

``max_epochs`` is that of a full training: the callback ends each grant, so schedules of learning
rates do not depend on grants. With several devices, run the script as a command: all of them save,
and the first one speaks.
"""

import zipfile
from collections.abc import Mapping
from typing import Protocol, SupportsFloat

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, unreadable

try:
    from lightning.pytorch.callbacks import Callback
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpCallback needs {error.name}, not installed here; pip install 'scrimp[lightning]'"
    ) from None

__all__ = ["ScrimpCallback"]

FILE = "lightning.ckpt"


class Strategy(Protocol):
    """What connects the devices."""

    def broadcast(self, obj: bool, src: int = 0) -> bool: ...


class Trainer(Protocol):
    """What is used of Lightning's trainer."""

    should_stop: bool

    @property
    def current_epoch(self) -> int: ...
    @property
    def sanity_checking(self) -> bool: ...
    @property
    def is_global_zero(self) -> bool: ...
    @property
    def callback_metrics(self) -> Mapping[str, SupportsFloat]: ...
    @property
    def strategy(self) -> Strategy: ...
    def save_checkpoint(self, filepath: str) -> None: ...


class ScrimpCallback(Callback):  # type: ignore[misc]
    """Reports ``metrics``, as the module logs them, after every epoch with a validation, each with
    a checkpoint, and ends where the trial ends.

    ``trial`` is the objective's; a script that runs as a command leaves it out. ``resume_from`` is
    the checkpoint for ``ckpt_path``, None at the beginning.
    """

    def __init__(self, metrics: Metrics, trial: RunningTrial | None = None) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial)
        self._validated = False
        path = self._loop.saved(FILE)
        if path is not None and not zipfile.is_zipfile(path):
            broken = ValueError("it is no archive of torch's, or only a part of one")
            raise unreadable(path, self._loop.trial.step, broken)
        self.resume_from = None if path is None else str(path)

    def on_validation_end(self, trainer: Trainer, pl_module: object) -> None:
        """Lightning calls it after each validation."""
        self._validated = self._validated or not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Trainer, pl_module: object) -> None:
        """Lightning calls it after each epoch, on every device."""
        done = trainer.current_epoch + 1
        if not self._validated and not self._loop.ends(done):
            return
        self._validated = False
        folder = self._loop.folder
        if folder is not None:
            trainer.save_checkpoint(str(folder / FILE))
        goes_on = trainer.is_global_zero and self._loop.tell(done, trainer.callback_metrics)
        if not trainer.strategy.broadcast(goes_on):
            trainer.should_stop = True

    def on_fit_end(self, trainer: Trainer, pl_module: object) -> None:
        """Training has ended."""
        if trainer.is_global_zero:
            self._loop.check_reported()
