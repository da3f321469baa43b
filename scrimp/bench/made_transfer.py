"""``scrimp bench make transfer``: one table per model family, all its configurations on all tasks.

    cells = transfer_work("svm", MakingSettings())
    # one configuration on every task; None where it failed
    run_transfer_work(cells[0])["value"]

Values are error rates for classes and root mean squared errors over the standard deviation for
numbers, on rows that were not trained on. A model that raises, warns that it has not converged, or
foretells nothing finite, has failed.
"""

import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from scrimp.bench.made_data import CLASSIFICATION, REGRESSION, Split, split
from scrimp.bench.made_families import FAMILIES, Family
from scrimp.bench.making import MakingSettings, drawn
from scrimp.bench.results import Cell, RunHead
from scrimp.bench.table_writing import TableDraft, config_rows, write_table
from scrimp.errors import TableError
from scrimp.history.events import Config
from scrimp.json_values import Json

__all__ = ["chosen_families", "run_transfer_work", "transfer_work", "write_transfer"]

WORST = 10.0
"""A relative error beyond this is a failure."""


def chosen_families(names: Sequence[str]) -> list[str]:
    """Those names, or all; `TableError` for one that there is not."""
    chosen = list(FAMILIES) if list(names) == ["all"] else list(names)
    for name in chosen:
        if name not in FAMILIES:
            raise TableError(f"no family is called {name!r}; there are {', '.join(FAMILIES)}")
    return chosen


def transfer_work(family: str, settings: MakingSettings) -> list[Cell]:
    """The configurations of a family, each a piece of work."""
    fixed = "make-transfer", family, settings.size
    return [Cell(*fixed, f"{number}", settings.seed, 1) for number in range(settings.configs)]


class TransferWork(RunHead):
    """What one configuration came to on every task; None where it failed."""

    value: list[float | None]


def run_transfer_work(cell: Cell) -> dict[str, Json]:
    """One configuration on every task."""
    family = FAMILIES[cell.table]
    config = drawn(family.space, cell.seed, int(cell.method) + 1)[-1]
    return {
        **cell.head(),
        "value": [_measured(family, config, task) for task in _tasks(cell.task, cell.seed)],
    }


def write_transfer(
    path: Path, family: str, settings: MakingSettings, records: Sequence[TransferWork]
) -> None:
    """The table of a family, from the records of its configurations in their order."""
    space, tasks = FAMILIES[family].space, _tasks(settings.size, settings.seed)
    configs = drawn(space, settings.seed, len(records))
    value = np.array(
        [[np.nan if found is None else found for found in record["value"]] for record in records]
    )
    draft = TableDraft(
        path.stem,
        "validation error (rate, or relative root mean square)",
        space,
        tuple(task.name for task in tasks),
        config_rows(space, configs),
        value.T[:, :, None],
        arrays={"meta_features": np.array([task.features for task in tasks])},
        notes={"source": f"scrimp bench make transfer, seed {settings.seed}, {settings.size}"},
    )
    write_table(path, draft)


@lru_cache(maxsize=1)
def _tasks(size: str, seed: int) -> tuple[Split, ...]:
    names, rows = [*CLASSIFICATION, *REGRESSION], 300
    if size == "small":
        names, rows = ["iris", "wine", "moons", "diabetes"], 40
    return tuple(split(name, rows, seed) for name in names)


def _measured(family: Family, config: Config, task: Split) -> float | None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.filterwarnings(
            "error", message=".*(max_iter|converge).*terminated early.*|.*Solver terminated early.*"
        )
        try:
            model = family.build(config, task.classification).fit(task.x, task.y)
            found = np.asarray(model.predict(task.x_valid), dtype=float)
        except (ValueError, FloatingPointError, np.linalg.LinAlgError, UserWarning) as failure:
            if isinstance(
                failure, TypeError
            ):  # a parameter that the model does not have, which is the family's mistake
                raise
            return None
    if task.classification:
        return float((found != task.y_valid).mean())
    error = float(np.sqrt(np.mean((found - task.y_valid) ** 2)) / task.y_valid.std())
    return error if error < WORST else None
