"""Measure the cost of a decision in checkpoint selection: 200 checkpoints, 100 tasks.

    OPENBLAS_NUM_THREADS=1 python benchmarks/run.py selection_cost

The figures are CPU seconds of `Selection.ask` with a refit and between refits, and the peak memory
so far: with 2,000 scattered scores, and with 1,000 scores of five whole tasks, as when the cheap
tasks were measured first.
"""

import resource
import time

import numpy as np

import scrimp

CHECKPOINTS, TASKS = 200, 100


def table(rng: np.random.Generator) -> np.ndarray:
    """Return a complete table (K, J): levels, a curve with its peak inside, and noise."""
    x = np.linspace(0.0, 1.0, CHECKPOINTS)[:, None]
    return (
        0.3
        + 0.4 * rng.random(TASKS)
        + 0.2 * x * (1.5 - x)
        + 0.01 * rng.normal(size=(CHECKPOINTS, TASKS))
    )


def seconds(scores: np.ndarray, cells: np.ndarray) -> list[float]:
    """Return the CPU seconds of four decisions in turn, the first of which fits the model.

    The scores are these cells (n,) of the flattened table.
    """
    steps, tasks = (
        [1000 * (row + 1) for row in range(CHECKPOINTS)],
        [f"task{column}" for column in range(TASKS)],
    )
    selection = scrimp.create_selection(
        "cost", checkpoints=steps, tasks=tasks, storage="memory://", seed=0
    )
    for row, column in zip(*np.unravel_index(cells, scores.shape), strict=True):
        selection.tell(steps[row], tasks[column], float(scores[row, column]))
    spent = []
    for _ in range(4):
        started = time.process_time()
        step, task = selection.ask()
        spent.append(time.process_time() - started)
        selection.tell(step, task, float(scores[steps.index(step), tasks.index(task)]))
    return spent


def main() -> None:
    rng = np.random.default_rng(0)
    scores = table(rng)
    scattered = rng.choice(scores.size, 2000, replace=False)
    whole = np.arange(scores.size).reshape(scores.shape)[:, :5].ravel()
    for name, cells in (("2,000 scattered scores", scattered), ("five whole tasks", whole)):
        refit, *between = seconds(scores, cells)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{name}: {refit:.2f} with a refit, {min(between):.3f} between, at most {memory:.0f} MB"
        )


if __name__ == "__main__":
    main()
