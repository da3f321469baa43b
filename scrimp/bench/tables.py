"""Benchmark tables: what many configurations scored on many tasks at every budget, in one `.npz`
file.

| array | shape | meaning |
|---|---|---|
| `meta` | () | JSON: format (1), name, metric, goal ("min"), space, budget |
| `tasks` | (T,) | names |
| `configs` | (C, d) or (T, C, d) | raw values in the order of the space; choices by index; NaN = does not exist |
| `value` | (T, C, L) | the metric at each level of the budget; NaN = diverged, failed or not reached |
| `elapsed` | (T, C, L) | optional: cumulative seconds at each level; without it one level costs one unit |
| `end` | (T, C) | optional: the level after which a run ends normally; without it every run has L levels |
| `meta_features` | (T, m) | optional: descriptors of the tasks |

    table = read_table("lcbench.npz")
    task = table.task("adult")
    # the configurations to choose from, and what each is worth at its end
    task.pool, task.final
"""

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import check_known, is_number
from scrimp.errors import SpaceError, TableError
from scrimp.json_values import Config, Json, Scalar
from scrimp.space.parameter import Categorical, Float, Int, Ordinal, parameter_from_json
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Pool, Space
from scrimp.surrogates.surrogate import Array


@dataclass(frozen=True)
class TaskTable:
    """One task: configurations, values (C, L), cumulative seconds (C, L) or None, and where each
    run ends (C,), 1 to L.

    Rows that repeat an earlier configuration are left out, since a pool holds each once.
    """

    name: str
    pool: Pool
    value: Array
    elapsed: Array | None
    end: NDArray[np.int64]
    meta_features: Array | None = None

    @cached_property
    def final(self) -> Array:
        """The value of each run at its end (C,); NaN for those that failed."""
        return np.asarray(self.value[np.arange(len(self.end)), self.end - 1])

    @cached_property
    def best(self) -> float:
        """The lowest final value."""
        if not np.isfinite(self.final).any():
            raise TableError(
                f"task {self.name!r} has no finite final value, so nothing can be found in it;"
                " leave it out"
            )
        return float(np.nanmin(self.final))


@dataclass(frozen=True, eq=False)
class Table:
    """A whole file. ``levels`` (L,) are budgets; ``unit`` is None if L = 1. ``notes`` are written into
    its ``meta`` as they are."""

    name: str
    metric: str
    space: Space
    tasks: tuple[str, ...]
    configs: Array
    value: Array
    unit: str | None = None
    levels: tuple[float, ...] = (1.0,)
    elapsed: Array | None = None
    end: NDArray[np.int64] | None = None
    meta_features: Array | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    def task(self, name: str) -> TaskTable:
        """Return one task by name; `TableError` lists the known names."""
        check_known("task", [name], self.tasks, TableError, f"in table {self.name!r}")
        row = self.tasks.index(name)
        configs = self._decoded(self.configs if self.configs.ndim == 2 else self.configs[row])
        first: dict[Any, int] = {}
        for place, config in enumerate(configs):
            first.setdefault(self.space.key(config), place)
        keep = np.array(list(first.values()), dtype=int)
        value = self.value[row][keep].astype(float)
        elapsed, end, features = self.elapsed, self.end, self.meta_features
        try:
            pool = Pool(self.space, [configs[place] for place in keep])
        except SpaceError as error:
            raise TableError(f"task {name!r} of table {self.name!r}: {error}") from None
        return TaskTable(
            name,
            pool,
            np.where(np.isfinite(value), value, np.nan),
            None if elapsed is None else elapsed[row][keep].astype(float),
            np.full(len(keep), len(self.levels)) if end is None else end[row][keep].astype(int),
            None if features is None else features[row].astype(float),
        )

    def _decoded(self, rows: Array) -> list[Config]:
        columns = [
            _values(parameter, rows[:, k]) for k, parameter in enumerate(self.space.values())
        ]
        return [
            {
                name: value
                for name, value, there in zip(self.space, values, present, strict=True)
                if there
            }
            for values, present in zip(zip(*columns, strict=True), ~np.isnan(rows), strict=True)
        ]


def _values(parameter: Parameter, column: Array) -> list[Json]:
    """Return raw numbers as values: choices by index, whole numbers as int."""
    choices = _choices(parameter)
    if isinstance(parameter, Float):
        return [float(number) for number in column]
    whole = np.nan_to_num(column).astype(int)
    if choices is None:
        return [
            int(index) if index == number else float(number)
            for index, number in zip(whole, column, strict=True)
        ]
    inside = (whole == column) & (whole >= 0) & (whole < len(choices))
    return [
        choices[index] if fits else f"index {number:g}"
        for index, number, fits in zip(whole, column, inside, strict=True)
    ]


def read_table(path: str | Path) -> Table:
    """The table in a file; `TableError` says what does not follow the format."""
    try:
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise TableError(
                f"{str(path)!r} is not a .npz file but a single array; save all arrays with"
                " numpy.savez"
            )
        with loaded as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise TableError(
            f"there is no table at {str(path)!r}; give the path of a .npz file"
        ) from None
    except TableError:
        raise
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(f"{str(path)!r} is not a .npz file of plain arrays: {error}") from None
    try:
        return _checked(arrays)
    except TableError as error:
        raise TableError(f"table {str(path)!r}: {error}") from None


def _checked(arrays: Mapping[str, Array]) -> Table:
    for name in ("meta", "tasks", "configs", "value"):
        if name not in arrays:
            raise TableError(
                f"it has no array {name!r}; it holds {', '.join(list(arrays)[:8]) or 'nothing'}"
            )
    meta = _meta(arrays["meta"])
    space = described_space(meta["space"])
    tasks = tuple(str(name) for name in np.atleast_1d(arrays["tasks"]))
    if len(set(tasks)) != len(tasks):
        raise TableError("tasks has a name twice; names must differ")
    configs, value = arrays["configs"], arrays["value"]
    if value.ndim != 3 or value.shape[0] != len(tasks):
        raise TableError(
            f"value has shape {value.shape}; it must be (tasks, configurations, levels), with"
            f" {len(tasks)} tasks"
        )
    count, levels = value.shape[1:]
    shapes = ((count, len(space)), (len(tasks), count, len(space)))
    if configs.shape not in shapes:
        raise TableError(
            f"configs has shape {configs.shape}; it must be {shapes[0]} or {shapes[1]}, as value"
            " and space say"
        )
    unit, budgets = _budget(meta["budget"], levels)
    _check_optional(arrays, value.shape)
    end = arrays.get("end")
    return Table(
        str(meta["name"]),
        str(meta["metric"]),
        space,
        tasks,
        configs,
        value,
        unit,
        budgets,
        elapsed=arrays.get("elapsed"),
        end=None if end is None else end.astype(np.int64, copy=False),
        meta_features=arrays.get("meta_features"),
    )


def meta_of(path: str | Path) -> Mapping[str, Any]:
    """Return the ``meta`` of a `.npz` file; empty for any other file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            meta = json.loads(str(file["meta"]))
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        return {}
    return meta if isinstance(meta, dict) else {}


def _meta(array: Array) -> dict[str, Json]:
    try:
        meta = json.loads(str(array))
    except json.JSONDecodeError as error:
        raise TableError(f"meta is not JSON: {error}") from None
    if not isinstance(meta, dict) or meta.get("format") != 1:
        found = meta.get("format") if isinstance(meta, dict) else meta
        raise TableError(f"meta gives format {found!r}; only format 1 can be read")
    check_meta(meta)
    return meta


def _budget(budget: Any, levels: int) -> tuple[str | None, tuple[float, ...]]:
    if budget is None:
        if levels != 1:
            raise TableError(
                f"budget is null and value has {levels} levels; name the budget and list its levels"
            )
        return None, (1.0,)
    try:
        unit, listed = str(budget["name"]), np.asarray(budget["levels"], dtype=float)
    except (TypeError, KeyError, ValueError):
        raise TableError(
            f'budget is {budget!r}; it must be null or {{"name": "epoch", "levels": [1, 2, ...]}}'
        ) from None
    if listed.shape != (levels,) or not (np.diff(listed, prepend=0.0) > 0).all():
        raise TableError(
            f"budget has levels {budget['levels']!r}; they must be {levels} rising numbers above 0"
        )
    return unit, tuple(listed.tolist())


def _check_optional(arrays: Mapping[str, Array], shape: tuple[int, ...]) -> None:
    if "elapsed" in arrays:
        elapsed = arrays["elapsed"]
        if elapsed.shape != shape:
            raise TableError(
                f"elapsed has shape {elapsed.shape}; it must be that of value, {shape}"
            )
        if (np.diff(elapsed, axis=2) < 0).any() or (elapsed < 0).any():
            raise TableError("elapsed falls along the levels; it must be cumulative seconds")
    if "end" in arrays:
        end = arrays["end"]
        if end.shape != shape[:2] or (end < 1).any() or (end > shape[2]).any():
            raise TableError(
                f"end must be {shape[:2]} whole numbers from 1 to {shape[2]}, and is {end.shape}"
            )
    if "meta_features" in arrays and (
        arrays["meta_features"].ndim != 2 or len(arrays["meta_features"]) != shape[0]
    ):
        raise TableError(
            f"meta_features has shape {arrays['meta_features'].shape}; it must have one row per"
            f" task, {shape[0]}"
        )


def write_table(path: str | Path, table: Table) -> Table:
    """Write the file and read it back; `TableError` for a wrong table, which leaves no file."""
    target = Path(path)
    if target.suffix != ".npz":
        raise TableError(f"a table cannot be written to {str(path)!r}; its name must end in .npz")
    meta = {
        "format": 1,
        "name": table.name,
        "metric": table.metric,
        "goal": "min",
        "space": _description(table.space),
        "budget": {"name": table.unit, "levels": table.levels} if table.unit else None,
        **table.notes,
    }
    names = ("tasks", "configs", "value", "elapsed", "end", "meta_features")
    arrays = {name: getattr(table, name) for name in names if getattr(table, name) is not None}
    new = target.with_name(f"{target.stem}.{os.getpid()}.draft.npz")
    try:
        np.savez_compressed(new, meta=json.dumps(meta), **arrays)
        table = read_table(new)
        for task in table.tasks:
            table.task(task)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return table


def config_rows(space: Space, configs: Sequence[Config]) -> Array:
    """Return configurations as rows (C, d): choices by index, NaN for an absent parameter."""
    rows = np.full((len(configs), len(space)), np.nan)
    for column, (name, parameter) in enumerate(space.items()):
        choices = _choices(parameter)
        for row, config in enumerate(configs):
            if name in config:
                value = parameter.validate(name, config[name])
                rows[row, column] = value if choices is None else choices.index(value)
    return rows


def _choices(parameter: Parameter) -> tuple[Scalar, ...] | None:
    """Return the choices that a table has by index; None for numbers."""
    return None if isinstance(parameter, Float | Int) else tuple(parameter.grid or ())


_KINDS = {"float": "float", "int": "int", "choice": "categorical", "ordinal": "ordinal"}
"""The types of parameters in a description, and those of `parameter_from_json`."""


def _description(space: Space) -> list[dict[str, Json]]:
    """Return the description of a space, as `described_space` reads it."""
    words = {kind: word for word, kind in _KINDS.items()}
    listed = []
    for name, parameter in space.items():
        record = {"name": name, **parameter.to_json()}
        record["type"] = words[str(record["type"])]
        if "values" in record:
            record["choices"] = record.pop("values")
        listed.append(record)
    return listed


def described_space(description: object) -> Space:
    """The space that a description means; `TableError` says which entry is wrong and why."""
    if not isinstance(description, list | tuple):
        raise TableError(
            f"space is {description!r}; it must be a list of parameters, each with name and type"
        )
    parameters: dict[str, Parameter] = {}
    for position, item in enumerate(description):
        if not isinstance(item, Mapping) or not isinstance(item.get("name"), str):
            raise TableError(
                f"entry {position} of the space is {item!r}; it must be an object with a name and a"
                " type"
            )
        if item["name"] in parameters:
            raise TableError(f"the space lists parameter {item['name']!r} twice; names must differ")
        parameters[item["name"]] = _parameter(item)
    try:
        return Space(parameters)
    except SpaceError as error:
        raise TableError(f"the space is not valid: {error}") from None


def _parameter(item: Mapping[str, Any]) -> Parameter:
    kind = _KINDS.get(item.get("type", ""))
    if kind is None:
        raise TableError(
            f"parameter {item['name']!r} has type {item.get('type')!r}; it must be one of"
            f" {', '.join(_KINDS)}"
        )
    keys = ("low", "high", "log", "step", "choices", "when")
    record = {"type": kind, **{key: item[key] for key in keys if item.get(key) is not None}}
    if kind == "ordinal" and "choices" in record:
        record["values"] = record.pop("choices")
    try:
        return parameter_from_json(item["name"], record)
    except SpaceError as error:
        raise TableError(str(error)) from None


def check_meta(meta: Mapping[str, object]) -> None:
    """Raise `TableError` if the meta of a table or a surrogate lacks an entry."""
    for name in ("name", "metric", "goal", "space", "budget"):
        if name not in meta:
            raise TableError(
                f"meta has no {name!r}; it must give name, metric, goal, space and budget"
            )
    if meta["goal"] != "min":
        raise TableError(f"goal is {meta['goal']!r}; it must be 'min': negate the values")


MAX_DISTINCT_FOR_ORDINAL = 12
MIN_LOG_RATIO = 100.0


def space_of_table(configs: Sequence[Mapping[str, Scalar]]) -> Space:
    """Return the space of every parameter that varies, in the order of the first configuration."""
    columns = {str(name): [config[name] for config in configs] for name in configs[0]}
    return Space(
        {name: _inferred(values) for name, values in columns.items() if len(set(values)) > 1}
    )


def _inferred(values: Sequence[Scalar]) -> Parameter:
    distinct = list(dict.fromkeys(values))
    numbers = [value for value in distinct if is_number(value)]
    if len(numbers) < len(distinct):
        return Categorical(distinct)
    if len(distinct) <= MAX_DISTINCT_FOR_ORDINAL and 2 * len(distinct) <= len(values):
        return Ordinal(sorted(numbers))
    low, high = min(numbers), max(numbers)
    log = low > 0 and high / low >= MIN_LOG_RATIO
    if all(isinstance(value, int) for value in numbers):
        return Int(int(low), int(high), log=log)
    return Float(low, high, log=log)
