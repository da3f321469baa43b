"""Checkpoints at a URL that all machines reach: a bucket, a file server, any file system of fsspec.

Objectives work in a local folder. A report uploads its checkpoint before it is delivered; the next
attempt downloads it. A state counts once its mark exists, which is written last, so a partial
upload is never read.

    s3://bucket/checkpoints/digits-5f0c…/trial-000007-2/step-9/…          files of the second attempt
    s3://bucket/checkpoints/digits-5f0c…/trial-000007-2/step-9.complete   the mark
"""

import contextlib
import os
import re
import shutil
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from scrimp.errors import StorageError, StudyError
from scrimp.executors.checkpoint_folder import (
    ATTEMPT_FOLDER,
    CheckpointFolder,
    Vouched,
    attempt_folder,
)
from scrimp.storage.durable_files import flush_folder, flush_tree, make_folders
from scrimp.study_log.messages import shortened

MARK = ".complete"
STATE = re.compile(r"step-\d+(\.\d+)?(e[+-]?\d+)?")

SCHEMES = ("file", "memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "hdfs", "sftp")
"""Schemes that only store files. Others of fsspec fetch any address or run code from a file."""

SCHEMES_VARIABLE = "SCRIMP_CHECKPOINT_SCHEMES"
"""The variable that adds schemes, separated by commas."""


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
        """Return the states of the trial whose folder on this machine is ``folder``."""
        return SharedCheckpoints(f"{url.rstrip('/')}/{folder.parent.name}/{folder.name}")

    def _home(self, attempt: int) -> str:
        """Return the address of the states of an attempt."""
        return f"{self._root}-{attempt}"

    def steps(self, attempt: int) -> list[str]:
        """Return the names of the complete states of an attempt, oldest first."""
        self._files.invalidate_cache()
        names = self._names(self._home(attempt))
        found = [name.removesuffix(MARK) for name in names if name.endswith(MARK)]
        return sorted((name for name in found if STATE.fullmatch(name)), key=_step)

    def _names(self, place: str) -> list[str]:
        if not self._files.exists(place):
            return []
        found = self._files.ls(place, detail=False)
        return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def fetch(self, folder: Path, vouched: Vouched, begin: float = float("inf")) -> None:
        """Download the newest state up to ``begin`` that counts, to where `newest_state` looks."""
        usable = [
            (_step(name), attempt, name)
            for attempt, limit in vouched.items()
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
        """Map the files of a state to their paths; `StorageError` for names that lead elsewhere."""
        root = PurePosixPath(place)
        found = {}
        for path, details in self._files.find(place, detail=True).items():
            within = PurePosixPath(path)
            leads_out = ".." in within.parts or not within.is_relative_to(root)
            if leads_out or details.get("islink") or details.get("type", "file") != "file":
                raise StorageError(
                    f"the checkpoint {place} holds {path!r}, which leads out of it or is no plain"
                    " file; scrimp writes no such files: it is not read"
                )
            found[path] = within.relative_to(root)
        return found

    def push(self, folder: CheckpointFolder) -> None:
        """Upload the newest state of an attempt, unless it is there; flushed on return."""
        newest = folder.committed
        if newest is None or newest[1].name in self.steps(folder.attempt):
            return
        place = f"{self._home(folder.attempt)}/{newest[1].name}"
        here = isinstance(self._files.protocol, str | tuple) and "file" in self._files.protocol
        # A local file system keeps what is flushed; others keep what they acknowledge.
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
        """Remove all states except the newest of this attempt, whose report is durable."""
        stale = [(attempt, name) for name in self.steps(attempt)[:-1]]
        stale += [(other, name) for other in range(1, attempt) for name in self.steps(other)]
        for other, name in stale:
            with contextlib.suppress(OSError):
                # The mark first, since a state without one is not read.
                self._files.rm(f"{self._home(other)}/{name}{MARK}")
                self._files.rm(f"{self._home(other)}/{name}", recursive=True)

    def remove(self, attempts: int) -> int:
        """Delete the states of all ``attempts``; return the number of bytes freed."""
        freed = 0
        for attempt in range(1, attempts + 1):
            with contextlib.suppress(FileNotFoundError):
                for name in self.steps(attempt):
                    self._files.rm(f"{self._home(attempt)}/{name}{MARK}")
                size = int(self._files.du(self._home(attempt)))
                self._files.rm(self._home(attempt), recursive=True)
                freed += size
        return freed


def shared_trials(url: str, root: Path) -> set[int]:
    """Return the trials with checkpoints under ``url``; ``root`` is the study's local folder."""
    study = SharedCheckpoints(f"{url.rstrip('/')}/{root.name}")
    found = (ATTEMPT_FOLDER.fullmatch(name) for name in study._names(study._root))
    return {int(match[1]) for match in found if match is not None}


def check_url(url: str) -> None:
    """Raise `StudyError` for a URL with a password, a chain of file systems (``::``) or a scheme
    that is not in `SCHEMES`.

    The study records the URL, so everyone who can read the study could read the password.
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
    more = [word.strip() for word in os.environ.get(SCHEMES_VARIABLE, "").split(",")]
    if "::" in url or "://" not in url or parts.scheme not in (*SCHEMES, *filter(None, more)):
        raise StudyError(
            f"checkpoints is {shortened(url)}; it must be one URL, not a chain, of a file system"
            f" that only keeps files: {', '.join(SCHEMES)}. Name others that you trust in {SCHEMES_VARIABLE}"
        )


def _step(name: str) -> float:
    return float(name.removeprefix("step-"))
