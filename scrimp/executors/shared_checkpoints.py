"""Checkpoints in a place that all machines reach by URL: a bucket, a file server, any file system that fsspec knows.

Objectives work in a folder of their own machine. A report uploads what it commits before it is delivered; whoever takes the trial
up downloads it. A state counts once its mark is there, which is written last: a half-uploaded one is never read.

    s3://bucket/checkpoints/digits-1c2d/trial-000007/step-9/…          the files
    s3://bucket/checkpoints/digits-1c2d/trial-000007/step-9.complete   the mark
"""

import contextlib
from pathlib import Path

from scrimp.errors import StorageError
from scrimp.executors.checkpoint_folder import CheckpointFolder

__all__ = ["SharedCheckpoints"]

MARK = ".complete"


class SharedCheckpoints:
    """The committed states of one trial under ``url``."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ImportError as error:
            raise StorageError(f"checkpoints at {url!r} need fsspec ({error}): pip install 'scrimp[ray]'") from error
        self._files, self._root = url_to_fs(url)

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
        if usable:
            target = folder / usable[-1]
            target.mkdir(parents=True, exist_ok=True)
            self._files.get(f"{self._root}/{usable[-1]}/", f"{target}/", recursive=True)

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


def _step(name: str) -> float:
    return float(name.removeprefix("step-"))
