"""Keras 3 as a trial, with epochs as its budget.

    def objective(trial):
        callback = ScrimpCallback("val_loss", trial)
        model = build(trial.params) if callback.restored is None else callback.restored
        model.fit(
            x, y, validation_split=0.2,
            initial_epoch=callback.initial_epoch, epochs=27, callbacks=[callback],
        )

``epochs`` is the length of a full training; the callback ends each grant.
"""

from collections.abc import Mapping
from typing import SupportsFloat

from scrimp.integrations.extras import extra
from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial

with extra("keras", "ScrimpCallback"):
    from keras import Model
    from keras.callbacks import Callback
    from keras.saving import load_model

FILE = "model.keras"


class ScrimpCallback(Callback):  # type: ignore[misc]
    """Save the model and report ``metrics``, named as in Keras's logs, every ``every`` epochs; end
    training with the grant.

    Pass the objective's ``trial``; leave it out in a script that runs as a command. ``restored`` is
    the model to continue with, its optimizer included; None at the beginning.
    """

    model: Model

    def __init__(
        self, metrics: Metrics, trial: RunningTrial | None = None, *, every: int = 1
    ) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial, every)
        self.restored: Model | None = self._loop.loaded(FILE, load_model, (OSError, ValueError))
        self.initial_epoch = 0 if self.restored is None else int(self._loop.trial.step)

    def on_epoch_end(self, epoch: int, logs: Mapping[str, SupportsFloat] | None = None) -> None:
        """Called by Keras after each epoch, numbered from 0."""
        done = epoch + 1
        if not self._loop.due(done):
            return
        self._loop.save(lambda folder: self.model.save(str(folder / FILE)))
        if not self._loop.tell(done, logs or {}):
            self.model.stop_training = True
