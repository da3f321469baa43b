"""A small benchmark table of our own making, and the place of the real ones."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    """Two tasks, twelve configurations, two levels; configuration 0 of the first task diverges at its end."""
    rng = np.random.default_rng(0)
    kernel = np.arange(12) % 2
    configs = np.column_stack(
        [kernel, np.geomspace(0.01, 10.0, 12), 1 + np.arange(12) % 4, np.where(kernel, np.arange(12) % 3, np.nan)]
    )
    value = rng.random((2, 12, 2))
    value[0, 0, 1] = np.nan
    return {"meta": json.dumps(META), "tasks": np.array(["one", "two"]), "configs": configs, "value": value}


@pytest.fixture
def write_table(tmp_path: Path) -> Callable[..., Path]:
    """Write the small table, with some arrays replaced, added or (None) left out."""

    def write(**changes: Any) -> Path:
        arrays = {name: array for name, array in {**small_arrays(), **changes}.items() if array is not None}
        path = tmp_path / "small.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.fixture
def data() -> Path:
    """The folder of real benchmark tables."""
    folder = Path(os.environ.get("SCRIMP_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no benchmark data at {folder}; set SCRIMP_DATA to its folder")
    return folder
