"""What a selection's model believes of every cell and of every checkpoint's mean, as arrays and as
a data frame.

    belief = selection.posterior()
    # (K, J): the score of each checkpoint on each task
    belief.mean, belief.std
    belief.average_mean, belief.average_std            # (K,): the weighted mean over tasks
    belief.dataframe()                                 # one row per checkpoint and task

It is about the scores of a complete table: where a cell was measured, its mean is the score and its
standard deviation zero; elsewhere the deviation is that of the score, noise included. The average
is exact: what the cells have in common counts once.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.json_values import Json
from scrimp.selection.row_means import RowMeans
from scrimp.selection.score_table import Checkpoint, Mask
from scrimp.surrogates.surrogate import Array

if TYPE_CHECKING:
    import pandas

__all__ = ["TablePosterior", "posterior_of"]


@dataclass(frozen=True, eq=False)
class TablePosterior:
    """Means and standard deviations of all scores, in the units in which they are told.

    The answer is the arg max of ``average_mean`` among the checkpoints measured at least once; the
    second opinion that of ``smooth_average``, the same mean without the luck of single checkpoints.
    """

    checkpoints: tuple[Checkpoint, ...]
    tasks: tuple[str, ...]
    mean: Array  # (K, J)
    std: Array  # (K, J)
    average_mean: Array  # (K,)
    average_std: Array  # (K,)
    smooth_average: Array  # (K,)
    measured: Mask  # (K, J)

    def __repr__(self) -> str:
        best = int(np.argmax(np.where(self.measured.any(axis=1), self.average_mean, -np.inf)))
        return (
            f"Posterior({len(self.checkpoints)} checkpoints x {len(self.tasks)} tasks, best average"
            f" {self.average_mean[best]:.5g} ± {self.average_std[best]:.2g} at checkpoint"
            f" {self.checkpoints[best]!r})"
        )

    def records(self) -> list[dict[str, Json]]:
        """One record per checkpoint and task: checkpoint, task, mean, std, measured."""
        return [
            {
                "checkpoint": checkpoint,
                "task": task,
                "mean": float(self.mean[row, column]),
                "std": float(self.std[row, column]),
                "measured": bool(self.measured[row, column]),
            }
            for row, checkpoint in enumerate(self.checkpoints)
            for column, task in enumerate(self.tasks)
        ]

    def averages(self) -> list[dict[str, Json]]:
        """One record per checkpoint: checkpoint, average_mean, average_std, smooth_average,
        measured (cells)."""
        numbers = (self.average_mean, self.average_std, self.smooth_average)
        names = ("average_mean", "average_std", "smooth_average")
        return [
            {
                "checkpoint": checkpoint,
                **{name: float(values[row]) for name, values in zip(names, numbers, strict=True)},
                "measured": int(self.measured[row].sum()),
            }
            for row, checkpoint in enumerate(self.checkpoints)
        ]

    def dataframe(self, *, averages: bool = False) -> "pandas.DataFrame":
        """The records as a pandas data frame: of all cells, or of the checkpoints' averages."""
        try:
            import pandas
        except ImportError:
            raise StudyError(
                "dataframe needs pandas, which is not installed; pip install pandas"
            ) from None
        return pandas.DataFrame(self.averages() if averages else self.records())


def posterior_of(means: RowMeans) -> TablePosterior:
    """The posterior that row means rest on."""
    table, fitted, posterior = means.table, means.fitted, means.posterior
    spread = np.sqrt(posterior.score_variance) * np.abs(table.scales) * fitted.units.unit
    variance = np.diag(means.covariance_of(np.arange(table.shape[0])))
    return TablePosterior(
        table.checkpoints,
        table.tasks,
        np.where(table.seen, table.scores, fitted.mean()),
        np.where(table.seen, 0.0, spread),
        means.measured,
        np.sqrt(np.maximum(variance, 0.0)),
        means.underlying,
        table.seen,
    )
