"""Find the best of 40 checkpoints over a dozen benchmarks with a tenth of the evaluations, and
compare with all of them.

Run it twice: the second time it resumes from its storage and evaluates nothing again.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from digits import BENCHMARKS, CHECKPOINTS, train

import scrimp


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="digits-"))
    folder.mkdir(parents=True, exist_ok=True)
    train(folder)

    def evaluate(step: int, benchmark: str) -> float:
        return BENCHMARKS[benchmark](folder, step)

    selection = scrimp.create_selection(
        "digits",
        checkpoints=CHECKPOINTS,
        tasks=list(BENCHMARKS),
        storage=f"sqlite:///{folder}/scrimp.db",
        load_if_exists=True,
        seed=0,
    )
    answer = selection.run(evaluate, share=0.1)
    measured = int(selection.scores.seen.sum())
    print(
        f"{measured} of {len(CHECKPOINTS) * len(BENCHMARKS)} cells evaluated; take checkpoint"
        f" {answer.checkpoint}"
    )
    print(
        f"expected mean score {answer.expected_score:.4f} ± {answer.standard_error:.4f}, expected"
        f" loss {answer.expected_loss:.4f}"
    )

    full = np.array(
        [[evaluate(step, benchmark) for benchmark in BENCHMARKS] for step in CHECKPOINTS]
    )
    means = dict(zip(CHECKPOINTS, full.mean(axis=1).tolist(), strict=True))
    best = max(means, key=lambda step: means[step])
    print(
        f"the full grid says: checkpoint {best} with {means[best]:.4f}; the chosen one has"
        f" {means[answer.checkpoint]:.4f}"
    )
    print(
        f"lost: {means[best] - means[answer.checkpoint]:.4f}   by taking the last:"
        f" {means[best] - means[CHECKPOINTS[-1]]:.4f}"
    )

    for name in ("grid", "curve", "confidence"):
        picture = getattr(scrimp.plots, f"selection_{name}")(selection)
        picture.write_html(folder / f"{name}.html", include_plotlyjs="directory")
    print(f"checkpoints, log and pictures are in {folder}")


if __name__ == "__main__":
    main()
