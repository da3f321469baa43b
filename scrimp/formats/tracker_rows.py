"""Rows that trackers export, in the columns that imports know: ``params_<name>``, and metrics by name.

MLflow writes ``params.lr`` and ``metrics.loss`` (``mlflow.search_runs().to_csv()``). Weights & Biases
writes the columns ``config`` and ``summary``, each a mapping in a cell (its script for exports of
runs), or one column per name (the button in its tables), which needs no translation.
"""

import ast
import json
from collections.abc import Mapping

from scrimp.json_values import Json

__all__ = ["plain_row"]

LONGEST = 100_000  # characters of a cell with a mapping
AROUND = ("_wandb", "_step", "_runtime", "_timestamp")


def plain_row(row: Mapping[str, Json]) -> dict[str, Json]:
    """The row with the columns that imports know.

    >>> plain_row({"run_id": "a", "params.lr": 0.1, "metrics.loss": 0.5})
    {'loss': 0.5, 'params_lr': 0.1}
    """
    if any(name.startswith("params.") for name in row):
        return {
            **{name[8:]: value for name, value in row.items() if name.startswith("metrics.")},
            **{f"params_{name[7:]}": value for name, value in row.items() if name[:7] == "params."},
        }
    config, summary = _mapping(row.get("config")), _mapping(row.get("summary"))
    if config is None or summary is None:
        return dict(row)
    kept = {name: value for name, value in config.items() if name not in AROUND}
    return {
        **{name: value for name, value in summary.items() if not isinstance(value, dict | list)},
        **{f"params_{name}": value for name, value in kept.items()},
    }


def _mapping(cell: Json) -> dict[str, Json] | None:
    """What a cell with a mapping holds, as JSON or as Python writes it."""
    if not isinstance(cell, str) or cell[:1] != "{" or len(cell) > LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            found = read(cell)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
    return None
