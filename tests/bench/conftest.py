"""A small benchmark table of our own making, and the place of the real ones."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrimp.bench.tables import Table, read_table

META: dict[str, Any] = {
    "format": 1,
    "name": "small",
    "metric": "error",
    "goal": "min",
    "space": [
        {"name": "kernel", "type": "choice", "choices": ["linear", "rbf"]},
        {"name": "c", "type": "float", "low": 0.01, "high": 10.0, "log": True},
        {"name": "depth", "type": "int", "low": 1, "high": 4, "log": False},
        {"name": "gamma", "type": "ordinal", "choices": [0.1, 0.5, 2.5], "when": {"kernel": "rbf"}},
    ],
    "budget": {"name": "epoch", "levels": [1, 3]},
}


def small_arrays() -> dict[str, Any]:
    """Two tasks, twelve configurations, two levels; configuration 0 of the first task diverges at
    its end."""
    rng = np.random.default_rng(0)
    kernel = np.arange(12) % 2
    configs = np.column_stack(
        [
            kernel,
            np.geomspace(0.01, 10.0, 12),
            1 + np.arange(12) % 4,
            np.where(kernel, np.arange(12) % 3, np.nan),
        ]
    )
    value = rng.random((2, 12, 2))
    value[0, 0, 1] = np.nan
    return {
        "meta": json.dumps(META),
        "tasks": np.array(["one", "two"]),
        "configs": configs,
        "value": value,
    }


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[..., Path]:
    """Write the small table, with some arrays replaced, added or (None) left out."""

    def write(**changes: Any) -> Path:
        arrays = {
            name: array
            for name, array in {**small_arrays(), **changes}.items()
            if array is not None
        }
        path = tmp_path / "small.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.fixture
def data() -> Path:
    """The folder of real benchmark tables."""
    folder = Path(
        os.environ.get("SCRIMP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(f"no benchmark data at {folder}; set SCRIMP_DATA to its folder")
    return folder


LEVELS = 12
KNOWN_SPACE = [
    {"name": "lr", "type": "float", "low": 1e-4, "high": 1.0, "log": True},
    {"name": "depth", "type": "int", "low": 1, "high": 5},
]


def truth(lr: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """Runs (n, 12): fast or slow by lr, low or high by depth."""
    place = np.log10(lr) / 4 + 1
    level = np.arange(1, LEVELS + 1)
    return np.asarray(
        0.2 + 0.1 * (depth[:, None] - 3) ** 2 + np.exp(-(0.1 + place[:, None]) * level)
    )


@pytest.fixture
def known_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Table]:
    """A table of 100 runs; ``fails``: those with lr above 0.1 fail half-way; ``lengths``: depth
    says how long a run is."""

    monkeypatch.setattr("scrimp.bench.curve_model.MAX_COMPONENTS", 3)

    def make(fails: bool = False, lengths: bool = False, sign: float = 1.0) -> Table:
        rng = np.random.default_rng(0)
        lr, depth = 10 ** rng.uniform(-4, 0, 100), rng.integers(1, 6, 100).astype(float)
        value = sign * truth(lr, depth)
        elapsed = (2.0 * depth)[:, None] * np.arange(1, LEVELS + 1)
        end = np.full(100, LEVELS)
        if fails:
            value[lr > 0.1, LEVELS // 2 :] = np.nan
        if lengths:
            end = (2 * depth + 2).astype(int)
            value[np.arange(LEVELS) >= end[:, None]] = np.nan
        meta: dict[str, Any] = {
            "format": 1,
            "name": "known",
            "metric": "loss",
            "goal": "min",
            "space": KNOWN_SPACE,
        }
        meta["budget"] = {"name": "epoch", "levels": list(range(1, LEVELS + 1))}
        arrays = {
            "configs": np.column_stack([lr, depth]),
            "value": value[None],
            "elapsed": elapsed[None],
        }
        np.savez(
            tmp_path / "known.npz",
            meta=json.dumps(meta),
            tasks=np.array(["t"]),
            end=end[None],
            **arrays,
        )
        return read_table(tmp_path / "known.npz")

    make.truth = truth  # type: ignore[attr-defined]
    return make
