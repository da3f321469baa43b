"""The end of what a trial's script wrote, where its log lies on this machine."""

from scrimp.errors import StorageError
from scrimp.storage.plain_file import open_plain
from scrimp.tuning.study import Study

__all__ = ["trial_log"]

MOST = 20_000
"""Bytes shown at most: the last ones."""


def trial_log(study: Study, number: int) -> str:
    """The tail of the log beside the trial's checkpoints; empty when there is none."""
    folder = study.trial_folder(number)
    try:
        # Scripts write there, perhaps as somebody else: a link could show any file, and a pipe
        # would never end.
        with open_plain(folder.with_name(f"{folder.name}.log")) as file:
            size = file.seek(0, 2)
            file.seek(max(size - MOST, 0))
            text = file.read().decode(errors="replace")
    except (OSError, StorageError):
        return ""
    return text if size <= MOST else text.partition("\n")[2]
