"""The main job in one file: tune a neural network on handwritten digits over epochs, with two
worker processes.

Run it with ``make demo``. Most configurations are given up after an epoch or a few; only the
promising ones are trained to the end, each from its own checkpoint. It writes to scrimp.db;
interrupt it and run it again, and it resumes where it was.
"""

import os
import pickle
import sys
import warnings

import scrimp

EPOCHS = 27
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


def objective(trial):
    """Train one network for as many epochs as it is granted, and report its error on held-out
    digits after each."""
    import numpy as np
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    warnings.simplefilter("ignore")  # networks that diverge say so in their error
    images, labels = load_digits(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        images / 16.0, labels, test_size=0.4, random_state=0, stratify=labels
    )
    checkpoint = trial.checkpoint_dir / "network.pickle"
    network = pickle.loads(checkpoint.read_bytes()) if trial.resumed else build(trial.params)
    for _ in trial.steps():
        network.partial_fit(train_x, train_y, classes=np.arange(10))
        checkpoint.write_bytes(pickle.dumps(network))
        trial.report(error=1.0 - network.score(test_x, test_y))


def build(params):
    """Return an untrained network."""
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=(params["hidden"],) * params["layers"],
        activation=params["activation"],
        solver=params["solver"],
        momentum=params.get("momentum", 0.9),
        learning_rate_init=params["learning_rate"],
        alpha=params["weight_decay"],
        batch_size=params["batch_size"],
        random_state=0,
    )


def main() -> None:
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    study = scrimp.create_study(
        "digits",
        SPACE,
        metric="error",
        budget=scrimp.Budget("epoch", 1, EPOCHS),
        method="auto",
        storage="sqlite:///scrimp.db",
        load_if_exists=True,
        seed=0,
    )
    before = len(study.trials)
    print(
        f"tuning over epochs with {study.method}"
        + (f"; {before} trials are there already" if before else "")
    )
    study.optimize(objective, n_trials=trials, workers=2)
    tell(study, trials)


def tell(study, trials) -> None:
    """Print what was found and what it cost."""
    best, point = study.best()
    print(f"\nbest validation error {study.best_value:.4f}: trial {best.id}", end="")
    print(f" after {point.step:g} epochs")
    print("\nthe best five configurations:\n  trial   error  epochs  parameters")
    tried = [trial for trial in study.trials if trial.best is not None]
    for trial in sorted(tried, key=lambda trial: trial.best)[:5]:
        params = "  ".join(
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in trial.params.items()
        )
        print(f"  {trial.id:>5}  {trial.best:.4f}  {trial.budget:>6g}  {params}")

    count = len(study.trials)
    print(f"\n{count} configurations, epochs trained by each:")
    for least, most in ((0, 1), (2, 3), (4, 9), (10, EPOCHS - 1), (EPOCHS, EPOCHS)):
        some = sum(least <= trial.budget <= most for trial in study.trials)
        label = f"{most}" if most - least < 1 or most == 1 else f"{least}-{most}"
        print(f"  {label:>6} {'#' * some} {some}")
    print(f"{study.history.spent:g} epochs instead of {count * EPOCHS} without early stopping")
    print(f"checkpoint of the best network: {os.path.relpath(study.best_checkpoint)}")

    command = os.path.relpath(os.path.join(os.path.dirname(sys.executable), "scrimp"))
    print(f"\nnext:\n  {command} show digits        the trials, best first")
    print(f"  {command} explain digits     why the best one was chosen and trained so long")
    print(f"  make demo TRIALS={trials + 20}             continue with 20 more trials")
    print(f"  {command} dashboard          all of it in a browser")


if __name__ == "__main__":
    main()
