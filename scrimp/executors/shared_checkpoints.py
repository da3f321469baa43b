"""Checkpoints in a place that all machines reach by URL: a bucket, a file server, any file system that fsspec knows.

Objectives work in a folder of their own machine. A report uploads what it commits before it is delivered; whoever takes the trial
up downloads it. A state counts once its mark is there, which is written last: a half-uploaded one is never read.

    s3://bucket/checkpoints/digits-1c2d/trial-000007/step-9/…          the files
    s3://bucket/checkpoints/digits-1c2d/trial-000007/step-9.complete   the mark
"""

import contextlib
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from scrimp.errors import StorageError, StudyError
from scrimp.executors.checkpoint_folder import CheckpointFolder

__all__ = ["SharedCheckpoints", "check_url", "shared_trials"]

MARK = ".complete"


class SharedCheckpoints:
    """The committed states of one trial under ``url``."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise StorageError(f"checkpoints at {url!r} need fsspec ({error}): pip install 'scrimp[ray]'") from error
        self._files, self._root = url_to_fs(url)

    @staticmethod
    def of(url: str, folder: Path) -> "SharedCheckpoints":
        """The states of the trial that has ``folder`` on this machine: study and trial keep their names under ``url``."""
        return SharedCheckpoints(f"{url.rstrip('/')}/{folder.parent.name}/{folder.name}")

    def steps(self) -> list[str]:
        """Names of the complete states, oldest first."""
        if not self._files.exists(self._root):
            return []
        self._files.invalidate_cache()
        names = [str(path).rpartition("/")[2] for path in self._files.ls(self._root, detail=False)]
        found = [name.removesuffix(MARK) for name in names if name.endswith(MARK)]
        return sorted(found, key=_step)

    def fetch(self, folder: Path, begin: float = float("inf")) -> None:
        """Put the newest state committed at or before ``begin`` into ``folder``, as `CheckpointFolder` keeps it."""
        usable = [name for name in self.steps() if _step(name) <= begin]
        if not usable or (folder / usable[-1]).is_dir():
            return
        unfinished = folder / f"unfinished-{usable[-1]}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        self._files.get(f"{self._root}/{usable[-1]}/", f"{unfinished}/", recursive=True)
        os.replace(unfinished, folder / usable[-1])

    def push(self, folder: Path) -> None:
        """Upload the newest state of ``folder``, unless it is there."""
        newest = CheckpointFolder(folder).committed
        if newest is None or newest[1].name in self.steps():
            return
        place = f"{self._root}/{newest[1].name}"
        self._files.makedirs(place, exist_ok=True)
        self._files.put(f"{newest[1]}/", f"{place}/", recursive=True)
        self._files.pipe_file(f"{place}{MARK}", b"")

    def prune(self) -> None:
        """Remove all but the newest state."""
        for name in self.steps()[:-1]:
            with contextlib.suppress(OSError):
                self._files.rm(f"{self._root}/{name}{MARK}")  # first: what has no mark is not read
                self._files.rm(f"{self._root}/{name}", recursive=True)

    def remove(self) -> int:
        """Delete everything; return the bytes that were freed."""
        freed = 0
        with contextlib.suppress(FileNotFoundError):
            for name in self.steps():
                self._files.rm(f"{self._root}/{name}{MARK}")
            freed = int(self._files.du(self._root))
            self._files.rm(self._root, recursive=True)
        return freed


def shared_trials(url: str, root: Path) -> set[int]:
    """The trials with anything under ``url``, of the study whose checkpoints are in ``root`` on this machine."""
    study = SharedCheckpoints(f"{url.rstrip('/')}/{root.name}")
    if not study._files.exists(study._root):
        return set()
    names = [str(path).rstrip("/").rpartition("/")[2] for path in study._files.ls(study._root, detail=False)]
    numbers = [name.removeprefix("trial-") for name in names if name.startswith("trial-")]
    return {int(number) for number in numbers if number.isdigit()}


def check_url(url: str) -> None:
    """Refuse what is no URL, or holds a password: the study records it, for everybody who reads the study to see."""
    try:
        parts = urlsplit(url)
        secret = parts.password
    except (ValueError, AttributeError, TypeError):
        raise StudyError("checkpoints must be a URL such as s3://bucket/runs or file:///shared/runs") from None
    if secret is not None:
        raise StudyError(
            f"checkpoints at {parts.scheme}://{parts.hostname} come with a password; leave it out of the URL, "
            "and give it to fsspec by its configuration files or environment variables"
        )
    if not parts.scheme:
        raise StudyError(f"checkpoints is {url!r}; it must be a URL such as s3://bucket/runs or file:///shared/runs")


def _step(name: str) -> float:
    return float(name.removeprefix("step-"))
