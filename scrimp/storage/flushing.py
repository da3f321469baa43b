"""Making files durable: a file's content first, then its name in the folder. After that a power cut
takes neither.

A tree is flushed files first, then its folders from the inside out; its own name is durable once
the folder above is flushed.
"""

import ctypes
import errno
import os
import sys
from pathlib import Path

__all__ = ["flush_file", "flush_folder", "flush_tree", "make_folders", "write_flushed"]

MANY = 32
"""From this number of files on one flush of the whole file system is quicker than one for each,
where there is such a call."""

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""What network file systems say that flush no folders."""


def flush_file(path: Path) -> None:
    """Wait until the content of the file at ``path`` is on disk."""
    _flush(path, os.O_NOFOLLOW)


def flush_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on disk; nothing happens where folders cannot be
    flushed."""
    try:
        _flush(folder, os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        _to_disk(descriptor)
    finally:
        os.close(descriptor)


def _to_disk(descriptor: int) -> None:
    """Not only into the cache of the disk, where fsync ends on macOS."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # a file system that knows no such call
            pass
    os.fsync(descriptor)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file and wait until its content is on disk; its name is durable after
    `flush_folder`."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        _to_disk(file.fileno())


def flush_tree(folder: Path) -> None:
    """Wait until a folder with all it holds is on disk."""
    files, folders = [], []
    for inner, _, names in os.walk(folder):
        folders.append(Path(inner))
        files += [Path(inner) / name for name in names]
    if len(files) >= MANY and _flushed_at_once(folder):
        return
    for path in files:
        if not path.is_symlink():  # a link has no content of its own
            flush_file(path)
    for place in reversed(folders):
        flush_folder(place)


def make_folders(folder: Path) -> None:
    """Make a folder, and those above it that are missing, so that their names are on disk."""
    missing = []
    while not folder.is_dir() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        flush_folder(new.parent)


def _flushed_at_once(folder: Path) -> bool:
    """Flush the whole file system of ``folder`` in one call (Linux); False where there is none."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        call = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return False
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if call(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)
    return True
