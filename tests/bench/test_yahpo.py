"""The surrogate reader: each operation, a small graph worked by hand, and the real network against
its own evaluator."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.yahpo import evaluate_graph, is_yahpo, read_yahpo
from scrimp.errors import TableError

X = np.array([[1.0, -2.0], [3.0, 4.0]], dtype=np.float32)
W = np.array([[1.0, 2.0], [0.5, -1.0]], dtype=np.float32)
B = np.array([10.0, 20.0], dtype=np.float32)


def one(operation, inputs, attributes=None):
    names = [f"i{k}" for k in range(len(inputs))]
    return evaluate_graph(
        [(operation, names, ["output"], attributes or {})], dict(zip(names, inputs, strict=True))
    )


@pytest.mark.parametrize(
    ("operation", "inputs", "attributes", "expected"),
    [
        ("Add", (X, B), {}, X + B),
        ("Sub", (X, B), {}, X - B),
        ("Mul", (X, B), {}, X * B),
        ("Div", (X, B), {}, X / B),
        ("Div", (np.array([7]), np.array([2])), {}, [3]),  # whole numbers are divided as such
        ("Neg", (X,), {}, -X),
        ("Exp", (X,), {}, np.exp(X)),
        ("Log", (B,), {}, np.log(B)),
        ("Round", (np.array([1.4, 2.6]),), {}, [1.0, 3.0]),
        ("Max", (X, np.zeros(2)), {}, [[1, 0], [3, 4]]),
        ("Min", (X, np.zeros(2)), {}, [[0, -2], [0, 0]]),
        ("Relu", (X,), {}, [[1, 0], [3, 4]]),
        ("Sigmoid", (np.array([0.0, np.log(3.0)]),), {}, [0.5, 0.75]),
        ("Gemm", (X, W, B), {"transB": 1}, X @ W.T + B),
        ("Gemm", (X, W, B), {}, X @ W + B),
        ("Gather", (X, np.array(1)), {"axis": 1}, X[:, 1]),
        ("Gather", (X, np.array([1, 0])), {}, X[[1, 0]]),
        ("Concat", (X, X), {"axis": 1}, np.hstack([X, X])),
        ("Cast", (np.array([1.7]),), {"to": 7}, [1]),
        ("Shape", (X,), {}, [2, 2]),
        ("Slice", (X, np.array([0]), np.array([1]), np.array([1])), {}, X[:, :1]),
        ("Unsqueeze", (B, np.array([1])), {}, B[:, None]),
        (
            "BatchNormalization",
            (X, B, B, W[0], W[0]),
            {"epsilon": 0.0},
            (X - W[0]) / np.sqrt(W[0]) * B + B,
        ),
    ],
)
def test_operations(operation, inputs, attributes, expected):
    np.testing.assert_allclose(one(operation, inputs, attributes), expected, rtol=1e-6)


def test_an_unknown_operation_is_named():
    with pytest.raises(TableError, match="'Conv'"):
        one("Conv", (X,))


@pytest.fixture
def small(tmp_path):
    """accuracy = bias of the task + lr * epoch."""
    meta = {
        "scenario": "small",
        "nodes": [
            ["Gather", ["bias", "x_cat"], ["b"], {}],
            ["Gather", ["b", "zero"], ["task"], {"axis": 1}],
            ["Gather", ["x_cont", "zero"], ["epoch"], {"axis": 1}],
            ["Gather", ["x_cont", "one"], ["lr"], {"axis": 1}],
            ["Mul", ["epoch", "lr"], ["gain"], {}],
            ["Add", ["task", "gain"], ["y"], {}],
            ["Unsqueeze", ["y", "axis"], ["output"], {}],
        ],
        "hyperparameters": [
            {"name": "task", "type": "categorical", "choices": ["a", "b"]},
            {"name": "epoch", "type": "uniform_int", "lower": 1, "upper": 52, "log": False},
            {"name": "lr", "type": "uniform_float", "lower": 0.1, "upper": 1.0, "log": True},
        ],
        "conditions": [],
        "encoding": {"task": {"#na#": 0, "a": 1, "b": 2}},
        "cat_names": ["task"],
        "cont_names": ["epoch", "lr"],
        "y_names": ["val_accuracy"],
        "fidelity": ["epoch"],
        "task_name": "task",
        "visible_tasks": ["b"],
    }
    path = tmp_path / "small.npz"
    arrays = {
        "p:bias": np.array([0.0, 1.0, 2.0]),
        "p:zero": np.array(0),
        "p:one": np.array(1),
        "p:axis": np.array([1]),
    }
    np.savez(path, meta=json.dumps(meta), **arrays)
    return path


def test_a_small_graph_by_hand(small):
    network = read_yahpo(small)
    assert (network.name, network.tasks, list(network.space)) == ("small", ("b",), ["lr"])
    found = network.outputs("a", [{"lr": 0.5}, {"lr": 0.25}], [2, 4])
    np.testing.assert_allclose(found["val_accuracy"], [[2.0, 3.0], [1.5, 2.0]])
    np.testing.assert_allclose(network.outputs("b", [{"lr": 0.5}], [2])["val_accuracy"], [[3.0]])
    with pytest.raises(TableError, match="no task 'c'"):
        network.check_task("c")


def test_surrogates_are_told_from_tables(small, write_table, tmp_path):
    assert is_yahpo(small)
    assert not is_yahpo(write_table())
    assert not is_yahpo(tmp_path / "missing.npz")


def test_missing_parts_are_named(tmp_path):
    np.savez(tmp_path / "bad.npz", meta=json.dumps({"nodes": []}))
    with pytest.raises(TableError, match="no 'scenario'"):
        read_yahpo(tmp_path / "bad.npz")


def test_the_real_network_against_its_evaluator(data: Path):
    folder = data / "surrogates"
    spec = importlib.util.spec_from_file_location("yahpo_evaluate", folder / "evaluate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    reference, network = module.Surrogate("lcbench_yahpo"), read_yahpo(folder / "lcbench_yahpo.npz")
    configs, epochs = network.space.sample(8, np.random.default_rng(0)), np.arange(2, 52)
    for task in network.tasks[:3]:
        found = network.outputs(task, configs, epochs.tolist())
        for row, config in enumerate(configs):
            for name, expected in reference(task=task, epoch=epochs, **config).items():
                np.testing.assert_allclose(found[name][row], expected, rtol=1e-4)
