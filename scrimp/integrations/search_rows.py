"""Rows of ``cv_results_``: one evaluation each, what every fold of it gave, and how a study keeps
it."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FOLD",
    "Evaluated",
    "Fold",
    "Results",
    "SearchRow",
    "SearchRows",
    "blank_fold",
    "stored_folds",
]

Results = dict[str, NDArray[np.float64]]
"""Columns of ``cv_results_``: what scikit-learn says of all evaluations."""
Fold = dict[str, float | dict[str, float]]
"""What it says of one fold: times and scores, by name where there are several metrics."""
Evaluated = tuple[
    Sequence[dict[str, object]], int, Sequence[Fold], Mapping[str, Sequence[float]] | None
]
"""Candidates, number of folds, what each fold of each gave, further columns."""
FOLD = re.compile(r"split(\d+)_(test|train)_(.+)")


@dataclass(frozen=True)
class SearchRow:
    """An evaluation: its parameters, its resources, what each fold gave."""

    params: dict[str, object]
    resources: float
    fits: list[Fold]


@dataclass
class SearchRows:
    """What scikit-learn does not know of: evaluations of earlier runs, and those of which every fit
    failed. ``evaluated`` is all that it has, of which the study was told the first ``told`` rows;
    ``repeats`` says that this is an evaluation of an earlier run made again, which is not shown.
    """

    earlier: list[SearchRow] = field(default_factory=list)
    failed: list[tuple[dict[str, object], float]] = field(default_factory=list)
    evaluated: Evaluated | None = None
    told: int = 0
    repeats: bool = False

    def untold(self, hidden: str) -> Evaluated:
        """The newest rows: those that the study is to be told."""
        assert self.evaluated is not None
        candidates, n_splits, out, more = self.evaluated
        rest = {key: values[self.told :] for key, values in (more or {}).items()}
        return (
            _without(hidden, candidates[self.told :]),
            n_splits,
            out[self.told * n_splits :],
            rest,
        )

    def joined(self, hidden: str) -> Evaluated:
        """All rows as scikit-learn formats them: earlier ones, those of this run, failed ones;
        without the parameter ``hidden``."""
        assert self.evaluated is not None
        candidates, n_splits, out, more = self.evaluated
        nothing = [blank_fold(out[0])] * n_splits
        if self.repeats:
            candidates, out, more = [], [], {key: [] for key in more or {}}
        failed = [SearchRow(params, resources, nothing) for params, resources in self.failed]
        params = [row.params for row in self.earlier]
        params += [*candidates, *(row.params for row in failed)]
        fits = [fit for row in self.earlier for fit in row.fits]
        fits += [*out, *(fit for row in failed for fit in row.fits)]
        joined = {
            key: [row.resources for row in self.earlier]
            + [*values, *(row.resources for row in failed)]
            for key, values in (more or {}).items()
        }
        return _without(hidden, params), n_splits, fits, joined


def _without(hidden: str, params: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    return [{key: value for key, value in one.items() if key != hidden} for one in params]


def blank_fold(fit: Fold) -> Fold:
    """A fold of a fit that failed, in the shape of another fold.

    >>> blank_fold({"fit_time": 1.0, "test_scores": {"accuracy": 1.0}})
    {'fit_time': nan, 'test_scores': {'accuracy': nan}}
    """
    return {
        key: dict.fromkeys(value, math.nan) if isinstance(value, Mapping) else math.nan
        for key, value in fit.items()
    }


def stored_folds(metrics: Mapping[str, float | None]) -> list[Fold]:
    """What scikit-learn keeps of each fold, from the metrics of a report.

    >>> stored_folds({"split0_test_score": 0.5, "mean_fit_time": 2.0, "mean_score_time": 1.0})
    [{'fit_time': 2.0, 'score_time': 1.0, 'test_scores': 0.5}]
    """
    found: dict[int, dict[str, dict[str, float]]] = {}
    for key, value in metrics.items():
        if (parts := FOLD.fullmatch(key)) is not None and value is not None:
            scores = found.setdefault(int(parts[1]), {}).setdefault(f"{parts[2]}_scores", {})
            scores[parts[3]] = value
    times = {name: metrics.get(f"mean_{name}") or 0.0 for name in ("fit_time", "score_time")}
    return [
        {
            **times,
            **{
                kind: by_name.get("score", by_name) if len(by_name) == 1 else by_name
                for kind, by_name in found[fold].items()
            },
        }
        for fold in sorted(found)
    ]
