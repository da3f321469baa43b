"""Error against size: the whole trade-off of a small network on the digits, and three ways to choose.

    python examples/trade_off.py

Needs scikit-learn. A trial trains for up to 27 epochs and reports two metrics after each: the error
on held-out digits, and how many weights the network has, which does not change.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import scrimp

SPACE = scrimp.Space(
    width=scrimp.Int(2, 64, log=True),
    layers=scrimp.Int(1, 2),
    lr=scrimp.Float(1e-4, 1e-1, log=True),
)


def objective(trial):
    x, y = load_digits(return_X_y=True)
    parts = train_test_split(x / 16.0, y, test_size=0.5, random_state=0, stratify=y)
    train_x, test_x, train_y, test_y = parts
    shape = (trial.params["width"],) * trial.params["layers"]
    model = MLPClassifier(shape, learning_rate_init=trial.params["lr"], random_state=0)
    # A trial that continues trains again up to where it was: so small a network needs no checkpoint.
    done = 0
    for epoch in trial.steps():
        while done < epoch:
            model.partial_fit(train_x, train_y, classes=np.arange(10))
            done += 1
        weights = sum(matrix.size for matrix in model.coefs_)
        trial.report(error=1.0 - model.score(test_x, test_y), weights=weights)


def main(n_trials=40):
    study = scrimp.create_study(
        "trade-off",
        SPACE,
        metrics={"error": "minimize", "weights": "minimize"},
        reference={"error": 0.9, "weights": 10_000},
        goals={"error": 0.02},
        budget=scrimp.Budget("epoch", 1, 27),
        storage="memory://",
        seed=0,
    )
    study.optimize(objective, n_trials=n_trials)
    for trial, report in study.front:
        error, weights = report.metrics["error"], report.metrics["weights"]
        print(f"error {error:.3f}  weights {weights:6.0f}  {trial.params}")
    print("the knee:", study.knee[0].params)
    print("error counts most:", study.best(weights={"error": 3, "weights": 1})[0].params)
    print("hypervolume:", round(study.hypervolume(), 1))


if __name__ == "__main__":
    main()
