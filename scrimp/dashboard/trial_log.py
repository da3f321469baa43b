"""The end of what a trial's script wrote, where its log lies on this machine."""

import os
import stat

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
        # Scripts write there, perhaps as somebody else: a link could show any file, and a pipe
        # would never end.
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            size = file.seek(0, 2)
            file.seek(max(size - MOST, 0))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return text if size <= MOST else text.partition("\n")[2]
