"""Predictions by the model that decides, in the units and directions of the user.

    found = study.predict([{"lr": 1e-3}, {"lr": 1e-2}], at=27)
    found.mean, found.std                      # (2, metrics)
    found.dataframe(), found.samples(100, seed=0)

The method of the study predicts (`Policy.forecast`), with the hyperparameters that its last decision
recorded, on all results so far. Nothing is fitted, unless no decision has recorded a fit yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from scrimp.checks import is_finite, is_whole
from scrimp.errors import MethodError, StudyError
from scrimp.json_values import Config, Json, JsonObject
from scrimp.methods.named_methods import Method, predicting_methods
from scrimp.methods.policy import Policy
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.suggester import ForecastPoints
from scrimp.threads import one_thread

if TYPE_CHECKING:  # loading these takes time
    import pandas

    from scrimp.surrogates.forecast import ForecastColumn

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions of k configurations: one column for each metric, then for each constraint and the
    cost that the method has a model of.

    ``at``: the budget of each configuration, None in a study without budgets. ``mean``, ``std``: of
    the noise-free value. ``noise``: the standard deviation of one report around it, as the model
    learned it; 0 if the model has none. Freeze-thaw predicts the best value up to the budget.
    """

    configs: tuple[Config, ...]
    at: tuple[float, ...] | None
    names: tuple[str, ...]
    mean: Array  # (k, metrics)
    std: Array  # (k, metrics)
    noise: Array  # (k, metrics)
    columns: "tuple[ForecastColumn, ...]" = field(repr=False)

    @staticmethod
    def of(
        configs: Sequence[Config], at: tuple[float, ...] | None, columns: "Sequence[ForecastColumn]"
    ) -> "Predictions":
        """Integrate the beliefs of all columns."""
        moments = [column.moments() for column in columns]
        mean, std = (np.stack(parts, axis=1) for parts in zip(*moments, strict=True))
        whole = np.stack([column.moments(of_reports=True)[1] for column in columns], axis=1)
        noise = np.sqrt(np.maximum(whole**2 - std**2, 0.0))
        names = tuple(column.name for column in columns)
        return Predictions(tuple(configs), at, names, mean, std, noise, tuple(columns))

    def interval(self, share: float = 0.9) -> tuple[Array, Array]:
        """Return the lower and upper ends, (k, metrics) each, between which one report falls with
        probability ``share``, noise included."""
        if not is_finite(share) or not 0 < share < 1:
            raise StudyError(f"share is {share!r}; it must be between 0 and 1, such as 0.9")
        width = NormalDist().inv_cdf(0.5 + 0.5 * share)
        ends = [column.band(width, of_reports=True) for column in self.columns]
        low, high = (np.stack(parts, axis=1) for parts in zip(*ends, strict=True))
        return low, high

    def samples(self, n: int, seed: int = 0) -> Array:
        """Draw the noise-free values ``n`` times, (n, k, metrics): jointly over configurations,
        independently over metrics."""
        if not is_whole(n) or n < 1:
            raise StudyError(f"n is {n!r}; it must be a whole number of draws, at least 1")
        rng = np.random.default_rng(seed)
        return np.stack([column.draws(n, rng) for column in self.columns], axis=2)

    def dataframe(self) -> "pandas.DataFrame":
        """Return a pandas DataFrame with a row for each configuration: its parameters, "at", and for
        each metric its mean, "<metric>_std" and "<metric>_noise"."""
        rows: list[Mapping[str, Json]] = []
        for config, at, metrics in self._rows():
            row = dict(config) if at is None else {**config, "at": at}
            for name, found in metrics.items():
                row |= {name: found["mean"]}
                row |= {f"{name}_std": found["std"], f"{name}_noise": found["noise"]}
            rows.append(row)
        return data_frame(rows)

    def to_json(self) -> list[dict[str, Json]]:
        """Return for each configuration "params", "at", and by metric "mean", "std" and "noise"."""
        rows = self._rows()
        return [{"params": config, "at": at, "metrics": found} for config, at, found in rows]

    def _rows(self) -> Iterator[tuple[Config, float | None, dict[str, dict[str, float]]]]:
        """Yield each configuration with its budget and the numbers of each metric."""
        parts = {"mean": self.mean, "std": self.std, "noise": self.noise}
        for place, config in enumerate(self.configs):
            metrics = {
                name: {part: float(values[place, column]) for part, values in parts.items()}
                for column, name in enumerate(self.names)
            }
            yield config, None if self.at is None else self.at[place], metrics


def predict_configs(
    policy: Policy,
    history: History,
    configs: Mapping[str, Json] | Sequence[Mapping[str, Json]],
    at: float | Sequence[float] | None,
) -> Predictions:
    """Predict configurations after the budget ``at``, one for all or one each; None is the full
    budget."""
    listed: object = [configs] if isinstance(configs, Mapping) else configs
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise StudyError(
            f"configs is {configs!r}; it must be a configuration or a list of them, such as"
            " [{'lr': 0.001}]"
        )
    if not listed:
        raise StudyError("there are no configurations to predict; give a list of at least one")
    problem = history.problem
    valid = [problem.space.validate(config) for config in listed]
    budgets = _budgets(problem, at, len(valid))
    points = ForecastPoints(valid, budgets)
    with one_thread():
        columns = policy.forecast(history, points, history.rng("forecast"))
        if columns:
            shown = None if problem.budget is None else tuple(budgets.tolist())
            return Predictions.of(valid, shown, columns)
    method = Method.from_json(history.method).name
    predicting = predicting_methods()
    if method in predicting:
        raise StudyError(f"method {method!r} has no finite result to learn from; run trials first")
    raise MethodError(
        f"method {method!r} has no model that could predict; these have one:"
        f" {', '.join(predicting)}"
    )


def _budgets(problem: Problem, at: float | Sequence[float] | None, count: int) -> Array:
    """Return the budget of each configuration (k,), checked."""
    if at is None:
        return np.full(count, problem.full_budget)
    if problem.budget is None:
        raise StudyError(f"at={at!r}: this study has no training budget; leave `at` out")
    given = list(at) if isinstance(at, Sequence) else [at] * count
    if len(given) != count:
        raise StudyError(
            f"at has {len(given)} budgets for {count} configurations; give one for all, or one each"
        )
    for budget in given:
        if not is_finite(budget) or not 0 < budget <= problem.budget.maximum:
            raise StudyError(
                f"at={budget!r}; it must be above 0 and at most {problem.budget.maximum:g}, the"
                " full budget"
            )
    return np.array(given, dtype=float)


def data_frame(rows: Sequence[JsonObject]) -> "pandas.DataFrame":
    """Return rows as a pandas data frame; `StudyError` without pandas."""
    try:
        import pandas
    except ImportError:
        raise StudyError("dataframe needs pandas: pip install pandas") from None
    return pandas.DataFrame(rows)
