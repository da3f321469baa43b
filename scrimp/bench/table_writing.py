"""Benchmark tables written to files, in the format that `tables` reads.

    write_table("mine.npz", TableDraft("mine", "error", space, ("task",), configs, value))

``space`` is a description as in `described_space`; configurations are rows of raw values
(`config_rows` makes them).
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.described_space import described_space
from scrimp.bench.tables import Table, read_table
from scrimp.checks import is_number
from scrimp.errors import TableError
from scrimp.history.events import Config
from scrimp.json_values import JsonObject

__all__ = ["TableDraft", "config_rows", "write_table"]

Array = NDArray[np.float64]
Description = Sequence[JsonObject]


@dataclass(frozen=True, eq=False)
class TableDraft:
    """What a table says: values (T, C, L) of configurations (C, d) or (T, C, d) on T tasks at L
    levels of a budget.

    ``levels`` empty: final values only, L = 1. ``arrays``: elapsed, end, meta_features. ``notes``
    go into the file as they are.
    """

    name: str
    metric: str
    space: Description
    tasks: tuple[str, ...]
    configs: Array
    value: Array
    unit: str = "epoch"
    levels: Sequence[float] = ()
    arrays: Mapping[str, Array] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


def write_table(path: str | Path, draft: TableDraft) -> Table:
    """Write the file and read it back; `TableError` says what is wrong with the draft, and then
    nothing is left at ``path``."""
    target = Path(path)
    if target.suffix != ".npz":
        raise TableError(f"a table cannot be written to {str(path)!r}; its name must end in .npz")
    meta = {
        "format": 1,
        "name": draft.name,
        "metric": draft.metric,
        "goal": "min",
        "space": [dict(item) for item in draft.space],
        "budget": {"name": draft.unit, "levels": list(draft.levels)} if draft.levels else None,
        **draft.notes,
    }
    arrays = {
        "tasks": np.array(draft.tasks),
        "configs": draft.configs,
        "value": draft.value,
        **draft.arrays,
    }
    new = target.with_name(f"{target.stem}.{os.getpid()}.draft.npz")
    try:
        np.savez_compressed(new, meta=json.dumps(meta), **arrays)  # type: ignore[arg-type]
        table = read_table(new)
        for task in table.tasks:
            table.task(task)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return table


def config_rows(space: Description, configs: Sequence[Config]) -> Array:
    """Configurations as rows (C, d): choices by index, NaN for a parameter that a configuration
    does not have."""
    parameters = described_space(list(space))
    rows = np.full((len(configs), len(space)), np.nan)
    for column, item in enumerate(space):
        name, choices = str(item["name"]), item.get("choices")
        for row, config in enumerate(configs):
            if name in config:
                value = parameters[name].validate(name, config[name])
                if isinstance(choices, list | tuple):
                    rows[row, column] = choices.index(value)
                elif is_number(value):
                    rows[row, column] = value
    return rows
