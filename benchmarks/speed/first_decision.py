"""Measure the cost of the first decision on a large history, and the quality of its model.

    OPENBLAS_NUM_THREADS=1 python benchmarks/run.py first_decision --trials 1000 --dimensions 6 20

Every history is told to a study in memory, as after an import. The figures are CPU seconds of the
first decision, of the first decision with a fit that uses all data from its first step (`whole_up_to`
out of reach), each twice and in turn, and of the decision after it. The quality of the model is its
evidence, log p(losses), per observation; a difference of 0.01 does not change decisions.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import scrimp
from scrimp.gp import marginal_likelihood
from scrimp.gp.columns import Column
from scrimp.suggesters.model_settings import ModelSettings, loss_model
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_transform import _evidence

PROBLEMS: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "bowl": lambda x, rng: (
        ((x - 0.3) ** 2 * np.arange(1, x.shape[1] + 1)).sum(1) + 0.01 * rng.standard_normal(len(x))
    ),
    "waves": lambda x, rng: (
        np.sin(5 * x[:, 0]) * np.cos(3 * x[:, 1]) + x[:, 2] + 0.1 * rng.standard_normal(len(x))
    ),
    "steep": lambda x, rng: np.exp(3 * ((x[:, :3] - 0.4) ** 2).sum(1)),
    "rough": lambda x, rng: (
        np.sin(20 * x[:, 0]) + np.abs(x[:, 1] - 0.5) + 0.02 * rng.standard_normal(len(x))
    ),
    "noise": lambda x, rng: rng.standard_normal(len(x)),
    "crowded": lambda x, rng: np.sqrt(((x - 0.3) ** 2 * np.arange(1, x.shape[1] + 1)).sum(1)),
}
WHOLE = 10**9


def rows(name: str, count: int, dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """Return configurations (n, d) in the unit cube and losses (n,)."""
    rng = np.random.default_rng(0)
    x = rng.random((count, dimension))
    if name == "crowded":  # half of them near the optimum, as in a real study
        near = count // 2
        x[-near:] = np.clip(0.3 + 0.05 * rng.standard_normal((near, dimension)), 0.0, 1.0)
    return x, PROBLEMS[name](x, rng)


def study_of(x: np.ndarray, y: np.ndarray) -> scrimp.Study:
    """Return a study that was told all of them."""
    space = scrimp.Space({f"x{column}": scrimp.Float(0.0, 1.0) for column in range(x.shape[1])})
    study = scrimp.create_study("history", space, metric="loss", storage="memory://", seed=0)
    for row, loss in zip(x.tolist(), y.tolist(), strict=True):
        study.enqueue({f"x{column}": value for column, value in enumerate(row)})
        study.tell(study.ask(), loss)
    return study


def seconds(study: scrimp.Study) -> float:
    """Return the CPU seconds of an ask."""
    started = time.process_time()
    study.ask()
    return time.process_time() - started


def evidence(x: np.ndarray, y: np.ndarray) -> float:
    """Return log p(losses) per observation under a model fitted from scratch."""
    data = Data(x, y)
    fitted = loss_model((Column(),) * x.shape[1], ModelSettings()).fit(
        data, np.random.default_rng(0)
    )
    return _evidence(fitted, data) / len(y)


def measure(name: str, count: int, dimension: int) -> None:
    """Print one line of figures."""
    x, y = rows(name, count, dimension)
    usual = marginal_likelihood.PARTIAL_FIT
    large = usual.whole_up_to
    first: dict[int, list[float]] = {large: [], WHOLE: []}
    later, found = [], {}
    for _ in range(2):
        for limit in (large, WHOLE):
            marginal_likelihood.PARTIAL_FIT = replace(usual, whole_up_to=limit)
            study = study_of(x, y)
            first[limit].append(seconds(study))
            later.append(seconds(study))
    for limit in (large, WHOLE):
        marginal_likelihood.PARTIAL_FIT = replace(usual, whole_up_to=limit)
        found[limit] = evidence(x, y)
    marginal_likelihood.PARTIAL_FIT = usual
    quick, whole = min(first[large]), min(first[WHOLE])
    print(
        f"{name:8} n = {count}, d = {dimension:2}: first {quick:.2f} s, with a whole fit"
        f" {whole:.2f} s ({whole / quick:.1f} times), later {min(later):.2f} s; evidence per"
        f" observation {found[large]:.4f}, {found[WHOLE]:.4f} ({found[large] - found[WHOLE]:+.4f})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[6, 20])
    parser.add_argument("--problems", nargs="+", choices=sorted(PROBLEMS), default=sorted(PROBLEMS))
    asked = parser.parse_args()
    for dimension in asked.dimensions:
        for name in asked.problems:
            measure(name, asked.trials, dimension)


if __name__ == "__main__":
    main()
