"""A training script that knows nothing of tuning but five calls: a small network on handwritten
digits, in NumPy.

Run by scrimp (see study.toml) it gets its parameters as arguments, resumes from its checkpoint, and
reports each epoch. Run by hand it simply trains: python examples/train_script.py --lr 0.1 --hidden
64 --batch 32
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits

from scrimp import script


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--decay", type=float, default=0.0)
    settings = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    images, targets = images / 16.0, np.eye(10)[labels]
    train, test = np.arange(len(images)) % 3 > 0, np.arange(len(images)) % 3 == 0

    checkpoint = script.checkpoint_dir() / "network.npz"
    if script.resumed():
        network = dict(np.load(checkpoint))
    else:
        rng = np.random.default_rng(0)
        network = {
            "w1": rng.normal(0.0, 0.1, (64, settings.hidden)),
            "w2": rng.normal(0.0, 0.1, (settings.hidden, 10)),
        }

    for epoch in script.steps(last=27):
        train_epoch(network, images[train], targets[train], settings, np.random.default_rng(epoch))
        error = float(np.mean(outputs(network, images[test])[1].argmax(1) != labels[test]))
        np.savez(checkpoint, **network)  # before the report, which keeps it
        if not script.report(val_error=error):
            break


def outputs(network, images):
    """Activations of the hidden layer, and class probabilities."""
    hidden = np.tanh(images @ network["w1"])
    scores = hidden @ network["w2"]
    exponents = np.exp(scores - scores.max(1, keepdims=True))
    return hidden, exponents / exponents.sum(1, keepdims=True)


def train_epoch(network, images, targets, settings, rng) -> None:
    """One pass of stochastic gradient descent on the cross entropy."""
    order = rng.permutation(len(images))
    for start in range(0, len(order), settings.batch):
        rows = order[start : start + settings.batch]
        hidden, predicted = outputs(network, images[rows])
        error = (predicted - targets[rows]) / len(rows)
        slopes = (error @ network["w2"].T) * (1.0 - hidden**2)
        network["w2"] -= settings.lr * (hidden.T @ error + settings.decay * network["w2"])
        network["w1"] -= settings.lr * (images[rows].T @ slopes + settings.decay * network["w1"])


if __name__ == "__main__":
    main()
