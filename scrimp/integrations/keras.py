"""Keras 3 as a trial, with epochs as its budget.

    def objective(trial):
        callback = ScrimpCallback("val_loss", trial)
        model = build(trial.params) if callback.restored is None else callback.restored
        model.fit(
            x, y, validation_split=0.2,
            initial_epoch=callback.initial_epoch, epochs=27, callbacks=[callback],
        )

``epochs`` is that of a full training; the callback ends each grant.
"""

from collections.abc import Mapping
from typing import Protocol, SupportsFloat

from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial

try:
    from keras.callbacks import Callback
    from keras.saving import load_model
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpCallback needs {error.name}, not installed here; pip install 'scrimp[keras]'"
    ) from None

__all__ = ["ScrimpCallback"]

FILE = "model.keras"


class KerasModel(Protocol):
    """What is used of a model of Keras."""

    stop_training: bool

    def save(self, filepath: str) -> None: ...


class ScrimpCallback(Callback):  # type: ignore[misc]
    """Reports ``metrics``, as they are in Keras's logs, after every so many epochs, each with the
    model saved, and ends where the trial ends.

    ``trial`` is the objective's; a script that runs as a command leaves it out. ``restored`` is the
    model to go on with, its optimizer included, None at the beginning.
    """

    model: KerasModel

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial, every)
        self.restored: KerasModel | None = self._loop.loaded(
            FILE, load_model, (OSError, ValueError)
        )
        self.initial_epoch = 0 if self.restored is None else int(self._loop.trial.step)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Keras calls it after each epoch, counted from 0."""
        done = epoch + 1
        if not self._loop.due(done):
            return
        folder = self._loop.folder
        if folder is not None:
            self.model.save(str(folder / FILE))
        if not self._loop.tell(done, logs or {}):
            self.model.stop_training = True
