"""Where a trial keeps its checkpoints, and which of them is committed.

The objective saves into ``work-A``, a folder of its attempt. A report commits what was saved before it, as ``step-N``. Whoever
takes the trial up again gets the committed state back, so a kill between save and report repeats at most one step and never
loses one; and a worker that lingers after it was given up cannot spoil what its successor reads.

    folder/
      work-2/      what the objective of the second attempt reads and writes
      step-9/      the state after 9 units of budget, as it was reported
"""

import os
import shutil
from pathlib import Path

__all__ = ["CheckpointFolder", "step_text"]


def step_text(step: float) -> str:
    """A step in full, whole numbers without a point: what folders and variables say.

    >>> step_text(9.0), step_text(12345678.0), step_text(0.5)
    ('9', '12345678', '0.5')
    """
    return str(int(step)) if float(step).is_integer() else repr(float(step))


class CheckpointFolder:
    """The checkpoints of one trial under ``root``, as attempt number ``attempt`` sees them."""

    def __init__(self, root: Path, attempt: int = 1) -> None:
        self.root = root
        self.work = root / f"work-{attempt}"
        self._saved: frozenset[tuple[str, int, int]] = frozenset()

    @property
    def committed(self) -> tuple[float, Path] | None:
        """The newest committed step and its folder."""
        return max(self._steps(), default=None)

    @property
    def holds_state(self) -> bool:
        """Whether ``work`` has anything in it."""
        return self.work.is_dir() and any(self.work.iterdir())

    def prepare(self, begin: float, continue_from: Path | None = None) -> float:
        """Make ``work`` hold the newest state committed at or before ``begin``; return its step, 0 when there is none."""
        for earlier in self.root.glob("work-*"):
            shutil.rmtree(earlier, ignore_errors=True)
        usable = [(step, path) for step, path in self._steps() if step <= begin]
        step, source = max(usable, default=(0.0, None))
        if source is None and continue_from is not None:
            parent = CheckpointFolder(continue_from).committed
            source = None if parent is None else parent[1]
        if source is not None:
            shutil.copytree(source, self.work)
        self._saved = _listing(self.work)
        return step

    def commit(self, step: float) -> None:
        """Keep what ``work`` holds as the state after ``step``; nothing to do when nothing was saved since the last commit.

        Earlier states stay until `prune`: the report that goes with this one is not durable yet.
        """
        listing = _listing(self.work)
        if listing == self._saved:
            return
        target, unfinished = self.root / f"step-{step_text(step)}", self.root / f"unfinished-{self.work.name}"
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(self.work, unfinished)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(unfinished, target)
        self._saved = listing

    def prune(self, step: float) -> None:
        """Now that the report of ``step`` is durable, the states before it are needed no more."""
        if (self.root / f"step-{step_text(step)}").is_dir():
            for other, path in self._steps():
                if other != step:
                    shutil.rmtree(path, ignore_errors=True)

    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())

    def remove(self) -> int:
        """Delete everything; return the bytes that were freed."""
        doomed = self.root.with_name(f"removed-{self.root.name}")
        try:
            os.replace(self.root, doomed)  # of two who try, one succeeds
        except OSError:
            return 0
        freed = CheckpointFolder(doomed).size()
        shutil.rmtree(doomed, ignore_errors=True)
        return freed

    def _steps(self) -> list[tuple[float, Path]]:
        steps = []
        for entry in self.root.glob("step-*"):
            try:
                steps.append((float(entry.name.removeprefix("step-")), entry))
            except ValueError:
                continue
        return steps


def _listing(folder: Path) -> frozenset[tuple[str, int, int]]:
    """Names, sizes and times of the files below ``folder``: equal when nothing was saved in between."""
    files = []
    for path in folder.rglob("*"):
        if path.is_file():
            stat = path.stat()
            files.append((str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns))
    return frozenset(files)
