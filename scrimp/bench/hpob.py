"""The public HPO-B files: results of many search spaces and data sets as JSON, read as benchmark
tables.

A file maps ids of search spaces to ids of data sets to ``{"X": [[...], ...], "y": [[...], ...]}``:
configurations in the unit cube, encoded by its authors, and accuracies, higher is better. One
search space is one table; its parameters are x0, x1, ...

    read_hpob(Path("meta-test-dataset.json")).keys()                  # ids of the search spaces
    # ids of the data sets, as tasks
    read_hpob(Path("meta-test-dataset.json"))["4796"].tasks

Accuracies become losses, 1 - y. They are not normalised: a method that knew the best of a task
would know when to stop. Pineda-Arango, Jomaa, Wistuba, Grabocka, HPO-B: a large-scale reproducible
benchmark for black-box HPO based on OpenML, 2021.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import TableError
from scrimp.json_values import Json
from scrimp.space.parameter import Constant, Float
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Config, Pool, Space

__all__ = ["HpobSpace", "is_hpob", "read_hpob"]


@dataclass(frozen=True, eq=False)
class HpobSpace:
    """One search space: data sets by id, each with X (n, d) and y (n,)."""

    name: str
    tables: Mapping[str, Mapping[str, Json]]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The data sets."""
        return tuple(self.tables)

    @cached_property
    def space(self) -> Space:
        """A float in [0, 1] for every column that varies anywhere."""
        columns = np.concatenate([self._arrays(task)[0] for task in self.tasks])
        parameters: dict[str, Parameter] = {}
        for place in range(columns.shape[1]):
            column = columns[:, place]
            varies = float(column.max()) > float(column.min())
            parameters[f"x{place}"] = Float(0.0, 1.0) if varies else Constant(float(column[0]))
        return Space(parameters)

    def task(self, name: str) -> tuple[Pool, NDArray[np.float64]]:
        """The pool of a data set, each configuration once, and their losses 1 - y."""
        if name not in self.tables:
            raise TableError(
                f"search space {self.name!r} has no data set {name!r}; it has"
                f" {', '.join(self.tasks)}"
            )
        x, y = self._arrays(name)
        _, first = np.unique(x, axis=0, return_index=True)
        rows = np.sort(first)
        names = list(self.space)
        configs: list[Config] = [dict(zip(names, row, strict=True)) for row in x[rows].tolist()]
        return Pool(self.space, configs), 1.0 - y[rows]

    def _arrays(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        table = self.tables[name]
        try:
            x, y = np.asarray(table["X"], dtype=float), np.asarray(table["y"], dtype=float)
        except (KeyError, TypeError, ValueError) as error:
            raise TableError(
                f"data set {name!r} of search space {self.name!r} has no X and y of numbers:"
                f" {error}"
            ) from None
        y = y.reshape(len(y), -1)[:, 0] if y.ndim else y
        if x.ndim != 2 or len(x) != len(y) or not ((x >= 0.0) & (x <= 1.0)).all():
            raise TableError(
                f"data set {name!r} of search space {self.name!r} has X of shape {x.shape} and"
                f" {len(y)} values; X must have one row in the unit cube per value"
            )
        return x, y


def is_hpob(path: Path) -> bool:
    """Whether the file may be one: JSON."""
    return path.suffix.lower() == ".json"


def read_hpob(path: Path) -> dict[str, HpobSpace]:
    """The search spaces of a file, by id; `TableError` for what is not of this form."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TableError(
            f"there is no file {str(path)!r}; give the path of an HPO-B file"
        ) from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TableError(f"{str(path)!r} is not JSON: {error}") from None
    good = isinstance(record, Mapping) and all(
        isinstance(tables, Mapping)
        and all(isinstance(one, Mapping) and {"X", "y"} <= set(one) for one in tables.values())
        for tables in record.values()
    )
    if not good or not record:
        raise TableError(
            f'{str(path)!r} is no HPO-B file; it must map spaces to data sets to {{"X": ..., "y":'
            " ...}"
        )
    return {str(name): HpobSpace(str(name), tables) for name, tables in record.items()}
