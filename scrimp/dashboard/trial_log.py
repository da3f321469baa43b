"""The end of what a trial's script wrote, where its log lies on this machine."""

from scrimp.tuning.collection import checkpoint_folder
from scrimp.tuning.study import Study

__all__ = ["trial_log"]

MOST = 20_000
"""Bytes shown at most: the last ones."""


def trial_log(study: Study, number: int) -> str:
    """The tail of the log beside the trial's checkpoints; empty when there is none."""
    folder = checkpoint_folder(study._checkpoints(), number)
    path = folder.with_name(f"{folder.name}.log")
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(size - MOST, 0))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text if size <= MOST else text.partition("\n")[2]
