"""Lightning as a trial, with epochs as its budget.

    def objective(trial):
        callback = ScrimpCallback("val_loss", trial)
        trainer = Trainer(max_epochs=27, callbacks=[callback])
        trainer.fit(model, train, held_out, ckpt_path=callback.resume_from)

``max_epochs`` is the length of a full training: the callback ends each grant, so learning rate
schedules do not depend on grants. With several devices, run the script as a command: all devices
save, and the first one reports.
"""

import zipfile

from scrimp.integrations.extras import extra
from scrimp.integrations.trial_loop import Loop, Metrics, RunningTrial, unreadable

with extra("lightning", "ScrimpCallback"):
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import Callback

FILE = "lightning.ckpt"


class ScrimpCallback(Callback):  # type: ignore[misc]
    """Save a checkpoint and report ``metrics``, named as the module logs them, after every epoch
    with a validation; end training with the grant.

    Pass the objective's ``trial``; leave it out in a script that runs as a command. ``resume_from``
    is the checkpoint for ``ckpt_path``; None at the beginning.
    """

    def __init__(self, metrics: Metrics, trial: RunningTrial | None = None) -> None:
        super().__init__()
        self._loop = Loop.of(metrics, trial)
        self._validated = False
        path = self._loop.saved(FILE)
        if path is not None and not zipfile.is_zipfile(path):
            broken = ValueError("not a whole archive of torch")
            raise unreadable(path, self._loop.trial.step, broken)
        self.resume_from = None if path is None else str(path)

    def on_validation_end(self, trainer: Trainer, pl_module: object) -> None:
        self._validated = self._validated or not trainer.sanity_checking

    def on_train_epoch_end(self, trainer: Trainer, pl_module: object) -> None:
        """Called by Lightning after each epoch, on every device."""
        done = trainer.current_epoch + 1
        if not self._validated and not self._loop.ends(done):
            return
        self._validated = False
        self._loop.save(lambda folder: trainer.save_checkpoint(str(folder / FILE)))
        continues = trainer.is_global_zero and self._loop.tell(done, trainer.callback_metrics)
        if not trainer.strategy.broadcast(continues):
            trainer.should_stop = True

    def on_fit_end(self, trainer: Trainer, pl_module: object) -> None:
        if trainer.is_global_zero:
            self._loop.check_reported()
