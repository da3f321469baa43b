"""Lightning as a trial, on the real library."""

import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("lightning", reason="make test-integrations installs lightning")

import torch
from lightning import pytorch as lightning
from torch.utils.data import DataLoader, TensorDataset

import scrimp
from scrimp.errors import BrokenObjective, ReportError, StorageError
from scrimp.integrations.lightning import FILE, ScrimpCallback

X = torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
DATA = TensorDataset(X, X @ torch.tensor([[1.0], [-2.0], [0.5]]))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class Line(lightning.LightningModule):
    def __init__(self, rate: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.line, self.rate = torch.nn.Linear(3, 1), rate

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        return ((self.line(batch[0]) - batch[1]) ** 2).mean()

    def validation_step(self, batch: list[torch.Tensor], _: int) -> None:
        self.log("val_loss", ((self.line(batch[0]) - batch[1]) ** 2).mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=self.rate / 20, momentum=0.9)


def fit(rate: float, callback: ScrimpCallback | None, epochs: int = 9, **settings: object) -> float:
    trainer = lightning.Trainer(
        max_epochs=epochs,
        accelerator="cpu",
        callbacks=callback,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **settings,
    )
    data = DataLoader(DATA, batch_size=16)
    trainer.fit(Line(rate), data, data, ckpt_path=callback and callback.resume_from)
    return float(trainer.callback_metrics["val_loss"])


def objective(trial: scrimp.LiveTrial) -> None:
    fit(trial.params["rate"], ScrimpCallback({"loss": "val_loss"}, trial))


def test_a_paused_trial_goes_on_as_if_it_had_not_stopped(paused_study: scrimp.Study) -> None:
    paused_study.optimize(objective, n_trials=4)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.attempt > 1 and longest.budget in (3, 9)
    assert [point.step for point in longest.curve] == list(range(1, int(longest.budget) + 1))
    alone = fit(longest.config["rate"], None, int(longest.budget))
    assert longest.value == pytest.approx(alone, rel=1e-5)


def test_a_grant_that_ends_before_the_first_validation_says_so(
    paused_study: scrimp.Study,
) -> None:
    def sparse(trial: scrimp.LiveTrial) -> None:
        callback = ScrimpCallback({"loss": "val_loss"}, trial)
        fit(trial.params["rate"], callback, check_val_every_n_epoch=2)

    with pytest.raises(BrokenObjective, match="reported no 'val_loss': it measured nothing"):
        paused_study.optimize(sparse, n_trials=3)


def test_a_metric_that_is_not_logged_is_named_with_those_that_are(
    paused_study: scrimp.Study,
) -> None:
    def wrong(trial: scrimp.LiveTrial) -> None:
        fit(0.1, ScrimpCallback("val_los", trial))

    with pytest.raises(BrokenObjective) as caught:
        paused_study.optimize(wrong, n_trials=3)
    assert "did you mean 'val_loss'?" in caught.value.details


def test_training_that_ends_before_any_report(tmp_path: Path, paused_study: scrimp.Study) -> None:
    def empty(trial: scrimp.LiveTrial) -> None:
        fit(0.1, ScrimpCallback("val_loss", trial), epochs=0)

    with pytest.raises(BrokenObjective) as caught:
        paused_study.optimize(empty, n_trials=3)
    assert "'val_loss' was never measured" in caught.value.details


def test_outside_a_trial() -> None:
    with pytest.raises(ReportError, match="outside a trial: pass it the trial"):
        ScrimpCallback("val_loss")


def test_a_checkpoint_that_cannot_be_read_is_named(paused_study: scrimp.Study) -> None:
    def spoilt(trial: scrimp.LiveTrial) -> None:
        if trial.resumed:
            path = trial.checkpoint_dir / FILE
            path.write_bytes(path.read_bytes()[:500])
        objective(trial)

    paused_study.optimize(spoilt, n_trials=4, catch=(StorageError,))
    failed = [trial for trial in paused_study.trials if trial.status == "failed"]
    assert failed and all("of step 1 at" in trial.message for trial in failed)
    assert all("cannot be read: ValueError: not a whole archive" in one.message for one in failed)


def test_the_example_tunes_a_residual_network_on_small_images(tmp_path: Path) -> None:
    script = Path(__file__).resolve().parents[2] / "examples" / "lightning_resnet.py"
    text = subprocess.run(
        [sys.executable, str(script), "data", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
        check=True,
    ).stdout
    assert "2 learning rates" in text and "balanced accuracy 0." in text
