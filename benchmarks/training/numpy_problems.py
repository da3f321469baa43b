"""Define three problems of training that take milliseconds a unit and need nothing but NumPy.

    teacher        regression: a network learns the outputs of another, noisy one
    autoencoder    a network compresses sums of random bumps
    bytes          the next byte of Python's standard library from the eight before

Each has 13 parameters, mixed and conditional, and 27 units. `training_problems` describes what a
problem is. Rules of scrimp may be chosen on these problems.
"""

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.training.training_problems import (
    Config,
    Problem,
    State,
    capped,
    choice,
    number,
)

Array = np.ndarray
UNITS = 27
STEPS = 12
"""Steps of the optimizer in a unit."""

SPACE = [
    number("lr", 1e-4, 1.0, log=True),
    choice("optimizer", "adam", "rmsprop", "sgd"),
    number("momentum", 0.0, 0.99, optimizer="sgd"),
    choice("beta2", 0.9, 0.99, 0.999, ordinal=True) | {"when": {"optimizer": "adam"}},
    number("decay", 1e-6, 1.0, log=True),
    choice("schedule", "constant", "linear", "steps"),
    number("warmup", 0.0, 0.3),
    choice("width", 8, 16, 32, 64, ordinal=True),
    number("layers", 1, 3, kind="int"),
    number("dropout", 0.0, 0.6),
    choice("activation", "relu", "tanh", "sine"),
    number("scale", 0.1, 4.0, log=True),
    choice("batch", 4, 8, 16, 32, 64, ordinal=True),
]

ACTIVATIONS: dict[str, Any] = {
    "relu": (lambda a: np.maximum(a, 0.0), lambda a: (a > 0.0).astype(float)),
    "tanh": (np.tanh, lambda a: 1.0 - np.tanh(a) ** 2),
    "sine": (np.sin, np.cos),
}


def start(config: Config, seed: int, inputs: int, outputs: int) -> State:
    """Return an untrained network."""
    rng = np.random.default_rng([seed, 1])
    sizes = [inputs, *[config["width"]] * config["layers"], outputs]
    weights = []
    for before, after in pairwise(sizes):
        matrix = rng.normal(0.0, config["scale"] / np.sqrt(before), (before, after))
        weights += [matrix, np.zeros(after)]
    zeros = [np.zeros_like(weight) for weight in weights]
    moments = [*zeros, *[zero.copy() for zero in zeros]]
    return {"config": config, "seed": seed, "unit": 0, "weights": weights, "moments": moments}


def outputs_of(state: State, x: Array, drop: np.random.Generator | None = None) -> Any:
    """Return the outputs for x (n, i), and what the gradient needs; with ``drop`` units are dropped."""
    config, weights = state["config"], state["weights"]
    function, kept = ACTIVATIONS[config["activation"]][0], []
    for layer in range(0, len(weights) - 2, 2):
        inner = x @ weights[layer] + weights[layer + 1]
        mask = np.ones_like(inner)
        if drop is not None and config["dropout"] > 0.0:
            mask = (drop.random(inner.shape) >= config["dropout"]) / (1.0 - config["dropout"])
        kept.append((x, inner, mask))
        x = function(inner) * mask
    kept.append((x, None, None))
    return x @ weights[-2] + weights[-1], kept


def gradient(state: State, kept: Any, d_out: Array) -> list[Array]:
    """Return the gradient of all weights from that of the outputs (n, o)."""
    weights, slope = state["weights"], ACTIVATIONS[state["config"]["activation"]][1]
    found: list[Array] = []
    for layer in range(len(weights) - 2, -1, -2):
        x = kept[layer // 2][0]
        found = [x.T @ d_out, d_out.sum(axis=0), *found]
        if layer:
            _, inner, mask = kept[layer // 2 - 1]
            d_out = (d_out @ weights[layer].T) * mask * slope(inner)
    return found


def step(state: State, slopes: list[Array], rate: float, count: int) -> None:
    """Move the weights by one step of the optimizer, the ``count``-th one."""
    config, weights, moments = state["config"], state["weights"], state["moments"]
    half = len(weights)
    for place, (weight, slope) in enumerate(zip(weights, slopes, strict=True)):
        first, second = moments[place], moments[half + place]
        if config["optimizer"] == "sgd":
            first *= config["momentum"]
            first += slope + config["decay"] * weight
            weight -= rate * first
            continue
        beta1 = 0.9 if config["optimizer"] == "adam" else 0.0
        beta2 = config.get("beta2", 0.99)
        first *= beta1
        first += (1.0 - beta1) * slope
        second *= beta2
        second += (1.0 - beta2) * slope**2
        corrected = np.sqrt(second / (1.0 - beta2**count)) + 1e-8
        weight -= 0.1 * rate * (first / (1.0 - beta1**count) / corrected + config["decay"] * weight)


def rate_of(config: Config, done: float) -> float:
    """Return the learning rate after the share ``done`` of the training."""
    rate = config["lr"] * min(1.0, (done + 1e-3) / max(config["warmup"], 1e-3))
    if config["schedule"] == "linear":
        return float(rate * (1.0 - done))
    return float(rate * 0.1 ** int(3 * done)) if config["schedule"] == "steps" else float(rate)


def train(state: State, data: Any, loss: Any) -> tuple[State, float]:
    """Train one unit. ``loss``: outputs and truth to the mean loss and its gradient."""
    train_x, train_y, valid_x, valid_y = data
    config, unit = state["config"], state["unit"]
    rng = np.random.default_rng([state["seed"], 1000 + unit])
    with np.errstate(all="ignore"):
        for number_ in range(STEPS):
            rows = rng.integers(len(train_x), size=config["batch"])
            out, kept = outputs_of(state, train_x[rows], rng)
            slopes = gradient(state, kept, loss(out, train_y[rows])[1])
            count = unit * STEPS + number_ + 1
            step(state, slopes, rate_of(config, (count - 1) / (UNITS * STEPS)), count)
        state["unit"] += 1
        validation = loss(outputs_of(state, valid_x)[0], valid_y)[0]
    return state, capped(validation)


def squared(out: Array, truth: Array) -> tuple[float, Array]:
    """Return the mean squared error and its gradient."""
    off = out - truth
    return float((off**2).mean()), 2.0 * off / off.size


def cross_entropy(out: Array, truth: Array) -> tuple[float, Array]:
    """Return the mean cross-entropy of classes (n,) and its gradient."""
    shifted = out - out.max(axis=1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows = np.arange(len(truth))
    slope = np.exp(logs)
    slope[rows, truth] -= 1.0
    return float(-logs[rows, truth].mean()), slope / len(truth)


@cache
def teacher_data() -> Any:
    """Return inputs and noisy outputs of a random network."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(768, 12))
    hidden = np.tanh(x @ rng.normal(0.0, 0.7, (12, 24)))
    y = np.sin(hidden @ rng.normal(0.0, 0.6, (24, 2)))
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    noisy = y + rng.normal(0.0, 0.3, y.shape)
    return x[:512], noisy[:512], x[512:], y[512:]


@cache
def bump_data() -> Any:
    """Return sums of three random bumps on 48 points, as inputs and as outputs."""
    rng = np.random.default_rng(12)
    places, widths = rng.random((768, 3, 1)), rng.uniform(0.03, 0.12, (768, 3, 1))
    heights = rng.uniform(-1.0, 1.0, (768, 3, 1))
    grid = np.linspace(0.0, 1.0, 48)
    x = (heights * np.exp(-(((grid - places) / widths) ** 2))).sum(axis=1)
    x /= x.std()
    return x[:512], x[:512], x[512:], x[512:]


@cache
def byte_data() -> Any:
    """Return windows of eight bytes, each as six bits, and the byte that follows."""
    import argparse
    import inspect

    source = inspect.getsource(argparse).encode()[:24_000]
    common = sorted(set(source), key=lambda byte: -source.count(byte))[:40]
    codes = np.array([common.index(byte) if byte in common else 40 for byte in source])
    bits = (codes[:, None] >> np.arange(6)) & 1
    windows = np.lib.stride_tricks.sliding_window_view(bits, 8, axis=0)[:-1]
    x = windows.reshape(len(windows), -1) * 2.0 - 1.0
    y, rng = codes[8:], np.random.default_rng(13)
    order = rng.permutation(len(x))
    return x[order[:8000]], y[order[:8000]], x[order[8000:9000]], y[order[8000:9000]]


NUMPY_PROBLEMS = {
    "teacher": Problem(
        SPACE,
        lambda config, seed: start(config, seed, 12, 2),
        lambda state: train(state, teacher_data(), squared),
        UNITS,
    ),
    "autoencoder": Problem(
        SPACE,
        lambda config, seed: start(config, seed, 48, 48),
        lambda state: train(state, bump_data(), squared),
        UNITS,
    ),
    "bytes": Problem(
        SPACE,
        lambda config, seed: start(config, seed, 48, 41),
        lambda state: train(state, byte_data(), cross_entropy),
        UNITS,
    ),
}
