"""Checkpoints in a place that all machines reach by URL: a bucket, a file server, any file system
that fsspec knows.

Objectives work in a folder of their own machine. A report uploads what it commits before it is
delivered; whoever takes the trial up downloads it. A state counts once its mark is there, which is
written last: a half-uploaded one is never read.

    s3://bucket/checkpoints/digits-5f0c…/trial-000007-2/step-9/…          the files, as the second
                                                                          attempt left them
    s3://bucket/checkpoints/digits-5f0c…/trial-000007-2/step-9.complete   the mark
"""

import contextlib
import os
import re
import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from scrimp.errors import StorageError, StudyError
from scrimp.executors.checkpoint_folder import PLACE, CheckpointFolder, Vouched, attempt_folder
from scrimp.history.vetting import shortened
from scrimp.storage.flushing import flush_folder, flush_tree, make_folders

__all__ = ["SharedCheckpoints", "check_url", "shared_trials"]

MARK = ".complete"
STATE = re.compile(r"step-\d+(\.\d+)?(e[+-]?\d+)?")

SCHEMES = ("file", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hdfs", "sftp")
"""Where checkpoints may be. fsspec knows other schemes: some fetch any address, some run code that
a file holds."""

MORE = "SCRIMP_CHECKPOINT_SCHEMES"
"""The variable that adds schemes, with commas between them."""


class SharedCheckpoints:
    """The committed states of one trial under ``url``, of all its attempts."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise StorageError(
                f"checkpoints at {url!r} need fsspec ({error}): pip install 'scrimp[ray]'"
            ) from error
        check_url(url)
        self._files, self._root = url_to_fs(url)

    @staticmethod
    def of(url: str, folder: Path) -> "SharedCheckpoints":
        """The states of the trial that has ``folder`` on this machine: study and trial keep their
        names under ``url``."""
        return SharedCheckpoints(f"{url.rstrip('/')}/{folder.parent.name}/{folder.name}")

    def _home(self, attempt: int) -> str:
        """Where an attempt keeps its states; 0 stands for what was written before attempts had
        folders of their own."""
        return f"{self._root}-{attempt}" if attempt else self._root

    def steps(self, attempt: int) -> list[str]:
        """Names of the complete states of an attempt, oldest first."""
        self._files.invalidate_cache()
        home = self._home(attempt)
        if not self._files.exists(home):
            return []
        names = [str(path).rpartition("/")[2] for path in self._files.ls(home, detail=False)]
        found = [name.removesuffix(MARK) for name in names if name.endswith(MARK)]
        return sorted((name for name in found if STATE.fullmatch(name)), key=_step)

    def fetch(self, folder: Path, vouched: Vouched, begin: float = float("inf")) -> None:
        """Bring the newest state that counts at or before ``begin`` here, to where `newest_state`
        finds it for ``folder``."""
        limits = {0: max(vouched.values(), default=0.0), **vouched}
        usable = [
            (_step(name), attempt, name)
            for attempt, limit in limits.items()
            for name in self.steps(attempt)
            if _step(name) <= min(limit, begin)
        ]
        if usable:
            _, attempt, name = max(usable)
            self._bring(f"{self._home(attempt)}/{name}", attempt_folder(folder, attempt) / name)

    def _bring(self, place: str, target: Path) -> None:
        if target.is_dir():
            return
        unfinished = target.with_name(f"unfinished-{target.name}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        there = self._content(place)
        for path in there.values():
            (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
        self._files.get(list(there), [str(unfinished / path) for path in there.values()])
        os.replace(unfinished, target)

    def _content(self, place: str) -> dict[str, PurePosixPath]:
        """The files of a state and their paths within it; whoever writes there may have chosen
        names that lead elsewhere."""
        root = PurePosixPath(place)
        found = {}
        for path, details in self._files.find(place, detail=True).items():
            within = PurePosixPath(path)
            if ".." in within.parts or not within.is_relative_to(root) or details.get("islink"):
                raise StorageError(
                    f"the checkpoint {place} holds {path!r}, which leads out of it; scrimp writes"
                    " no such files: it is not read"
                )
            found[path] = within.relative_to(root)
        return found

    def push(self, folder: CheckpointFolder) -> None:
        """Upload the newest state an attempt committed, unless it is there; durable when it
        returns."""
        newest = folder.committed
        if newest is None or newest[1].name in self.steps(folder.attempt):
            return
        place = f"{self._home(folder.attempt)}/{newest[1].name}"
        here = isinstance(self._files.protocol, str | tuple) and "file" in self._files.protocol
        # a file system of this machine keeps what is flushed; the others keep what they acknowledge
        if here:
            make_folders(Path(place))
        self._files.makedirs(place, exist_ok=True)
        self._files.put(f"{newest[1]}/", f"{place}/", recursive=True)
        if here:
            flush_tree(Path(place))
        self._files.pipe_file(f"{place}{MARK}", b"")
        if here:
            flush_folder(Path(place).parent)

    def prune(self, attempt: int) -> None:
        """Remove all but the newest state of an attempt, now that it counts."""
        stale = [(attempt, name) for name in self.steps(attempt)[:-1]]
        stale += [(other, name) for other in range(attempt) for name in self.steps(other)]
        for other, name in stale:
            with contextlib.suppress(OSError):
                self._files.rm(
                    f"{self._home(other)}/{name}{MARK}"
                )  # first: what has no mark is not read
                self._files.rm(f"{self._home(other)}/{name}", recursive=True)

    def remove(self, attempts: int) -> int:
        """Delete the states of all ``attempts``; return the bytes that were freed."""
        freed = 0
        for attempt in range(attempts + 1):
            with contextlib.suppress(FileNotFoundError):
                for name in self.steps(attempt):
                    self._files.rm(f"{self._home(attempt)}/{name}{MARK}")
                size = int(self._files.du(self._home(attempt)))
                self._files.rm(self._home(attempt), recursive=True)
                freed += size
        return freed


def shared_trials(url: str, root: Path) -> set[int]:
    """The trials with anything under ``url``, of the study whose checkpoints are in ``root`` on
    this machine."""
    study = SharedCheckpoints(f"{url.rstrip('/')}/{root.name}")
    if not study._files.exists(study._root):
        return set()
    names = [
        str(path).rstrip("/").rpartition("/")[2]
        for path in study._files.ls(study._root, detail=False)
    ]
    found = (PLACE.fullmatch(name) for name in names)
    return {int(match[1]) for match in found if match is not None}


def check_url(url: str) -> None:
    """Refuse what is no URL, holds a password (the study records it, for all its readers to see),
    is a chain of file systems (``::``), or has a scheme that is not in `SCHEMES`.
    """
    try:
        parts = urlsplit(url)
        secret = parts.password
    except (ValueError, AttributeError, TypeError):
        raise StudyError(
            "checkpoints must be a URL such as s3://bucket/runs or file:///shared/runs"
        ) from None
    if secret is not None:
        raise StudyError(
            f"checkpoints at {parts.scheme}://{parts.hostname} come with a password; leave it out"
            " of the URL, and give it to fsspec by its configuration files or environment"
            " variables"
        )
    if not parts.scheme:
        raise StudyError(
            f"checkpoints is {url!r}; it must be a URL such as s3://bucket/runs or"
            " file:///shared/runs"
        )
    more = [word.strip() for word in os.environ.get(MORE, "").split(",")]
    if "::" in url or "://" not in url or parts.scheme not in (*SCHEMES, *filter(None, more)):
        raise StudyError(
            f"checkpoints is {shortened(url)}; it must be one URL, not a chain, of a file system"
            f" that only keeps files: {', '.join(SCHEMES)}. Name others that you trust in {MORE}"
        )


def _step(name: str) -> float:
    return float(name.removeprefix("step-"))
