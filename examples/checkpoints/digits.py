"""A small network on handwritten digits that leaves 40 checkpoints, and a dozen benchmarks to judge
them by.

Training runs past its best: the training images are few and some of their labels are wrong, so the
network first learns digits and then the wrong labels. Each benchmark measures another side of a
checkpoint: clean images, corruptions, single digits, calibration.

    python digits.py checkpoints                      train, and save the checkpoints there
    python digits.py checkpoints 225 "open digits"    print the score of one cell
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

CHECKPOINTS = [25 * number for number in range(1, 41)]
"""Training steps at which the weights were saved."""

IMAGES, LABELS = load_digits(return_X_y=True)
IMAGES = IMAGES / 16.0
ORDER = np.random.default_rng(0).permutation(len(IMAGES))
TRAIN, TEST = ORDER[:500], ORDER[500:]


def train(folder: Path) -> None:
    """Train one hidden layer with Adam, and save the weights at every step of `CHECKPOINTS`."""
    rng = np.random.default_rng(1)
    labels = LABELS[TRAIN].copy()
    wrong = rng.random(len(labels)) < 0.15
    labels[wrong] = rng.integers(0, 10, wrong.sum())
    targets = np.eye(10)[labels]
    weights = [
        rng.normal(0, 0.12, (64, 128)),
        np.zeros(128),
        rng.normal(0, 0.12, (128, 10)),
        np.zeros(10),
    ]
    first, second = (
        [np.zeros_like(each) for each in weights],
        [np.zeros_like(each) for each in weights],
    )
    for step in range(1, CHECKPOINTS[-1] + 1):
        batch = rng.choice(len(TRAIN), 32, replace=False)
        x = IMAGES[TRAIN][batch]
        hidden = np.maximum(x @ weights[0] + weights[1], 0.0)
        error = (softmax(hidden @ weights[2] + weights[3]) - targets[batch]) / len(batch)
        back = (error @ weights[2].T) * (hidden > 0)
        for place, gradient in enumerate((x.T @ back, back.sum(0), hidden.T @ error, error.sum(0))):
            first[place] = 0.9 * first[place] + 0.1 * gradient
            second[place] = 0.999 * second[place] + 0.001 * gradient**2
            scale = np.sqrt(second[place] / (1 - 0.999**step)) + 1e-8
            weights[place] -= 0.003 * first[place] / (1 - 0.9**step) / scale
        if step in CHECKPOINTS:
            np.savez(folder / f"{step}.npz", *weights)


def probabilities(folder: Path, step: int, images: np.ndarray) -> np.ndarray:
    """What the checkpoint of a step says of images."""
    with np.load(folder / f"{step}.npz") as file:
        weights = [file[name] for name in file.files]
    return softmax(np.maximum(images @ weights[0] + weights[1], 0.0) @ weights[2] + weights[3])


def softmax(scores: np.ndarray) -> np.ndarray:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def accuracy(odds: np.ndarray, labels: np.ndarray) -> float:
    return float((odds.argmax(axis=1) == labels).mean())


def corrupted(
    change: Callable[[np.ndarray, np.random.Generator], np.ndarray],
) -> Callable[[Path, int], float]:
    """Accuracy on test images that ``change`` has spoilt, the same way for every checkpoint."""

    def score(folder: Path, step: int) -> float:
        pictures = IMAGES[TEST].reshape(-1, 8, 8)
        spoilt = change(pictures, np.random.default_rng(2)).reshape(len(TEST), 64)
        return accuracy(probabilities(folder, step, spoilt), LABELS[TEST])

    return score


def of_digits(*digits: int) -> Callable[[Path, int], float]:
    """Accuracy on the images of some digits."""

    def score(folder: Path, step: int) -> float:
        chosen = TEST[np.isin(LABELS[TEST], digits)]
        return accuracy(probabilities(folder, step, IMAGES[chosen]), LABELS[chosen])

    return score


def likelihood(folder: Path, step: int) -> float:
    """The geometric mean of the probability given to the right digit."""
    odds = probabilities(folder, step, IMAGES[TEST])
    return float(np.exp(np.log(np.maximum(odds[np.arange(len(TEST)), LABELS[TEST]], 1e-12)).mean()))


def calibration(folder: Path, step: int) -> float:
    """One minus the squared error of the stated probabilities (the Brier score)."""
    odds = probabilities(folder, step, IMAGES[TEST])
    return float(1.0 - np.square(odds - np.eye(10)[LABELS[TEST]]).sum(axis=1).mean())


BENCHMARKS: dict[str, Callable[[Path, int], float]] = {
    "clean": corrupted(lambda pictures, rng: pictures),
    "noise": corrupted(lambda pictures, rng: pictures + rng.normal(0, 0.25, pictures.shape)),
    "salt": corrupted(
        lambda pictures, rng: np.where(rng.random(pictures.shape) < 0.1, 1.0, pictures)
    ),
    "faint": corrupted(lambda pictures, rng: 0.35 * pictures),
    "inked": corrupted(lambda pictures, rng: np.minimum(1.6 * pictures, 1.0)),
    "shifted": corrupted(lambda pictures, rng: np.roll(pictures, 1, axis=2)),
    "occluded": corrupted(lambda pictures, rng: np.where(np.arange(8)[:, None] < 2, 0.0, pictures)),
    "round digits": of_digits(0, 6, 8, 9),
    "straight digits": of_digits(1, 4, 7),
    "open digits": of_digits(2, 3, 5),
    "likelihood": likelihood,
    "calibration": calibration,
}


if __name__ == "__main__":
    place, cell = Path(sys.argv[1]), sys.argv[2:]
    if cell:
        print(BENCHMARKS[cell[1]](place, int(cell[0])))
    else:
        place.mkdir(parents=True, exist_ok=True)
        train(place)
