"""What file systems do and do not promise: where SQLite must not go, and how files come to stay through a power cut.

On network file systems the locks and the shared memory of SQLite are not shared, and files get damaged.

A file survives a power cut once its content is flushed, and its name once the folder that holds it is flushed: files first, then
folders from the inside out, then the folder above. `flush_tree` does that for a whole folder, `make_folders` for new folders.
"""

import contextlib
import ctypes
import errno
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from scrimp.errors import StorageError

__all__ = ["check_local", "file_system", "flush_file", "flush_folder", "flush_tree", "make_folders"]

MANY = 32
"""From this number of files on one flush of the whole file system is quicker than one for each, where there is such a call."""

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES)

MOUNTS = Path("/proc/self/mountinfo")  # Linux only: elsewhere nothing is known, and nothing refused

NETWORK = re.compile(
    r"(fuse\.)?(nfs\d?|cifs|smb\d?|smbfs|smbnetfs|ncpfs|afs|coda|9p|lustre|gpfs|mmfs|beegfs|ceph|pvfs2|orangefs|panfs"
    r"|glusterfs|sshfs|s3fs|gcsfuse|rclone|juicefs|moosefs|mfs|davfs|goofys|blobfuse2?)"
)


def file_system(path: Path, mounts: str) -> str | None:
    """The type of file system ``path`` lies on, given the text of /proc/self/mountinfo; None when it does not say.

    A line reads ``36 35 98:0 /root /mount/point options optional-fields - type source super-options``.
    """
    target = path.resolve()
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator or len(left.split()) < 5:
            continue
        place = left.split()[4]
        for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            place = place.replace(code, character)
        mount = Path(place)
        if target.is_relative_to(mount) and (found is None or len(mount.parts) >= found[0]):
            found = len(mount.parts), right.split()[0]  # of two mounts on one place, the later hides the earlier
    return None if found is None else found[1]


def check_local(path: Path) -> None:
    """`StorageError` when ``path`` is on a network file system."""
    try:
        mounts = MOUNTS.read_text()
    except OSError:
        return
    kind = file_system(path, mounts)
    if kind is not None and NETWORK.fullmatch(kind):
        raise StorageError(
            f"{path} is on a network file system ({kind}), where SQLite databases get damaged; use a local disk, a "
            f"PostgreSQL server (postgresql://user@host/database), or a journal folder (journal:///{path.with_suffix('')})"
        )


def flush_file(descriptor: int) -> None:
    """Wait until the content of an open file is on the disk itself, not in its cache."""
    if sys.platform == "darwin":  # its fsync leaves the data in the drive's cache
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def flush_folder(folder: Path) -> None:
    """Make the names in a folder last; nothing happens where folders cannot be flushed (Windows, some network file systems)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except (PermissionError, IsADirectoryError):  # Windows opens no folders
        return
    try:
        with _unless_unsupported():
            flush_file(descriptor)
    finally:
        os.close(descriptor)


def flush_tree(folder: Path) -> None:
    """Make a folder last with all it holds; its own name lasts when the folder above is flushed."""
    files, folders = [], []
    for inner, _, names in os.walk(folder):
        folders.append(Path(inner))
        files += [Path(inner) / name for name in names]
    if len(files) >= MANY and _flushed_at_once(folder):
        return
    for path in files:
        if not path.is_symlink():  # a link has no content of its own
            descriptor = os.open(path, os.O_RDONLY)
            try:
                flush_file(descriptor)
            finally:
                os.close(descriptor)
    for place in reversed(folders):
        flush_folder(place)


def make_folders(folder: Path) -> None:
    """Make a folder and those above it, so that their names last."""
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


@contextlib.contextmanager
def _unless_unsupported() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
