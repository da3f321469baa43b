"""Surrogates of a table's tasks, fitted once and kept in a folder beside the results.

    kept = kept_surrogate(read_table("lcbench.npz"), "adult", "gp", Path("results"))
    kept.model, kept.quality, kept.scale

A file holds the arrays of every function, named ``score.0.weights`` and so on, and ``meta`` with
the rest; one that was made from another table of the same name, or by another version of this
format, is made again.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.curve_fit import Quality, fit_curve_model
from scrimp.bench.curve_model import CurveModel, Function, GPMean
from scrimp.bench.curve_tasks import Scale, model_curves
from scrimp.bench.tables import Table
from scrimp.space.space import Space
from scrimp.surrogates.forest import Forest

__all__ = ["KeptSurrogate", "fit_note", "kept_surrogate"]

FORMAT = "fitted-curves-1"

_CLASSES: dict[str, type[Any]] = {"forest": Forest, "gp": GPMean}


@dataclass(frozen=True, eq=False)
class KeptSurrogate:
    """A surrogate, how well it foretells held-out runs, and the scale of its regret."""

    model: CurveModel
    quality: Quality
    scale: Scale


def kept_surrogate(table: Table, task: str, kind: str, folder: Path | None) -> KeptSurrogate:
    """The one in ``folder``, or else a new one, kept there for the next process; None keeps
    nothing."""
    mark = _fingerprint(table, task)
    name = re.sub(r"[^\w.-]+", "_", f"{table.name}-{task}-{kind}")
    path = None if folder is None else folder / f"{name}.surrogate.npz"
    found = None if path is None else _read(path, mark, kind)
    if found is not None:
        return found
    model, quality = fit_curve_model(table, task, kind)
    made = KeptSurrogate(model, quality, model_curves(model).scale)
    if path is not None:
        _write(path, made, mark)
    return made


def fit_note(task: str, kept: KeptSurrogate) -> str:
    """One line that says how far the surrogate can be trusted."""
    quality = kept.quality
    failing = (
        ""
        if quality.failing is None
        else f", failing foretold {quality.failing:.2f} (0.5 is chance)"
    )
    return (
        f"{task}: held-out final values R2 {quality.r2:.2f}, rank correlation"
        f" {quality.rank_correlation:.2f}{failing}; best {kept.scale.best:.4g}, of the table"
        f" {quality.best:.4g}"
    )


def _fingerprint(table: Table, task: str) -> int:
    row = table.tasks.index(task) if task in table.tasks else 0
    configs = table.configs if table.configs.ndim == 2 else table.configs[row]
    return zlib.crc32(
        np.ascontiguousarray(table.value[row]).tobytes(),
        zlib.crc32(np.ascontiguousarray(configs).tobytes()),
    )


def _write(path: Path, kept: KeptSurrogate, mark: int) -> None:
    model = kept.model
    functions: dict[str, Function | None] = {
        f"score.{place}": score for place, score in enumerate(model.scores)
    }
    functions |= {"cost": model.cost, "end": model.end, "survived": model.survived}
    there = {name: function for name, function in functions.items() if function is not None}
    arrays = {
        f"{name}.{field.name}": np.asarray(getattr(function, field.name))
        for name, function in there.items()
        for field in fields(function)  # type: ignore[arg-type]  # every kind of function is a dataclass
    }
    meta = {
        "format": FORMAT,
        "mark": mark,
        "functions": list(there),
        "space": model.space.to_json(),
        "quality": asdict(kept.quality),
        "scale": asdict(kept.scale),
        **{
            name: getattr(model, name)
            for name in ("name", "metric", "unit", "levels", "log", "failing")
        },
    }
    draft = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(
        draft,
        meta=json.dumps(meta),
        mean_curve=model.mean_curve,
        components=model.components,
        **arrays,  # type: ignore[arg-type]
    )
    draft.replace(path)  # several processes may write it, never half of it


def _read(path: Path, mark: int, kind: str) -> KeptSurrogate | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        meta = json.loads(str(arrays["meta"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    if meta.get("format") != FORMAT or meta.get("mark") != mark:
        return None
    functions = {name: _function(_CLASSES[kind], name, arrays) for name in meta["functions"]}
    model = CurveModel(
        meta["name"],
        meta["metric"],
        Space.from_json(meta["space"]),
        meta["unit"],
        tuple(meta["levels"]),
        arrays["mean_curve"],
        arrays["components"],
        tuple(functions[name] for name in meta["functions"] if name.startswith("score.")),
        meta["log"],
        functions.get("cost"),
        functions.get("end"),
        functions.get("survived"),
        meta["failing"],
    )
    return KeptSurrogate(model, Quality(**meta["quality"]), Scale(**meta["scale"]))


def _function(kind: type[Any], name: str, arrays: Mapping[str, NDArray[Any]]) -> Function:
    given = [arrays[f"{name}.{field.name}"] for field in fields(kind)]
    made: Function = kind(*(array if array.ndim else float(array) for array in given))
    return made
