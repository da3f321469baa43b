"""Making files durable: a file's content first, then its name in the folder. After that a power cut takes neither."""

import os
from pathlib import Path

__all__ = ["flush_file", "flush_folder", "write_flushed"]


def flush_file(path: Path) -> None:
    """Wait until the content of the file at ``path`` is on disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def flush_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file and wait until its content is on disk; its name is durable after `flush_folder`."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
