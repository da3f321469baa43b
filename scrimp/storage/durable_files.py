"""Files that survive a power cut, safe reading of files that others may have written, and disks of the
network.

A file becomes durable in two steps: flush its content, then the folder that holds its name. In a
tree, files are flushed first, then folders from the inside out; the name of the tree itself is
durable once its parent folder is flushed.

`open_plain` opens regular files only. It follows no links and does not wait for pipes. `write_whole`
writes a file or leaves it as it was; `fill_standard_streams` keeps what is printed out of files.

`check_local` refuses network file systems, on which SQLite files get damaged: its locks and shared
memory do not work there.
"""

import ctypes
import errno
import os
import re
import shutil
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from scrimp.errors import StorageError

MIN_FILES_FOR_ONE_FLUSH = 32
"""From this number of files, one flush of the whole file system is faster than one per file, where
the system has such a call."""

BINARY = getattr(os, "O_BINARY", 0)
"""The flag for descriptors without translated line ends, which only Windows has."""

PLAIN = BINARY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags that follow no link and wait for no pipe, where the system has them."""

UNSUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""Errors of network file systems that cannot flush folders."""


def flush_file(path: Path) -> None:
    """Wait until the content of the file at ``path`` is on disk."""
    # Windows flushes only what is open for writing.
    access = os.O_RDWR | BINARY if sys.platform == "win32" else os.O_RDONLY | os.O_NOFOLLOW
    _flush(path, access)


def flush_folder(folder: Path) -> None:
    """Flush the names in ``folder`` to disk, on systems where folders can be flushed."""
    if sys.platform == "win32":
        return
    try:
        _flush(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        _to_disk(descriptor)
    finally:
        os.close(descriptor)


def _to_disk(descriptor: int) -> None:
    """Flush a descriptor to the disk. On macOS fsync only reaches the cache of the disk."""
    if sys.platform == "darwin":
        import fcntl

        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
        except OSError:  # a file system without this call
            pass
    os.fsync(descriptor)


def write_flushed(path: Path, content: bytes) -> None:
    """Write a new file and flush its content; `flush_folder` makes its name durable."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        _to_disk(file.fileno())


def fill_standard_streams() -> None:
    """Open the null device in place of each standard stream that is closed, as some services start.

    Otherwise the next file or connection gets its number: whatever is printed would land in a log.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number, so usually the one that is missing.
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            # Child processes inherit it, like any standard stream.
            os.set_inheritable(number, True)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that a user named, or leave what was there: a full disk cuts no file in half.

    The content goes into a file beside it, which then takes its name. What is no file (such as
    /dev/stdout), or may not be written, or is in a folder that takes none, is opened directly. Errors
    name ``path``.
    """
    place = path.resolve()
    # The place of a pipe, behind /dev/stdout, is no path: nothing is there.
    there = path.exists()
    may = all(os.access(one, os.W_OK) for one in (place, place.parent))
    direct = there and not (place.is_file() and may)
    target = path if direct else place.with_name(f".scrimp-{os.getpid()}-{id(content)}.part")
    try:
        target.write_bytes(content)
        if not direct:
            if there:
                shutil.copymode(place, target)
            os.replace(target, place)
    except OSError as error:
        if not direct:
            with suppress(OSError):
                target.unlink()
        raise OSError(error.errno, error.strerror, str(path)) from None


def flush_tree(folder: Path) -> None:
    """Wait until a folder and everything in it are on disk."""
    files, folders = [], []
    for inner, _, names in os.walk(folder):
        folders.append(Path(inner))
        files += [Path(inner) / name for name in names]
    if len(files) >= MIN_FILES_FOR_ONE_FLUSH and _flushed_at_once(folder):
        return
    for path in files:
        if not path.is_symlink():  # a link has no content of its own
            flush_file(path)
    for place in reversed(folders):
        flush_folder(place)


def make_folders(folder: Path) -> None:
    """Create a folder and its missing parents, and wait until their names are on disk."""
    missing = []
    while not folder.is_dir() and folder != folder.parent:
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        new.mkdir(exist_ok=True)
        flush_folder(new.parent)


def _flushed_at_once(folder: Path) -> bool:
    """Flush the whole file system of ``folder`` in one call; return False where there is none."""
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


def open_plain(path: Path) -> BinaryIO:
    """Open a file for reading; `StorageError` for pipes, folders, devices, `OSError` for links."""
    return open(plain_descriptor(path), "rb")


def plain_descriptor(path: str | Path) -> int:
    """Return a descriptor for reading a file; see `open_plain`."""
    descriptor = os.open(path, os.O_RDONLY | PLAIN)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(
            f"{path} is not a plain file, so scrimp did not write it: remove it, or restore a backup"
        )
    return descriptor


MOUNTS = Path("/proc/self/mountinfo")
"""The mounted file systems, on Linux; elsewhere nothing is known, and nothing refused."""

NETWORK = re.compile(
    r"(fuse\.)?(nfs\d?|cifs|smb\d?|smbfs|smbnetfs|ncpfs|afs|coda|9p|lustre|gpfs|mmfs|beegfs|ceph|pvfs2|orangefs|panfs"
    r"|glusterfs|sshfs|s3fs|gcsfuse|rclone|juicefs|moosefs|mfs|davfs|goofys|blobfuse2?)"
)


def file_system(path: Path, mounts: str) -> str | None:
    """Return the type of the file system of ``path``, given the text of /proc/self/mountinfo; None
    when it does not say.

    A line reads ``36 35 98:0 /root /mount/point options optional-fields - type source
    super-options``.
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
            # Of two mounts on one place, the later hides the earlier.
            found = len(mount.parts), right.split()[0]
    return None if found is None else found[1]


def check_local(path: Path) -> None:
    """Raise `StorageError` when ``path`` is on a network file system."""
    try:
        mounts = MOUNTS.read_text()
    except OSError:
        return
    kind = file_system(path, mounts)
    if kind is not None and NETWORK.fullmatch(kind):
        raise StorageError(
            f"{path} is on a network file system ({kind}), where SQLite databases get damaged; use"
            " a local disk, a PostgreSQL server (postgresql://user@host/database), or a journal"
            f" folder (journal:///{path.with_suffix('')})"
        )
