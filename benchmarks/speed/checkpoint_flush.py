"""Measure the cost of a report with a checkpoint, with ``durable="all"`` and ``durable="log"``.

    python benchmarks/run.py checkpoint_flush [--folder .] [--reports 40]

One trial reports after each save, on SQLite, for checkpoints of several sizes and numbers of files.
The last column is the minimum cost of a durable copy: a bare copy of the same files by the standard
library, with one flush for each file and one for the folder. Figures are medians in milliseconds of
wall time, on the disk that holds ``--folder``.
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

SIZES = ((1, 1_000), (1, 1_000_000), (1, 100_000_000), (100, 10_000))
"""Number of files, and bytes of each."""


def reports(folder: Path, durable: str, shape: tuple[int, int], count: int) -> list[float]:
    """Return the seconds of each report."""
    import scrimp

    taken: list[float] = []
    study = scrimp.create_study(
        f"{durable}-{shape[0]}-{shape[1]}",
        scrimp.Space(x=scrimp.Float(0, 1)),
        budget=scrimp.Budget("epoch", 1, count),
        method="random",
        storage=f"sqlite:///{folder}/flush.db",
        seed=0,
    )

    def objective(trial: Any) -> None:
        for _ in trial.steps():
            save(trial.checkpoint_dir, shape)
            began = time.perf_counter()
            trial.report(1.0)
            taken.append(time.perf_counter() - began)

    study.optimize(objective, n_trials=1, durable=durable, progress=False)
    return taken


def save(folder: Path, shape: tuple[int, int]) -> None:
    """Write a checkpoint that differs from the one before."""
    number, size = shape
    for file in range(number):
        (folder / f"part-{file}").write_bytes(os.urandom(min(size, 1000)) * max(size // 1000, 1))


def bare(folder: Path, shape: tuple[int, int]) -> float:
    """Return the seconds to copy the files and to flush them and the folder."""
    source, target = folder / "source", folder / "target"
    for each in (source, target):
        shutil.rmtree(each, ignore_errors=True)
    source.mkdir()
    save(source, shape)
    began = time.perf_counter()
    shutil.copytree(source, target)
    for path in [*target.iterdir(), target]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return time.perf_counter() - began


def main() -> None:
    """Print one row per size."""
    parser = argparse.ArgumentParser(description="What a report with a checkpoint costs.")
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--reports", type=int, default=40)
    options = parser.parse_args()
    print("files x bytes        durable=all   durable=log   bare copy and flush    (ms, median)")
    for shape in SIZES:
        count = options.reports if shape[0] * shape[1] < 1e7 else max(options.reports // 5, 3)
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            folder = Path(scratch).absolute()
            rows = [
                statistics.median(reports(folder, durable, shape, count))
                for durable in ("all", "log")
            ]
            rows.append(statistics.median(bare(folder, shape) for _ in range(count)))
        print(
            f"{shape[0]:4} x {shape[1]:<12}" + "".join(f"{1000 * row:14.2f}" for row in rows),
            flush=True,
        )


if __name__ == "__main__":
    main()
