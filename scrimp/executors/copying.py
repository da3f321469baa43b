"""Copies of a folder in which somebody may still be writing.

Files and folders are copied. A link that stays inside the folder remains a link, so that
``latest -> epoch-9.pt`` holds in the copy too; one that leads to a file elsewhere is copied as that
file; one that leads to a folder elsewhere stays a link to it. What has no content to keep (pipes,
sockets, devices, links to nothing) and what may not be read is left out and named. A file that
vanishes meanwhile makes the copy look again, so that of two names for one state, the old or the
new, one is caught.

    listing, left_out = copy_tree(work, target)
"""

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FileEntry", "Listing", "copy_tree", "scan"]

BLOCK = 1 << 20

PASSES = 4
"""How often a copy looks again when files vanish; what is there then is kept."""

UNREADABLE = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EACCES,
    errno.EPERM,
    errno.ELOOP,
    errno.ENXIO,
    errno.ENODEV,
)


@dataclass(frozen=True)
class FileEntry:
    """One name in a folder: a file, folder or link, or something odd with the reason; equal while
    nothing was written."""

    kind: str
    stamp: tuple[int, int, int] = (0, 0, 0)
    text: str = ""


Listing = dict[str, FileEntry]
"""Names below a folder, parents first, to what they are."""


def scan(folder: Path) -> Listing:
    """What is below ``folder``; links are not followed into folders."""
    found: Listing = {}
    _scan(str(folder), os.path.realpath(folder), "", found)
    return found


def _scan(folder: str, root: str, prefix: str, found: Listing) -> None:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    except OSError as error:
        if prefix:
            found[prefix.rstrip("/")] = FileEntry(
                "odd", text=f"a folder that may not be read ({error.strerror})"
            )
        return
    for entry in entries:
        name = prefix + entry.name
        with contextlib.suppress(FileNotFoundError):  # it vanished just now
            found[name] = _entry(entry, root)
            if found[name].kind == "folder":
                _scan(entry.path, root, f"{name}/", found)


def _entry(entry: "os.DirEntry[str]", root: str) -> FileEntry:
    if entry.is_symlink():
        return _link(entry.path, root)
    status = entry.stat(follow_symlinks=False)
    if stat.S_ISREG(status.st_mode):
        return _file(status)
    return (
        FileEntry("folder")
        if stat.S_ISDIR(status.st_mode)
        else FileEntry("odd", text=_oddity(status.st_mode))
    )


def _link(path: str, root: str) -> FileEntry:
    text = os.readlink(path)
    try:
        status = os.stat(path)
    except OSError:
        return FileEntry("odd", text="a link to nothing")
    target = os.path.realpath(path)
    if target == root or target.startswith(root + os.sep):
        inside = (
            os.path.relpath(target, os.path.realpath(os.path.dirname(path)))
            if os.path.isabs(text)
            else text
        )
        return FileEntry("link", text=inside)
    if stat.S_ISREG(status.st_mode):
        return _file(status)
    return (
        FileEntry("link", text=target)
        if stat.S_ISDIR(status.st_mode)
        else FileEntry("odd", text=_oddity(status.st_mode))
    )


def _file(status: os.stat_result) -> FileEntry:
    return FileEntry("file", (status.st_size, status.st_mtime_ns, status.st_ino))


def _oddity(mode: int) -> str:
    for test, words in ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket")):
        if test(mode):
            return words
    return "a device"


def copy_tree(
    source: Path, target: Path, now: Listing | None = None
) -> tuple[Listing, dict[str, str]]:
    """Copy what ``source`` holds into the new folder ``target``; what was copied, and what was left
    out with the reason.

    ``now`` is what ``source`` held a moment ago, for whoever has looked. Raises OSError when
    ``target`` cannot be written.
    """
    os.mkdir(target)
    done: Listing = {}
    for look in range(PASSES):
        now = scan(source) if now is None or look else now
        for name in sorted(
            set(done) - set(now), reverse=True
        ):  # renamed or removed since the last look
            _discard(target / name, done.pop(name))
        left_out = {name: entry.text for name, entry in now.items() if entry.kind == "odd"}
        vanished = False
        for name, entry in now.items():
            if entry.kind == "odd" or done.get(name) == entry:
                continue
            reason = _copy_entry(f"{source}/{name}", f"{target}/{name}", entry)
            if reason is None:
                done[name] = entry
            else:
                left_out[name] = reason
                vanished = True
        if not vanished:
            break
    return done, left_out


def _copy_entry(source: str, target: str, entry: FileEntry) -> str | None:
    """Copy one entry; the reason when it cannot be read."""
    if entry.kind == "folder":
        os.makedirs(target, exist_ok=True)
    elif entry.kind == "link":
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        os.symlink(entry.text, target)
    else:
        try:  # never waits, should a pipe have taken the file's place
            descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            return (
                "a file that vanished while it was copied"
                if error.errno == errno.ENOENT
                else str(error.strerror)
            )
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return _oddity(status.st_mode)
            _write(descriptor, target, status)
        finally:
            os.close(descriptor)
    return None


def _write(source: int, target: str, status: os.stat_result) -> None:
    """Copy an open file, through bare descriptors: a checkpoint may be ten thousand small files."""
    mode = (
        stat.S_IMODE(status.st_mode) | 0o600
    )  # whoever may not read its copy could not go on from it
    copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        while data := os.read(source, BLOCK):
            while data:
                data = data[os.write(copy, data) :]
        if mode != 0o600:
            os.chmod(copy, mode)
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(copy)


def _discard(path: Path, entry: FileEntry) -> None:
    with contextlib.suppress(OSError):
        path.rmdir() if entry.kind == "folder" else path.unlink()
