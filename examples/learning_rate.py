"""Tune the learning rate of a real network on handwritten digits, as a textbook on Bayesian
optimization does it.

Two initial points, then expected improvement under a Gaussian process with a Matern-3/2 kernel
decides; balanced accuracy is maximised. Writes pictures/learning-rate-NN.html, one per iteration:
the model's mean and band with the observations, and below it the acquisition function whose peak is
tried next.

    python examples/learning_rate.py [folder for the pictures] [number of iterations]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split

import scrimp

IMAGES, LABELS = load_digits(return_X_y=True)
TRAIN_X, TEST_X, TRAIN_Y, TEST_Y = train_test_split(
    IMAGES / 16.0, LABELS, test_size=0.4, random_state=0, stratify=LABELS
)


def balanced_accuracy(trial: scrimp.LiveTrial) -> float:
    """A network with one hidden layer, trained by plain gradient descent for three epochs."""
    rate = trial.params["learning_rate"]
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 0.15, (64, 64)), rng.normal(0, 0.15, (64, 10))
    targets = np.eye(10)[TRAIN_Y]
    for _ in range(3):
        for batch in np.array_split(rng.permutation(len(TRAIN_X)), len(TRAIN_X) // 16):
            hidden = np.maximum(TRAIN_X[batch] @ first, 0.0)
            scores = hidden @ second
            odds = np.exp(scores - scores.max(axis=1, keepdims=True))
            error = (odds / odds.sum(axis=1, keepdims=True) - targets[batch]) / len(batch)
            step = TRAIN_X[batch].T @ ((error @ second.T) * (hidden > 0))
            second -= rate * hidden.T @ error
            first -= rate * step
    predicted = (np.maximum(TEST_X @ first, 0.0) @ second).argmax(axis=1)
    return float(balanced_accuracy_score(TEST_Y, predicted))


def main(folder: str = "pictures", iterations: str = "10") -> None:
    study = scrimp.create_study(
        "learning-rate",
        scrimp.Space(learning_rate=scrimp.Float(1e-4, 10.0, log=True)),
        direction="maximize",
        metric="balanced_accuracy",
        method=scrimp.Method(
            "gp-ei", initial=2, kernel="matern32-ard", margin=0.0, restarts=5, noise_floor=1e-8
        ),
        storage="memory://",
        seed=0,
    )
    study.optimize(balanced_accuracy, n_trials=2 + int(iterations))
    for trial in study.trials:
        print(
            f"learning rate {trial.params['learning_rate']:10.5f}   balanced accuracy"
            f" {trial.value:.4f}"
        )
    Path(folder).mkdir(parents=True, exist_ok=True)
    for trial in study.trials[2:]:
        picture = scrimp.plots.surrogate(study, "learning_rate", iteration=trial.id)
        picture.write_html(
            Path(folder) / f"learning-rate-{trial.id - 1:02d}.html", include_plotlyjs="directory"
        )
    print(f"best: {study.best_params} with {study.best_value:.4f}; pictures are in {folder}/")


if __name__ == "__main__":
    main(*sys.argv[1:])
