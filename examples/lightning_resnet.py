"""Tune the learning rate of a small residual network on images with Lightning, epochs as budget.

    python examples/lightning_resnet.py DATA [TRIALS]

DATA is a folder with ``train.npz`` and ``test.npz``, each with ``images`` (count, height, width) of
0 to 255 and ``labels``. (KMNIST comes as ``kmnist-train-imgs.npz`` and ``kmnist-train-labels.npz``,
each with ``arr_0``; save both as one file.) Where there are none, small ones are made from
scikit-learn's handwritten digits. Poor learning rates are given up after an epoch; the others continue
from their checkpoints.
"""

import itertools
import logging
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from lightning import pytorch as lightning
from sklearn.metrics import balanced_accuracy_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import scrimp
from scrimp.integrations.lightning import ScrimpCallback

EPOCHS = 9


class Block(nn.Module):
    """Two convolutions and the way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.around = nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(x) + self.around(x))


class ResNet9(lightning.LightningModule):
    """Nine layers: a convolution, four blocks, ten classes; stochastic gradient descent."""

    def __init__(self, learning_rate: float, width: int = 8) -> None:
        super().__init__()
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        blocks = [
            Block(before, after, 1 if before == after else 2)
            for before, after in itertools.pairwise(widths)
        ]
        self.model = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            *blocks,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(8 * width, 10),
        )
        self.learning_rate = learning_rate
        self._seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def training_step(self, batch, _):
        images, labels = batch
        return nn.functional.cross_entropy(self.model(images), labels)

    def validation_step(self, batch, _):
        images, labels = batch
        self._seen.append((labels, self.model(images).argmax(dim=1)))

    def on_validation_epoch_end(self):
        true, guessed = (torch.cat(parts).cpu() for parts in zip(*self._seen, strict=True))
        self._seen.clear()
        self.log("balanced_accuracy", balanced_accuracy_score(true, guessed))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.learning_rate)


def make_digits(folder: Path) -> None:
    """The small image set."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("train", order[:1200]), ("test", order[1200:])):
        images = np.round(digits.images[rows] * 255 / 16).astype(np.uint8)
        np.savez(folder / f"{name}.npz", images=images, labels=digits.target[rows])


def loader(folder: Path, name: str) -> DataLoader:
    with np.load(folder / f"{name}.npz") as held:
        images = torch.tensor(held["images"], dtype=torch.float32).unsqueeze(1) / 255
        labels = torch.tensor(held["labels"], dtype=torch.long)
    return DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=name == "train")


def main(folder: Path, trials: int) -> None:
    if not (folder / "train.npz").exists():
        make_digits(folder)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")

    def objective(trial):
        torch.manual_seed(0)
        callback = ScrimpCallback("balanced_accuracy", trial)
        trainer = lightning.Trainer(
            max_epochs=EPOCHS,
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        model = ResNet9(trial.params["learning_rate"])
        train, test = loader(folder, "train"), loader(folder, "test")
        trainer.fit(model, train, test, ckpt_path=callback.resume_from)

    study = scrimp.create_study(
        "resnet",
        scrimp.Space(learning_rate=scrimp.Float(1e-4, 1.0, log=True)),
        direction="maximize",
        metric="balanced_accuracy",
        budget=scrimp.Budget("epoch", 1, EPOCHS),
        method="mobster-joint",
        storage=f"sqlite:///{folder}/scrimp.db",
        load_if_exists=True,
        seed=0,
    )
    study.optimize(objective, n_trials=trials)
    spent = round(sum(trial.budget for trial in study.trials))
    print(f"{len(study.trials)} learning rates, {spent} epochs instead of {trials * EPOCHS}")
    rate = study.best_params["learning_rate"]
    print(f"balanced accuracy {study.best_value:.4f} with learning rate {rate:.4g}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 12)
