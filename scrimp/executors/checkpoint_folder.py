"""Where a trial keeps its checkpoints, and which of them counts.

Every attempt has a folder of its own beside the trial's place. The objective saves into ``work``; a
report commits what was saved before it, as ``step-N``, flushed to disk before the report is sent.
The log says how far each attempt was listened to: a state beyond that does not count. So whoever
takes the trial up gets the state of the last report that counted, a kill between save and report
repeats at most one step, and a worker that lingers after it was given up can spoil nothing its
successor reads.

    trial-000007-1/step-9/      the state after 9 units of budget, as the first attempt reported it
    trial-000007-2/work/        what the objective of the second attempt reads and writes
    trial-000007-2/step-10/     the state after 10
    trial-000007/step-9/        written before attempts had folders of their own; still read
"""

import contextlib
import errno
import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

from scrimp.errors import CheckpointError
from scrimp.executors.copying import Listing, copy_tree, scan
from scrimp.storage.flushing import flush_folder, flush_tree, make_folders

__all__ = [
    "FULL",
    "PLACE",
    "CheckpointFolder",
    "Vouched",
    "attempt_folder",
    "newest_state",
    "prune_trial",
    "remove_trial",
    "step_text",
]

Vouched = Mapping[int, float]
"""For each attempt of a trial the highest step that was reported while it was listened to
(`History.vouched`)."""

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)
"""What a disk says that has no room or takes nothing."""

PLACE = re.compile(r"trial-(\d{6,})(-\d+)?")
"""The folders of a trial: one per attempt, and one without a number from before attempts had their
own."""

ROOM = 1 << 20
"""Bytes that a disk takes unless it is full."""

logger = logging.getLogger("scrimp")


def step_text(step: float) -> str:
    """A step in full, whole numbers without a point: what folders and variables say.

    >>> step_text(9.0), step_text(12345678.0), step_text(0.5)
    ('9', '12345678', '0.5')
    """
    return str(int(step)) if float(step).is_integer() else repr(float(step))


def attempt_folder(trial: Path, attempt: int) -> Path:
    """The folder of an attempt of the trial whose place is ``trial``; attempt 0 stands for what was
    written before."""
    return trial.with_name(f"{trial.name}-{attempt}") if attempt else trial


def newest_state(
    trial: Path, vouched: Vouched, begin: float = float("inf")
) -> tuple[float, Path] | None:
    """The state with the highest step at or before ``begin`` that the log vouches for, with its
    step."""
    return max(_states(trial, vouched, begin), default=None)


def _states(trial: Path, vouched: Vouched, begin: float) -> list[tuple[float, Path]]:
    limits = {0: max(vouched.values(), default=0.0), **vouched}
    return [
        (step, path)
        for attempt, limit in sorted(limits.items())
        for step, path in _steps(attempt_folder(trial, attempt))
        if step <= min(limit, begin)
    ]


class CheckpointFolder:
    """The checkpoints of the trial whose place is ``trial``, as attempt number ``attempt`` sees
    them.

    With ``flush`` a commit returns when the state is on disk; without, a power cut may take it.
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
        """The newest step this attempt committed, and its folder."""
        return max(_steps(self.home), default=None)

    @property
    def holds_state(self) -> bool:
        """Whether ``work`` has anything in it."""
        return self.work.is_dir() and any(self.work.iterdir())

    def open_work(self) -> Path:
        """``work``, made when it is not there."""
        with self._explained():
            self._make_home()
            self.work.mkdir(exist_ok=True)
        return self.work

    def _make_home(self) -> None:
        if self._flush:
            make_folders(self.home)
        else:
            self.home.mkdir(parents=True, exist_ok=True)

    def prepare(
        self,
        begin: float,
        vouched: Vouched | None = None,
        continue_from: Path | None = None,
        parent_vouched: Vouched | None = None,
    ) -> float:
        """Make ``work`` hold the newest state that counts at or before ``begin``; return its step,
        0 when there is none.

        Where nobody says what the log vouches for, every earlier attempt counts. A trial without a
        state of its own begins with the newest one of the trial at ``continue_from``.
        """
        earlier = range(1, self.attempt)
        for attempt in earlier:
            shutil.rmtree(attempt_folder(self.trial, attempt) / "work", ignore_errors=True)
        known = dict.fromkeys((0, *earlier), begin) if vouched is None else vouched
        own = newest_state(self.trial, known, begin)
        with self._explained():
            if own is not None:
                self._begin_with(own[1])
            elif continue_from is not None:
                self._begin_with_parent(
                    continue_from, {1: float("inf")} if parent_vouched is None else parent_vouched
                )
        self._saved = scan(self.work)
        return 0.0 if own is None else own[0]

    def _begin_with(self, state: Path) -> bool:
        """Copy a state into ``work``; False when it was removed meanwhile."""
        self._make_home()
        shutil.rmtree(self.work, ignore_errors=True)
        copy_tree(state, self.work)
        if state.is_dir():  # it is removed by renaming it first, so all of it was there
            return True
        shutil.rmtree(self.work, ignore_errors=True)
        return False

    def _begin_with_parent(self, parent: Path, vouched: Vouched) -> None:
        """The parent may be running: where it removes a state it has a newer one, whose report is
        durable too."""
        for _ in range(20):
            found = newest_state(parent, vouched)
            if found is None and vouched:
                last, step = max(vouched), max(vouched.values())
                newer = [
                    state
                    for later in range(last, last + 20)
                    for state in _steps(attempt_folder(parent, later))
                ]
                found = min((state for state in newer if state[0] > step), default=None)
            if found is None or self._begin_with(found[1]):
                return

    def commit(self, step: float) -> None:
        """Keep what ``work`` holds as the state after ``step``; nothing to do when nothing was
        saved since the last commit.

        Earlier states stay until `prune`: the report that goes with this one is not durable yet.
        The first report of a step counts, and so does its state: once its report is durable it is
        not replaced. `CheckpointError` when the disk refuses.
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
                shutil.rmtree(
                    unfinished, ignore_errors=True
                )  # half a copy would only fill the disk
                raise
        self._saved = listing
        self._name(left_out)

    def prune(self, step: float) -> None:
        """Now that the report of ``step`` counts, the states before it are needed no more."""
        self._durable = max(self._durable, step)
        if not (self.home / f"step-{step_text(step)}").is_dir():
            return
        for other, path in [*_steps(self.home), *_steps(self.trial)]:
            if path.parent == self.trial or other != step:
                _vanish(path)
        for attempt in range(1, self.attempt):
            _vanish(attempt_folder(self.trial, attempt))

    def close(self) -> None:
        """The attempt is over: what was saved since its last report is kept by nobody."""
        shutil.rmtree(self.work, ignore_errors=True)

    def trouble(self, error: BaseException | None = None) -> CheckpointError | None:
        """Whether the disk of the checkpoints is full or read-only, judging by an error and by a
        file written now."""
        while error is not None:
            if isinstance(error, CheckpointError):
                return error
            if isinstance(error, OSError) and error.errno in FULL and self._about_us(error):
                return self._refusal(error)
            error = error.__cause__ or error.__context__
        probe = self.home / f"room-{uuid.uuid4().hex}"
        try:
            if self.home.is_dir():
                probe.write_bytes(bytes(ROOM))
        except OSError as found:
            return self._refusal(found) if found.errno in FULL else None
        finally:
            with contextlib.suppress(OSError):
                probe.unlink(missing_ok=True)
        return None

    def _about_us(self, error: OSError) -> bool:
        """An error of an open file names none: then whoever saves here is believed to have failed
        at it."""
        if error.filename is None:
            return self.work.is_dir()
        return isinstance(error.filename, str) and Path(error.filename).is_relative_to(self.home)

    def _refusal(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"checkpoints cannot be written to {self.home.parent}: {error.strerror or error}; no"
            " trial has failed: make room or mend the disk, or name another folder with"
            " SCRIMP_CHECKPOINTS, and run again"
        )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._refusal(error) from error

    def _name(self, left_out: Mapping[str, str]) -> None:
        """Say what is not kept, each kind once."""
        for name, reason in left_out.items():
            if reason not in self._named:
                self._named.add(reason)
                logger.warning(
                    "the checkpoint of %s goes without %r: it is %s", self.trial.name, name, reason
                )


def prune_trial(trial: Path, vouched: Vouched) -> None:
    """Now that nobody runs a trial, its newest state that counts is all it needs."""
    newest = newest_state(trial, vouched)
    for attempt in (0, *vouched) if newest is not None else ():
        for step, path in _steps(attempt_folder(trial, attempt)):
            if newest is not None and step <= newest[0] and path != newest[1]:
                _vanish(path)


def remove_trial(trial: Path, attempts: int) -> int:
    """Delete the checkpoints of all ``attempts`` of a trial; return the bytes that were freed."""
    return sum(
        _vanish(attempt_folder(trial, attempt), measure=True) for attempt in range(attempts + 1)
    )


def _steps(folder: Path) -> list[tuple[float, Path]]:
    """The states in the folder of an attempt."""
    steps = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            with contextlib.suppress(ValueError):
                if entry.name.startswith("step-"):
                    steps.append((float(entry.name.removeprefix("step-")), Path(entry.path)))
    return steps


def _vanish(folder: Path, measure: bool = False) -> int:
    """Remove a folder so that nobody sees half of it; its bytes, if somebody asks. Of two who try,
    one succeeds."""
    doomed = folder.with_name(f"removed-{uuid.uuid4().hex}-{folder.name}")
    try:
        os.replace(folder, doomed)
    except OSError:
        return 0
    size = sum(entry.stamp[0] for entry in scan(doomed).values()) if measure else 0
    shutil.rmtree(doomed, ignore_errors=True)
    return size
