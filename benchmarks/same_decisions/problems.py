"""Made spaces, trainings, tables and scores: small, without chance, and quick to evaluate."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from spellings import scrimp

Params = dict[str, Any]


def mixed() -> Any:
    """Every kind of parameter, with a condition and a constant."""
    return scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True),
        layers=scrimp.Int(1, 8),
        width=scrimp.Ordinal([64, 128, 256, 512]),
        optimizer=scrimp.Categorical(["adamw", "sgd", "lion"]),
        momentum=scrimp.Float(0.0, 0.99, when={"optimizer": "sgd"}),
        dropout=scrimp.Float(0.0, 0.5, step=0.1),
        batch=32,
    )


def numbers() -> Any:
    """Three numbers without conditions."""
    return scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True), x=scrimp.Float(-1, 1), y=scrimp.Float(0, 2)
    )


def guessed() -> Any:
    """Parameters of which the user has a guess."""
    return scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True, prior=(1e-3, "medium")),
        layers=scrimp.Int(1, 8, prior=(3, "low")),
        optimizer=scrimp.Categorical(["adamw", "sgd", "lion"], prior=("lion", "high")),
        x=scrimp.Float(-1, 1),
    )


def nested() -> Any:
    """Conditions under conditions."""
    return scrimp.Space(
        kind=scrimp.Categorical(["linear", "mlp", "cnn"]),
        layers=scrimp.Int(1, 6, when={"kind": ["mlp", "cnn"]}),
        kernel_size=scrimp.Ordinal([3, 5, 7], when={"kind": "cnn"}),
        skip=scrimp.Categorical([True, False], when={"kind": "cnn", "layers": [4, 5, 6]}),
        lr=scrimp.Float(1e-5, 1e-1, log=True),
    )


def discrete() -> Any:
    """A few dozen configurations."""
    return scrimp.Space(
        layers=scrimp.Int(1, 4),
        width=scrimp.Ordinal([64, 128, 256]),
        optimizer=scrimp.Categorical(["adamw", "sgd"]),
        units=scrimp.Int(8, 32, step=8),
    )


def grown() -> Any:
    """The numbers with wider bounds and one parameter more."""
    return scrimp.Space(
        lr=scrimp.Float(1e-6, 1.0, log=True),
        x=scrimp.Float(-2, 1),
        y=scrimp.Float(0, 2),
        dropout=scrimp.Float(0.0, 0.5, default=0.0),
    )


def wider() -> Any:
    """A space that shares a part of its parameters with the mixed one."""
    return scrimp.Space(
        lr=scrimp.Float(1e-6, 1.0, log=True),
        layers=scrimp.Int(1, 12),
        optimizer=scrimp.Categorical(["adamw", "sgd", "adagrad"]),
        x=scrimp.Float(-1, 1),
    )


def pool(space: Any, size: int) -> Any:
    """A list of configurations of a space."""
    return scrimp.Pool(space, space.sample(size, np.random.default_rng(7)))


def floor_of(params: Params, shift: float = 0.0) -> float:
    """The loss at the end of an endless training; ``shift`` makes another data set of it."""
    total = 0.08
    if "lr" in params:
        total += 0.06 * (math.log10(params["lr"]) + 2.7 + shift) ** 2
    if "layers" in params:
        total += 0.01 * (params["layers"] - 4 + shift) ** 2
    if "width" in params:
        total += 4.0 / params["width"] + params["width"] / 9000.0
    if "units" in params:
        total += 0.002 * abs(params["units"] - 20)
    total += {"adamw": 0.0, "sgd": 0.03, "lion": 0.05}.get(params.get("optimizer"), 0.02)
    if "momentum" in params:
        total += 0.1 * (params["momentum"] - 0.9) ** 2 - 0.02
    if "dropout" in params:
        total += 0.3 * (params["dropout"] - 0.2) ** 2
    if "x" in params:
        total += 0.1 * (params["x"] - 0.3 - 0.3 * shift) ** 2 + 0.02 * math.sin(7 * params["x"])
    if "y" in params:
        total += 0.07 * (params["y"] - 0.6) ** 2 * (1.5 + params.get("x", 0.0))
    total += {"linear": 0.2, "mlp": 0.05, "cnn": 0.0}.get(params.get("kind"), 0.0)
    if "kernel_size" in params:
        total += 0.01 * params["kernel_size"]
    return total - (0.03 if params.get("skip") is True else 0.0)


def metrics_after(params: Params, step: float = 100.0, shift: float = 0.0) -> dict[str, float]:
    """All that a training reports after ``step`` units: two metrics to trade off, a third, a cost."""
    floor = floor_of(params, shift)
    pace = 0.4 + 0.15 * (math.log10(params.get("lr", 1e-3)) + 5.0)
    size = params.get("width", 128) * params.get("layers", 3) / 512.0
    wobble = 0.004 * math.sin(5.0 * step + 40.0 * floor)
    error = floor + 0.7 * step**-pace + wobble
    latency = 1.0 + size + 0.5 * abs(params.get("x", 0.0)) + 2.0 * params.get("dropout", 0.0)
    return {
        "val_error": error,
        "latency": latency,
        "memory": 2.0 + 3.0 * size + 0.5 * params.get("y", 0.0),
        "balance": 0.5 + 0.1 * (math.log10(params.get("lr", 1e-3)) + 3.0),
        "energy": latency * step * 0.1,
        "dollars": 0.2 + size + params.get("y", 0.0),
    }


def length_of(params: Params) -> int:
    """The step after which a training ends by itself, where it does."""
    return 3 + 2 * params.get("layers", 4)


def seconds_of(params: Params) -> float:
    """The time that one step takes."""
    return 0.5 + params.get("width", 128) / 128.0 + 0.3 * params.get("layers", 1)


def noise(number: int, step: float = 1.0) -> float:
    """A disturbance that looks like chance, the same in every run."""
    return math.modf(math.sin(12.9898 * (number + 1) + 78.233 * step) * 43758.5453)[0]


def curve_table(folder: Path, *, timed: bool, ending: bool = False) -> Path:
    """A table of training runs, two tasks, some of which diverge, or end early (``ending``)."""
    space, levels = mixed(), 9
    rows = space.sample(48, np.random.default_rng(3))
    configs, value, elapsed = [], np.zeros((2, 48, levels)), np.zeros((2, 48, levels))
    choices = {"width": [64, 128, 256, 512], "optimizer": ["adamw", "sgd", "lion"]}
    names = ["lr", "layers", "width", "optimizer", "momentum", "dropout"]
    for number, params in enumerate(rows):
        raw = [params.get(name, math.nan) for name in names]
        configs.append(
            [
                float(choices[name].index(one) if name in choices else one)
                for name, one in zip(names, raw, strict=True)
            ]
        )
        for task, shift in enumerate((0.0, 0.4)):
            for level in range(levels):
                after = metrics_after(params, level + 1.0, shift)["val_error"]
                diverged = params["lr"] > 0.05 and level > 3
                value[task, number, level] = math.nan if diverged else after
                elapsed[task, number, level] = (level + 1) * seconds_of(params)
    listed = [
        {"name": "lr", "type": "float", "low": 1e-5, "high": 1e-1, "log": True},
        {"name": "layers", "type": "int", "low": 1, "high": 8},
        {"name": "width", "type": "ordinal", "choices": choices["width"]},
        {"name": "optimizer", "type": "choice", "choices": choices["optimizer"]},
        {
            "name": "momentum",
            "type": "float",
            "low": 0.0,
            "high": 0.99,
            "when": {"optimizer": "sgd"},
        },
        {"name": "dropout", "type": "float", "low": 0.0, "high": 0.5},
    ]
    meta = {
        "format": 1,
        "name": "made",
        "metric": "val_error",
        "goal": "min",
        "space": listed,
        "budget": {"name": "epoch", "levels": list(range(1, levels + 1))},
    }
    arrays = {"elapsed": elapsed} if timed else {}
    if ending:
        ends = np.array([min(levels, length_of(params) - 2) for params in rows])
        value[:, np.arange(levels)[None, :] >= ends[:, None]] = math.nan
        arrays["end"] = np.stack([ends, ends])
    path = folder / "made.npz"
    np.savez(
        path,
        meta=json.dumps(meta),
        tasks=["first", "second"],
        configs=np.array(configs),
        value=value,
        **arrays,
    )
    return path


TASKS = ["arc", "gsm8k", "hellaswag", "mmlu", "piqa", "wikitext"]
_LEVELS = dict(zip(TASKS, (0.40, 0.10, 0.50, 0.30, 0.60, 0.20), strict=True))


def score_of(place: float, task: str) -> float:
    """The score of a checkpoint at ``place`` (0 to 1) of a run on one task."""
    bend = 1.2 + 0.1 * TASKS.index(task)
    luck = 0.006 * noise(round(1000 * place), TASKS.index(task) + 1.0)
    return _LEVELS[task] + 0.3 * place * (bend - place) + luck
