"""Reading where others may write: a plain file is opened as it is, links are not followed, and pipes not waited for.

with open_plain(path) as file:
    content = file.read()
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from scrimp.errors import StorageError

__all__ = ["open_plain"]


def open_plain(path: Path) -> BinaryIO:
    """The file, open for reading; `StorageError` when it is a pipe, a folder or a device, `OSError` when it is a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(
            f"{path} is not a plain file, so scrimp did not write it: remove it, or restore a backup"
        )
    return open(descriptor, "rb")
