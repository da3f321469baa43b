"""Surrogates of training runs: a function of the configuration for each principal component of the
(log) curves.

    log loss = mean_curve + z @ components,
    z_j(x) = offset_j + scale_j amplitude_j sum_i matern52(|(x - inputs_i) / length_scales_j|) weights_ji

with x in the unit cube: logarithmic parameters by their logarithm, whole numbers and choices by
index / (n - 1), a parameter that does not exist at 0.5. The file is a `.npz` whose ``meta`` holds
format ("gp-curves-1"), name, metric, goal, space and budget. A model that was fitted to a table
(`curve_fit`) may also know how long runs are, where they fail and what a level costs.

    model = read_curve_model("gpt_python_surrogate.npz")
    model.runs(configs).value                                # (n, levels), without noise
"""

import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scrimp.bench.described_space import check_meta, described_space
from scrimp.errors import TableError
from scrimp.history.events import Config
from scrimp.json_values import Scalar
from scrimp.space.parameter import Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = [
    "FORMAT",
    "CurveModel",
    "Function",
    "GPMean",
    "PredictedRuns",
    "curve_units",
    "is_curve_model",
    "read_curve_model",
]

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
"""From rows (m, d) of the unit cube to numbers (m,)."""

FORMAT = "gp-curves-1"

_SHAPES = {
    "inputs": "(n, d)",
    "weights": "(k, n)",
    "length_scales": "(k, d)",
    "amplitude": "(k,)",
    "offset": "(k,)",
    "scale": "(k,)",
    "mean_curve": "(L,)",
    "components": "(k, L)",
}
"""The arrays of a file, by their sizes: n rows learned from, d parameters, k components, L
levels."""


@dataclass(frozen=True, eq=False)
class GPMean:
    """The posterior mean of a Gaussian process: inputs (n, d), weights (n,), length_scales (d,)."""

    inputs: Array
    weights: Array
    length_scales: Array
    amplitude: float
    offset: float
    scale: float

    def __call__(self, x: Array) -> Array:
        """Its values (m,) at rows x (m, d)."""
        left, right = x / self.length_scales, self.inputs / self.length_scales
        squared = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T
        reach = np.sqrt(5.0 * np.maximum(squared, 0.0))
        kernel = (1.0 + reach + reach**2 / 3.0) * np.exp(-reach)
        return np.asarray(self.offset + self.scale * self.amplitude * (kernel @ self.weights))


@dataclass(frozen=True, eq=False)
class PredictedRuns:
    """What n runs would give: values (n, L), NaN from where a run fails; cost of a level (n,); how
    many levels each has (n,)."""

    value: Array
    cost: Array
    end: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CurveModel:
    """A surrogate: where it may be asked, at which levels it answers, and the functions behind it.

    ``log``: whether the curves are those of the logarithm. ``cost``: the logarithm of the seconds
    of a level; None: one unit. ``end``: the logarithm of the number of levels of a run, whose curve
    is then over the share of the run and not over levels; None: all. ``survived``: the share of its
    levels before a run fails, which it does below ``failing``; None: no run fails.
    """

    name: str
    metric: str
    space: Space
    unit: str
    levels: tuple[float, ...]
    mean_curve: Array
    components: Array
    scores: tuple[Function, ...]
    log: bool = True
    cost: Function | None = None
    end: Function | None = None
    survived: Function | None = None
    failing: float = 0.0

    def runs(self, configs: Sequence[Config]) -> PredictedRuns:
        """The run of each configuration."""
        x = curve_units(self.space, configs)
        curve = (
            self.mean_curve + np.column_stack([score(x) for score in self.scores]) @ self.components
        )
        value = np.exp(curve) if self.log else curve
        last = len(self.levels)
        end = np.full(len(x), last)
        if self.end is not None:
            end = np.clip(np.rint(np.exp(self.end(x))), 1, last).astype(np.int64)
            value = np.array(
                [_stretched(row, length) for row, length in zip(value, end, strict=True)]
            )
        if self.survived is not None:
            share = self.survived(x)
            before = np.where(
                share < self.failing, np.floor(np.clip(share, 0.0, 0.999) * end), last
            )
            value[np.arange(last) >= before[:, None]] = np.nan
        cost = np.ones(len(x)) if self.cost is None else np.exp(self.cost(x))
        return PredictedRuns(value, cost, end)


def _stretched(curve: Array, length: int) -> Array:
    """A curve over shares 1/L, 2/L, ..., 1 of a run, read off at the levels of a run of that
    length; NaN after its end."""
    total = len(curve)
    at = np.arange(1, length + 1) / length
    return np.concatenate(
        [np.interp(at, np.arange(1, total + 1) / total, curve), np.full(total - length, np.nan)]
    )


def curve_units(space: Space, configs: Sequence[Config]) -> Array:
    """Rows (n, d) in the unit cube of the format, where every parameter reaches from 0 to 1; 0.5
    where it does not exist."""
    x = np.full((len(configs), len(space.searched)), 0.5)
    for column, name in enumerate(space.searched):
        rows = [row for row, config in enumerate(configs) if name in config]
        x[rows, column] = _places(space[name], [configs[row][name] for row in rows])
    return x


def _places(parameter: Parameter, values: Sequence[Scalar]) -> Array:
    """Places (n,) of values, the lowest at 0 and the highest at 1 (`Parameter.to_units` leaves half
    a step at either end)."""
    ends = (parameter.low, parameter.high) if isinstance(parameter, Int) else parameter.grid or ()
    if not ends:
        return parameter.to_units(values)
    low, high = parameter.to_units([ends[0], ends[-1]])
    return np.asarray((parameter.to_units(values) - low) / (high - low if high > low else 1.0))


def is_curve_model(path: str | Path) -> bool:
    """Whether the file is such a surrogate rather than a table."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return bool(json.loads(str(file["meta"]))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
        return False


def read_curve_model(path: str | Path) -> CurveModel:
    """The surrogate in a file; `TableError` says what does not follow the format."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    try:
        return _checked(json.loads(str(arrays["meta"])), arrays)
    except TableError as error:
        raise TableError(f"surrogate {str(path)!r}: {error}") from None


def _checked(meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> CurveModel:
    check_meta(meta)
    space, levels = (
        described_space(meta["space"]),
        tuple(float(level) for level in meta["budget"]["levels"]),
    )
    sizes: dict[str, int] = {"d": len(space.searched), "L": len(levels)}
    numbers = {name: _sized(name, arrays, sizes) for name in _SHAPES}
    scores = tuple(
        GPMean(
            numbers["inputs"],
            numbers["weights"][j],
            numbers["length_scales"][j],
            float(numbers["amplitude"][j]),
            float(numbers["offset"][j]),
            float(numbers["scale"][j]),
        )
        for j in range(sizes["k"])
    )
    unit = str(meta["budget"]["name"])
    fixed = str(meta["name"]), str(meta["metric"]), space, unit, levels
    return CurveModel(*fixed, numbers["mean_curve"], numbers["components"], scores)


def _sized(name: str, arrays: Mapping[str, NDArray[Any]], sizes: dict[str, int]) -> Array:
    """The array of that name; its sizes must agree with those of the arrays before it."""
    if name not in arrays:
        raise TableError(f"it has no array {name!r}; it must have {', '.join(_SHAPES)}")
    array = np.asarray(arrays[name], dtype=float)
    letters = [letter.strip() for letter in _SHAPES[name].strip("()").split(",") if letter.strip()]
    if array.ndim != len(letters) or any(
        sizes.setdefault(letter, size) != size
        for letter, size in zip(letters, array.shape, strict=True)
    ):
        known = ", ".join(f"{letter} = {sizes[letter]}" for letter in sizes)
        raise TableError(
            f"{name} has shape {array.shape}; it must be {_SHAPES[name]}, where {known}"
        )
    return array
