"""The checkpoints of a trial on disk: committed copies of its state, and which of them count.

Every attempt has its own folder. The objective saves into ``work``. A report commits what was saved
before it as ``step-N``, flushed to disk before the report is sent. The log records up to which step
each attempt was accepted; a state beyond that does not count. So the next attempt starts from the
state of the last accepted report, a kill between saving and reporting repeats at most one step, and
a worker that continues after it was replaced cannot change anything its successor reads.

    trial-000007-1/step-9/      the state after 9 units of budget, as the first attempt reported it
    trial-000007-2/work/        the folder in which the objective of the second attempt reads and writes
    trial-000007-2/step-10/     the state after 10

A commit copies a folder to which the objective may still be writing (`copy_tree`). Files and
folders are copied. A link inside the folder stays a link, so that ``latest -> epoch-9.pt`` is valid
in the copy too; a link to a file elsewhere is copied as that file; a link to a folder elsewhere
stays a link to it. Entries without content (pipes, sockets, devices, broken links) and unreadable
ones are left out with a warning. When a file vanishes while it is copied, the folder is scanned
again, so that a state that is being renamed is caught under its old or its new name.
"""

import contextlib
import errno
import logging
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scrimp.errors import CheckpointError
from scrimp.storage.durable_files import BINARY, flush_folder, flush_tree, make_folders

Vouched = Mapping[int, float]
"""For each attempt of a trial, the highest step that was reported while the attempt was accepted
(`History.vouched`)."""

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
"""Errors of a disk that is full or read-only."""

ATTEMPT_FOLDER = re.compile(r"trial-(\d{6,})-\d+")
"""The names of a trial's folders, one per attempt."""

PROBE_BYTES = 1 << 20
"""The size of a file that is written to find out whether the disk is full."""

logger = logging.getLogger("scrimp")


def step_text(step: float) -> str:
    """Format a step for names of folders and variables; whole numbers have no decimal point.

    >>> step_text(9.0), step_text(12345678.0), step_text(0.5)
    ('9', '12345678', '0.5')
    """
    return str(int(step)) if float(step).is_integer() else repr(float(step))


def attempt_folder(trial: Path, attempt: int) -> Path:
    """Return the folder of an attempt; ``trial``: the path of the trial's folders without it."""
    return trial.with_name(f"{trial.name}-{attempt}")


def newest_state(
    trial: Path, vouched: Vouched, begin: float = float("inf")
) -> tuple[float, Path] | None:
    """Return step and folder of the highest state up to ``begin`` that counts; None without one."""
    states = (
        (step, path)
        for attempt, limit in vouched.items()
        for step, path in _steps(attempt_folder(trial, attempt))
        if step <= min(limit, begin)
    )
    return max(states, default=None)


class CheckpointFolder:
    """The checkpoints of a trial as attempt number ``attempt`` sees them.

    ``trial`` is the path of the trial's folders without the attempt. With ``flush`` a commit
    returns when the state is on disk; otherwise a power cut may take it.
    """

    def __init__(self, trial: Path, attempt: int = 1, flush: bool = True) -> None:
        self.trial = trial
        self.home = attempt_folder(trial, attempt)
        self.work = self.home / "work"
        self.attempt = attempt
        self._flush = flush
        self._saved: Listing = {}
        self._durable = 0.0
        self._named: set[str] = set()

    @property
    def committed(self) -> tuple[float, Path] | None:
        """The newest step this attempt committed, and its folder; None without one."""
        return max(_steps(self.home), default=None)

    @property
    def holds_state(self) -> bool:
        """True when ``work`` holds any file."""
        return self.work.is_dir() and any(self.work.iterdir())

    def open_work(self) -> Path:
        """Return ``work``, created if necessary."""
        with self._explained():
            if self._flush:
                make_folders(self.home)
            self.work.mkdir(parents=True, exist_ok=True)
        return self.work

    def prepare(
        self,
        begin: float,
        vouched: Vouched | None = None,
        continue_from: Path | None = None,
        parent_vouched: Vouched | None = None,
    ) -> float:
        """Fill ``work`` with the newest state at or before ``begin`` that counts; return its step,
        0 without one.

        Without ``vouched`` every earlier attempt counts. A trial without a state of its own starts
        from the newest one of the trial at ``continue_from``.
        """
        earlier = range(1, self.attempt)
        for attempt in earlier:
            shutil.rmtree(attempt_folder(self.trial, attempt) / "work", ignore_errors=True)
        known = dict.fromkeys(earlier, begin) if vouched is None else vouched
        own = newest_state(self.trial, known, begin)
        with self._explained():
            if own is not None:
                self._begin_with(own[1])
            elif continue_from is not None:
                known = {1: float("inf")} if parent_vouched is None else parent_vouched
                self._begin_with_parent(continue_from, known)
        self._saved = scan(self.work)
        return 0.0 if own is None else own[0]

    def _begin_with(self, state: Path) -> bool:
        """Copy a state into ``work``; return False when it was removed meanwhile."""
        shutil.rmtree(self.open_work(), ignore_errors=True)
        copy_tree(state, self.work)
        # States are removed by renaming them first, so if it still exists, it was complete.
        if state.is_dir():
            return True
        shutil.rmtree(self.work, ignore_errors=True)
        return False

    def _begin_with_parent(self, parent: Path, vouched: Vouched) -> None:
        """Copy the newest state of the parent trial, which may be running. When the parent removes
        a state, it has a newer one, whose report is durable too."""
        for _ in range(20):
            found = newest_state(parent, vouched)
            if found is None and vouched:
                last, step = max(vouched), max(vouched.values())
                later = (attempt_folder(parent, number) for number in range(last, last + 20))
                newer = (state for folder in later for state in _steps(folder) if state[0] > step)
                found = min(newer, default=None)
            if found is None or self._begin_with(found[1]):
                return

    def commit(self, step: float) -> None:
        """Copy ``work`` as the state after ``step``, unless nothing was saved since the last
        commit.

        Earlier states stay until `prune`, since the report of this one is not durable yet. The
        first report of a step counts, and so does its state: once the report is durable, the state
        is not replaced. `CheckpointError` when the disk is full or fails.
        """
        now = scan(self.work)
        if step <= self._durable or now == self._saved:
            return
        target, unfinished = self.home / f"step-{step_text(step)}", self.home / "unfinished"
        with self._explained():
            shutil.rmtree(unfinished, ignore_errors=True)
            try:
                listing, left_out = copy_tree(self.work, unfinished, now)
                if self._flush:
                    flush_tree(unfinished)
                _vanish(target)
                os.replace(unfinished, target)
                if self._flush:
                    flush_folder(self.home)
            except OSError:
                # Half a copy would only fill the disk.
                shutil.rmtree(unfinished, ignore_errors=True)
                raise
        self._saved = listing
        self._name(left_out)

    def prune(self, step: float) -> None:
        """Remove the states before ``step``, whose report is durable now."""
        self._durable = max(self._durable, step)
        if not (self.home / f"step-{step_text(step)}").is_dir():
            return
        for other, path in _steps(self.home):
            if other != step:
                _vanish(path)
        for attempt in range(1, self.attempt):
            _vanish(attempt_folder(self.trial, attempt))

    def close(self) -> None:
        """End the attempt; files saved since its last report are discarded."""
        shutil.rmtree(self.work, ignore_errors=True)

    def trouble(self, error: BaseException | None = None) -> CheckpointError | None:
        """Return an error if the disk is full or read-only, by ``error`` and by writing a file."""
        while error is not None:
            if isinstance(error, CheckpointError):
                return error
            full = isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS
            if isinstance(error, OSError) and full and self._about_us(error):
                return self._refusal(error)
            error = error.__cause__ or error.__context__
        probe = self.home / f"room-{uuid.uuid4().hex}"
        try:
            if self.home.is_dir():
                probe.write_bytes(bytes(PROBE_BYTES))
        except OSError as found:
            return self._refusal(found) if found.errno in DISK_FULL_ERRORS else None
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return None

    def _about_us(self, error: OSError) -> bool:
        """Return whether an error concerns these checkpoints. Errors of open files name no file;
        they count when ``work`` exists."""
        if error.filename is None:
            return self.work.is_dir()
        return isinstance(error.filename, str) and Path(error.filename).is_relative_to(self.home)

    def _refusal(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"checkpoints cannot be written to {self.home.parent}: {error.strerror or error}; no"
            " trial has failed: free some space or fix the disk, or name another folder with"
            " SCRIMP_CHECKPOINTS, and run again"
        )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refusal(error) from error

    def _name(self, left_out: Mapping[str, str]) -> None:
        """Warn of entries that were left out, once for each reason."""
        for name, reason in left_out.items():
            if reason not in self._named:
                self._named.add(reason)
                words = "the checkpoint of %s leaves out %r: it is %s"
                logger.warning(words, self.trial.name, name, reason)


def prune_trial(trial: Path, vouched: Vouched) -> None:
    """Remove all states of a trial that is not running except the newest one that counts."""
    newest = newest_state(trial, vouched)
    for attempt in vouched if newest is not None else ():
        for step, path in _steps(attempt_folder(trial, attempt)):
            if newest is not None and step <= newest[0] and path != newest[1]:
                _vanish(path)


def remove_trial(trial: Path, attempts: int) -> int:
    """Delete the checkpoints of all ``attempts`` of a trial; return the number of bytes freed."""
    folders = (attempt_folder(trial, attempt) for attempt in range(1, attempts + 1))
    return sum(_vanish(folder, measure=True) for folder in folders)


def _steps(folder: Path) -> list[tuple[float, Path]]:
    """List the states in the folder of an attempt."""
    steps = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(ValueError):
                if entry.name.startswith("step-"):
                    steps.append((float(entry.name.removeprefix("step-")), Path(entry.path)))
    return steps


def _vanish(folder: Path, measure: bool = False) -> int:
    """Remove a folder in one visible step; return its size if ``measure`` is set. Of two processes
    that try, one succeeds."""
    doomed = folder.with_name(f"removed-{uuid.uuid4().hex}-{folder.name}")
    try:
        os.replace(folder, doomed)
    except OSError:
        return 0
    size = sum(entry.stamp[0] for entry in scan(doomed).values()) if measure else 0
    shutil.rmtree(doomed, ignore_errors=True)
    return size


COPY_BLOCK_BYTES = 1 << 20

MAX_COPY_SCANS = 4
"""The number of scans of a copy when files vanish; the last one is kept as it is."""

_UNREADABLE_NAMES = ("ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENXIO", "ENODEV")
UNREADABLE = {getattr(errno, name) for name in _UNREADABLE_NAMES}
"""Errors of entries that cannot be read."""


@dataclass(frozen=True)
class FileEntry:
    """One name in a folder: a file, folder, link or other entry with the reason to leave it out.
    Entries are equal while nothing was written."""

    kind: str
    stamp: tuple[int, int, int] = (0, 0, 0)
    text: str = ""


Listing = dict[str, FileEntry]
"""The names below a folder, parents first."""


def scan(folder: Path) -> Listing:
    """List everything below ``folder``; links to folders are not followed."""
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
            reason = f"a folder that may not be read ({error.strerror})"
            found[prefix.rstrip("/")] = FileEntry("odd", text=reason)
        return
    for entry in entries:
        name = prefix + entry.name
        # An entry may vanish during the scan.
        with contextlib.suppress(FileNotFoundError):
            found[name] = _entry(entry, root)
            if found[name].kind == "folder":
                _scan(entry.path, root, f"{name}/", found)


def _entry(entry: "os.DirEntry[str]", root: str) -> FileEntry:
    if entry.is_symlink():
        return _link(entry.path, root)
    status = entry.stat(follow_symlinks=False)
    return FileEntry("folder") if stat.S_ISDIR(status.st_mode) else _file(status)


def _link(path: str, root: str) -> FileEntry:
    text = os.readlink(path)
    try:
        status = os.stat(path)
    except OSError:
        return FileEntry("odd", text="a link to nothing")
    target = os.path.realpath(path)
    if target == root or target.startswith(root + os.sep):
        if os.path.isabs(text):
            text = os.path.relpath(target, os.path.realpath(os.path.dirname(path)))
        return FileEntry("link", text=text)
    return FileEntry("link", text=target) if stat.S_ISDIR(status.st_mode) else _file(status)


def _file(status: os.stat_result) -> FileEntry:
    if stat.S_ISREG(status.st_mode):
        return FileEntry("file", (status.st_size, status.st_mtime_ns, status.st_ino))
    return FileEntry("odd", text=_oddity(status.st_mode))


def _oddity(mode: int) -> str:
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def copy_tree(
    source: Path, target: Path, now: Listing | None = None
) -> tuple[Listing, dict[str, str]]:
    """Copy ``source`` into the new folder ``target``; return the entries that were copied, and
    those left out with the reasons.

    ``now`` is a scan of ``source``, if the caller has made one. Raises OSError when ``target``
    cannot be written.
    """
    os.mkdir(target)
    done: Listing = {}
    for look in range(MAX_COPY_SCANS):
        now = scan(source) if now is None or look else now
        # Entries that were renamed or removed since the last scan.
        for name in sorted(set(done) - set(now), reverse=True):
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
    """Copy one entry; return the reason when it cannot be read."""
    if entry.kind == "folder":
        os.makedirs(target, exist_ok=True)
    elif entry.kind == "link":
        with contextlib.suppress(FileNotFoundError):
            os.unlink(target)
        os.symlink(entry.text, target)
    else:
        # Without blocking, in case a pipe has replaced the file.
        try:
            descriptor = os.open(source, os.O_RDONLY | BINARY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            vanished = "a file that vanished while it was copied"
            return vanished if error.errno == errno.ENOENT else str(error.strerror)
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return _oddity(status.st_mode)
            _write(descriptor, target, status)
        finally:
            os.close(descriptor)
    return None


def _write(source: int, target: str, status: os.stat_result) -> None:
    """Copy an open file with plain descriptors: fast for checkpoints of many small files."""
    # The owner must be able to read the copy to resume from it.
    mode = stat.S_IMODE(status.st_mode) | 0o600
    copy = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | BINARY, 0o600)
    try:
        while data := os.read(source, COPY_BLOCK_BYTES):
            while data:
                data = data[os.write(copy, data) :]
        if os.utime in os.supports_fd:
            if mode != 0o600:
                os.chmod(copy, mode)
            os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(copy)
    if os.utime not in os.supports_fd:  # Windows
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _discard(path: Path, entry: FileEntry) -> None:
    with contextlib.suppress(OSError):
        path.rmdir() if entry.kind == "folder" else path.unlink()
