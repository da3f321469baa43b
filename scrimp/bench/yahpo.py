"""YAHPO Gym surrogates: a network that answers for any configuration, stored as an ONNX graph in
JSON with its weights.

The file is a `.npz` whose ``meta`` holds the graph (``nodes``: operation, inputs, outputs,
attributes), the hyperparameters, which inputs are categories (``cat_names`` with their
``encoding``) and numbers (``cont_names``), and the outputs (``y_names``); arrays ``p:NAME`` are its
weights. It is evaluated with NumPy alone.

    network = read_yahpo("lcbench_yahpo.npz")
    network.space                                            # without the task and the epoch
    # {"val_accuracy": (n, 2), "time": (n, 2), ...}
    network.outputs("3945", configs, epochs=[10, 50])

Pfisterer, Schneider, Moosbauer, Binder and Bischl, "YAHPO Gym", 2022.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.tables import described_space, meta_of
from scrimp.checks import check_known
from scrimp.errors import TableError
from scrimp.json_values import Config
from scrimp.space.space import Space

Array = NDArray[Any]
Node = tuple[str, Sequence[str], Sequence[str], Mapping[str, Any]]

_KINDS = {1: np.float32, 6: np.int32, 7: np.int64, 9: np.bool_, 11: np.float64}
"""The types of elements by their numbers in ONNX."""


def _divide(left: Array, right: Array) -> Array:
    return np.asarray(
        left // right if np.issubdtype(np.asarray(left).dtype, np.integer) else left / right
    )


def _slice(data: Array, starts: Array, ends: Array, axes: Array) -> Array:
    window = [slice(None)] * data.ndim
    for start, end, axis in zip(np.ravel(starts), np.ravel(ends), np.ravel(axes), strict=True):
        window[int(axis)] = slice(int(start), int(end))
    return data[tuple(window)]


def _normalize(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    data, scale, bias, mean, variance = inputs
    return (data - mean) / np.sqrt(variance + np.float32(attributes["epsilon"])) * scale + bias


_OPERATIONS: dict[str, Callable[[Sequence[Array], Mapping[str, Any]], Array]] = {
    "Add": lambda x, _: x[0] + x[1],
    "BatchNormalization": _normalize,
    "Cast": lambda x, a: np.asarray(x[0]).astype(_KINDS[a["to"]]),
    "Concat": lambda x, a: np.concatenate(x, axis=a["axis"]),
    "Div": lambda x, _: _divide(x[0], x[1]),
    "Exp": lambda x, _: np.exp(x[0]),
    "Gather": lambda x, a: np.take(x[0], np.asarray(x[1], dtype=np.int64), axis=a.get("axis", 0)),
    "Gemm": lambda x, a: x[0] @ (x[1].T if a.get("transB") else x[1]) + x[2],
    "Log": lambda x, _: np.log(x[0]),
    "Max": lambda x, _: np.maximum(x[0], x[1]),
    "Min": lambda x, _: np.minimum(x[0], x[1]),
    "Mul": lambda x, _: x[0] * x[1],
    "Neg": lambda x, _: -x[0],
    "Relu": lambda x, _: np.maximum(x[0], 0),
    "Round": lambda x, _: np.round(x[0]),
    "Shape": lambda x, _: np.array(np.shape(x[0]), dtype=np.int64),
    "Sigmoid": lambda x, _: 1 / (1 + np.exp(-x[0])),
    "Slice": lambda x, _: _slice(x[0], x[1], x[2], x[3]),
    "Sub": lambda x, _: x[0] - x[1],
    "Unsqueeze": lambda x, _: np.expand_dims(x[0], tuple(int(axis) for axis in np.ravel(x[1]))),
}


def evaluate_graph(nodes: Sequence[Node], values: Mapping[str, Array]) -> Array:
    """Run ``nodes`` in order on the arrays in ``values``; return the array "output"."""
    known = dict(values)
    for operation, inputs, outputs, attributes in nodes:
        check_known("operation", [operation], _OPERATIONS, TableError, "for graphs")
        known[outputs[0]] = _OPERATIONS[operation]([known[name] for name in inputs], attributes)
    return known["output"]


@dataclass(frozen=True, eq=False)
class Network:
    """A surrogate file. ``tasks`` are those meant for use, of all in ``encoding``."""

    name: str
    space: Space
    tasks: tuple[str, ...]
    meta: Mapping[str, Any]
    weights: Mapping[str, Array]

    def check_task(self, task: str) -> None:
        """`TableError` for a task the network does not know."""
        if task not in self.meta["encoding"][self.meta["task_name"]]:
            check_known("task", [task], self.tasks, TableError, f"in surrogate {self.name!r}")

    def outputs(
        self, task: str, configs: Sequence[Config], epochs: Sequence[float]
    ) -> dict[str, Array]:
        """Return each output (n, e) of n configurations after e budgets, float32 as in the graph."""
        fidelity, encoding = self.meta["fidelity"][0], self.meta["encoding"]
        shape = (len(configs), len(epochs))
        numbers = np.empty((*shape, len(self.meta["cont_names"])), dtype=np.float32)
        for k, name in enumerate(self.meta["cont_names"]):
            column = (
                [epochs] if name == fidelity else [[config.get(name, 0.0)] for config in configs]
            )
            numbers[..., k] = np.asarray(column, dtype=float)
        categories = np.empty((*shape, len(self.meta["cat_names"])), dtype=np.int32)
        for k, name in enumerate(self.meta["cat_names"]):
            texts = [
                task if name == self.meta["task_name"] else str(config.get(name, "#na#"))
                for config in configs
            ]
            categories[..., k] = np.array([[encoding[name].get(text, 0)] for text in texts])
        rows = len(configs) * len(epochs)
        inputs = {"x_cat": categories.reshape(rows, -1), "x_cont": numbers.reshape(rows, -1)}
        with np.errstate(over="ignore"):  # sigmoids of large numbers
            found = evaluate_graph(self.meta["nodes"], {**self.weights, **inputs})
        return {name: found[:, k].reshape(shape) for k, name in enumerate(self.meta["y_names"])}


def is_yahpo(path: str | Path) -> bool:
    """Return True if the file is a surrogate rather than a table."""
    return "nodes" in meta_of(path)


def read_yahpo(path: str | Path) -> Network:
    """The surrogate in a file; `TableError` says what does not follow the format."""
    with np.load(path, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        weights = {name[2:]: file[name] for name in file.files if name.startswith("p:")}
    names = (
        "scenario", "hyperparameters", "cat_names", "cont_names", "y_names", "encoding", "fidelity",
        "task_name",
    )  # fmt: skip
    for name in names:
        if name not in meta:
            raise TableError(
                f"surrogate {str(path)!r}: meta has no {name!r}; it must give {', '.join(names)}"
            )
    space = described_space(searched_parameters(meta))
    tasks = tuple(str(task) for task in meta.get("visible_tasks", ()))
    return Network(Path(path).stem, space, tasks, meta, weights)


def searched_parameters(meta: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The description of the space: all hyperparameters but the task and the budget."""
    searched = [
        item
        for item in meta["hyperparameters"]
        if item["name"] not in (meta["task_name"], *meta["fidelity"])
    ]
    when = {item["child"]: item for item in meta.get("conditions", ())}
    return [_described(item, when.get(item["name"])) for item in searched]


def _described(item: Mapping[str, Any], condition: Mapping[str, Any] | None) -> dict[str, Any]:
    """A hyperparameter as the description of a parameter."""
    described = {"name": item["name"]}
    if item["type"] == "categorical":
        described |= {"type": "choice", "choices": item["choices"]}
    else:
        kind = {"uniform_int": "int", "uniform_float": "float"}.get(item["type"], item["type"])
        described |= {"type": kind, "low": item["lower"], "high": item["upper"], "log": item["log"]}
    if condition is not None:
        values = condition.get("values", [condition.get("value")])
        described["when"] = {condition["parent"]: values[0] if len(values) == 1 else values}
    return described
