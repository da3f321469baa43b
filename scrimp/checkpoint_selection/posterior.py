"""The posterior of every cell and of every checkpoint's mean, as arrays and as a data frame.

    belief = selection.posterior()
    belief.mean, belief.std                            # (K, J): of each checkpoint on each task
    belief.average_mean, belief.average_std            # (K,): of the weighted mean over tasks
    belief.latent_mean, belief.latent_std              # (K, J): of the model's function, noise-free
    belief.covariance(2000, "mmlu")                    # (K, J): of the function with one cell
    belief.predict([1500, 2500])                       # between checkpoints
    belief.length_scale, belief.noise                  # learned hyperparameters
    belief.dataframe()                                 # one row per checkpoint and task

``mean`` and ``std`` describe the scores of a complete table without sampling error. A measured cell
without a standard error has its score as mean and the standard deviation zero. Elsewhere the
deviation includes the noise of the task. The deviation of the average takes the correlations between
cells into account.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from scrimp.checkpoint_selection.methods import positions
from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import Checkpoint, Mask
from scrimp.errors import StudyError
from scrimp.json_values import Json
from scrimp.study.predict import data_frame
from scrimp.surrogates.surrogate import Array, object_at, value_at

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class StepPrediction:
    """The noise-free function at ``steps`` (S,): ``mean`` and ``std`` (S, J) by task, ``average_mean``
    and ``average_std`` (S,) of the weighted mean."""

    steps: Array
    mean: Array
    std: Array
    average_mean: Array
    average_std: Array


@dataclass(frozen=True, eq=False)
class TablePosterior:
    """Means and standard deviations of all scores, in the units in which they are told.

    The answer is the arg max of ``average_mean`` among the checkpoints measured at least once; the
    second opinion is that of ``smooth_average``, the mean without the luck of single checkpoints.
    """

    checkpoints: tuple[Checkpoint, ...]
    tasks: tuple[str, ...]
    mean: Array  # (K, J)
    std: Array  # (K, J)
    average_mean: Array  # (K,)
    average_covariance: Array  # (K, K)
    smooth_average: Array  # (K,)
    measured: Mask  # (K, J)
    means: RowMeans = field(repr=False)
    coordinate: str = "sqrt"
    """The axis of the length scale, see `methods.positions`."""

    @cached_property
    def average_std(self) -> Array:
        """The standard deviation of the averages (K,)."""
        return np.sqrt(np.maximum(np.diag(self.average_covariance), 0.0))

    @property
    def latent_mean(self) -> Array:
        """The mean of the noise-free function (K, J), at measured cells too."""
        return self.means.fitted.mean()

    @property
    def latent_std(self) -> Array:
        """The standard deviation of the noise-free function (K, J), at measured cells too."""
        return np.sqrt(self.means.fitted.variance)

    @property
    def noise(self) -> Array:
        """The learned standard deviation of scores about the function, per task (J,), without their
        sampling error."""
        return np.sqrt(self.means.fitted.noise)

    @property
    def hyperparameters(self) -> dict[str, float | tuple[float, ...]]:
        """All learned parameters by name, in model units; those per task as tuples."""
        named = object_at(self.means.fitted.state, "parameters")
        found: dict[str, float | tuple[float, ...]] = {}
        for name in named:
            values = np.array(value_at(named, name, tuple[float, ...]))
            plain = tuple((np.exp(values) if name.startswith("log_") else values).tolist())
            found[name.removeprefix("log_")] = plain[0] if len(plain) == 1 else plain
        return found

    @property
    def length_scale(self) -> float | None:
        """The learned length scale of the curve over checkpoints, as a share of the run in the
        coordinate of the method; None for checkpoints without an order."""
        known = self.hyperparameters
        names = ("shared_length", "own_length", "length")
        found = next((known[name] for name in names if name in known), None)
        return None if found is None else float(np.asarray(found))

    def covariance(self, checkpoint: Checkpoint, task: str) -> Array:
        """Return the covariance (K, J) of the noise-free function with its value at one cell."""
        fitted = self.means.fitted
        row, column = self.means.table.cell(checkpoint, task)
        units = fitted.units.unit * fitted.data.scales
        covariance = fitted.solution.covariance_with_cell(row, column)
        return np.asarray(covariance * units * units[column])

    def predict(self, steps: Sequence[float]) -> StepPrediction:
        """Predict the noise-free function at ``steps`` (S,) between the checkpoints."""
        table, fitted = self.means.table, self.means.fitted
        at = np.asarray(steps, dtype=np.float64)
        if table.steps is None:
            raise StudyError("predictions between checkpoints need checkpoints with an order")
        low, high = table.steps.min(), table.steps.max()
        if at.ndim != 1 or not ((at >= low) & (at <= high)).all():
            raise StudyError(
                f"steps is {steps!r}; it must be a list of steps from {low:g} to {high:g}, between the"
                " checkpoints"
            )
        further = fitted.extended(positions(table, self.coordinate, at))
        rows = np.arange(table.shape[0], table.shape[0] + len(at))
        weights = np.zeros((len(rows) + table.shape[0], table.shape[1]))
        weights[rows] = table.weights * fitted.data.scales * fitted.units.unit
        variance = np.diag(further.solution.combination(weights).covariance(rows))
        mean = further.mean()[rows]
        average = np.asarray(mean @ table.weights)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        return StepPrediction(at, mean, np.sqrt(further.variance[rows]), average, deviation)

    def __repr__(self) -> str:
        best = int(np.argmax(np.where(self.measured.any(axis=1), self.average_mean, -np.inf)))
        error = f" ± {self.average_std[best]:.2g}" if self.average_std[best] > 0.0 else ""
        return (
            f"Posterior({len(self.checkpoints)} checkpoints x {len(self.tasks)} tasks, best average"
            f" {self.average_mean[best]:.5g}{error} at checkpoint {self.checkpoints[best]!r})"
        )

    def records(self) -> list[dict[str, Json]]:
        """Return one record per checkpoint and task: checkpoint, task, mean, std, measured."""
        return [
            {
                "checkpoint": self.checkpoints[cell[0]],
                "task": self.tasks[cell[1]],
                **{name: getattr(self, name)[cell].item() for name in ("mean", "std", "measured")},
            }
            for cell in np.ndindex(self.mean.shape)
        ]

    def averages(self) -> list[dict[str, Json]]:
        """Return one record per checkpoint: checkpoint, average_mean, average_std, smooth_average,
        measured (cells)."""
        names = ("average_mean", "average_std", "smooth_average")
        return [
            {
                "checkpoint": checkpoint,
                **{name: float(getattr(self, name)[row]) for name in names},
                "measured": int(self.measured[row].sum()),
            }
            for row, checkpoint in enumerate(self.checkpoints)
        ]

    def dataframe(self, *, averages: bool = False) -> "pandas.DataFrame":
        """Return the records as a pandas data frame: of all cells, or of the averages."""
        return data_frame(self.averages() if averages else self.records())


def posterior_of(means: RowMeans, coordinate: str = "sqrt") -> TablePosterior:
    """Return the posterior of row means as arrays."""
    table, given = means.table, means.posterior
    return TablePosterior(
        table.checkpoints,
        table.tasks,
        given.true_mean,
        np.sqrt(given.true_variance) * np.abs(table.scales) * means.fitted.units.unit,
        means.measured,
        means.covariance_of(np.arange(table.shape[0])),
        means.underlying,
        table.seen,
        means,
        coordinate,
    )
