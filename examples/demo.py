"""The main job in one file: tune a neural network on handwritten digits with two worker processes.

Run it with ``make demo``. It writes to scrimp.db; interrupt it and run it again, and it goes on where it was.
"""

import os
import sys
import warnings

import scrimp

SPACE = scrimp.Space(
    learning_rate=scrimp.Float(1e-4, 1e-1, log=True),
    hidden=scrimp.Int(8, 128, log=True),
    layers=scrimp.Int(1, 3),
    activation=scrimp.Categorical(["relu", "tanh", "logistic"]),
    solver=scrimp.Categorical(["adam", "sgd"]),
    momentum=scrimp.Float(0.0, 0.99, when={"solver": "sgd"}),
    weight_decay=scrimp.Float(1e-7, 1e-1, log=True),
    batch_size=scrimp.Ordinal([16, 32, 64, 128, 256]),
)


def validation_error(trial):
    """Train one network and return its error on held-out digits."""
    from sklearn.datasets import load_digits
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    params = trial.params
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.4, random_state=0, stratify=labels
    )
    network = MLPClassifier(
        hidden_layer_sizes=(params["hidden"],) * params["layers"],
        activation=params["activation"],
        solver=params["solver"],
        momentum=params.get("momentum", 0.9),
        learning_rate_init=params["learning_rate"],
        alpha=params["weight_decay"],
        batch_size=params["batch_size"],
        max_iter=12,
        random_state=0,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        network.fit(train_x, train_y)
    return 1.0 - network.score(test_x, test_y)


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    study = scrimp.create_study(
        "digits", SPACE, metric="error", storage="sqlite:///scrimp.db", load_if_exists=True, seed=0
    )
    before = len(study.trials)
    if before:
        print(f"resuming study 'digits': {before} of {trials} trials are there already")
    study.optimize(validation_error, n_trials=trials, workers=2)

    history = study.history
    spent = sum(trial.cost or 0.0 for trial in history.trials)
    print(
        f"\nbest validation error {study.best_value:.4f} after {len(history.trials)} trials ({history.counts['failed']} failed)"
    )
    for name, value in study.best_params.items():
        print(f"  {name:>14} = {value:.4g}" if isinstance(value, float) else f"  {name:>14} = {value}")
    print(f"training took {spent:.1f} s of worker time; everything is in scrimp.db")
    print("\nnext:")
    command = os.path.join(os.path.dirname(sys.executable), "scrimp")
    print(f"  {os.path.relpath(command)} show digits            all trials")
    print(f"  {os.path.relpath(command)} best digits --json     the best configuration, for programs")
    print(f"  make demo TRIALS={trials + 20}             go on with 20 more trials")


if __name__ == "__main__":
    main()
