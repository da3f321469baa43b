"""All trials of a study as a table: one row each, for data frames."""

from typing import Any

from scrimp.errors import StudyError
from scrimp.history.history import History

__all__ = ["trial_frame"]


def trial_frame(history: History) -> Any:
    """A pandas DataFrame with one row per trial, parameters in columns ``params_<name>``."""
    try:
        import pandas
    except ImportError:
        raise StudyError(
            "dataframe needs pandas, which is not installed; pip install pandas"
        ) from None
    rows = []
    for trial in history.trials:
        row: dict[str, Any] = {
            "number": trial.id,
            "value": trial.value,
            "best": trial.best,
            "last": trial.value,
            "status": trial.status,
            "budget": trial.budget,
        }
        row |= {f"params_{name}": value for name, value in trial.config.items()}
        row |= {"started": trial.started, "ended": trial.ended, "message": trial.message}
        rows.append(row)
    return pandas.DataFrame(rows)
