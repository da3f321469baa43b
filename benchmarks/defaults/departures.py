"""Measure each setting in which scrimp's default differs from the published method.

    scrimp bench make curves --out tables && scrimp bench make transfer --out tables
    python benchmarks/run.py departures tables --out departures.jsonl --seeds 4
    python benchmarks/run.py departures tables --out departures.jsonl --report

Both values run with the same seeds in one process. Every run is saved when it ends, and an
interrupted comparison resumes. The report gives, for each difference, the mean over (task, seed)
pairs of the regret with the published value less that with the default, and its standard error:
above zero the default is better. The regret of functions is log10(value - optimum); that of curves
and transfer is defined as in `scrimp bench`.
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells
from scrimp.bench.regret_suite import function_cells
from scrimp.bench.results import Cell, read_runs, result_cell
from scrimp.bench.runner import run_cells
from scrimp.bench.transfer_suite import TransferSettings, transfer_cells

FUNCTIONS = ["branin", "hartmann6", "mixed", "noisy"]
TRIALS = 30
FULLS = 12
TRANSFER_TRIALS = 15
TRANSFER_TASKS = 6


@dataclass(frozen=True)
class Departure:
    """A default and the published value, on a suite: functions, curves or transfer."""

    suite: str
    default: str
    published: str


CHEAP = (
    Departure("functions", "tpe", "tpe:multivariate=false"),
    Departure("functions", "tpe", "tpe:spread=neighbours"),
    Departure("functions", "tpe", "tpe:share=0.15,weighting=equal"),
    Departure("functions", "tpe", "tpe:initial=20"),
    Departure("curves", "asha", "asha:cutoff=top"),
    Departure("curves", "asha", "asha:reduction=4"),
    Departure("curves", "hyperband", "hyperband:cutoff=top,bracket_rule=in-turn"),
    Departure("curves", "sync-hyperband", "sync-hyperband:rounding=down"),
    Departure("curves", "dehb", "dehb:rounding=down"),
    Departure("curves", "dehb", "dehb:vacancies=random"),
    Departure("curves", "median", "median:compare=best"),
    Departure("curves", "median", "median:among=ended"),
    Departure("curves", "bohb", "bohb:share=0.15,candidates=64"),
    Departure("curves", "bohb", "bohb:spread=observed,least_bandwidth=0.001,widening=3"),
    Departure("curves", "bohb", "bohb:avoid_running=false"),
)

COSTLY = (
    Departure("transfer", "portfolio", "portfolio:values=observed"),
    Departure("transfer", "tst-r", "tst-r:normalise=min-max"),
    Departure("transfer", "tst-r", "tst-r:incumbent=observed"),
    Departure("transfer", "tst-r", "tst-r:initial=1"),
    Departure("transfer", "taf-r", "taf-r:normalise=min-max"),
    Departure("transfer", "taf-r", "taf-r:initial=1"),
    Departure("transfer", "rgpe", "rgpe:samples=1000"),
    Departure("transfer", "rgpe", "rgpe:improvement=noisy"),
    Departure("transfer", "rgpe", "rgpe:variance=tst"),
    Departure("transfer", "rmogp", "rmogp:samples=1000"),
    Departure("transfer", "pogpe", "pogpe:experts=all"),
    Departure("functions", "gp-ei", "gp-ei:incumbent=observed"),
    Departure("functions", "gp-ei", "gp-ei:design=random"),
    Departure("functions", "gp-ucb", "gp-ucb:schedule=growing"),
    Departure("curves", "mobster-joint", "mobster-joint:random_fraction=0"),
    Departure("curves", "mobster-joint", "mobster-joint:margin=0.01,margin_unit=metric"),
    Departure("curves", "mobster-joint", "mobster-joint:cap=false"),
    Departure("curves", "mobster-joint", "mobster-joint:fresh_fits=true,refit_steps=50"),
    Departure("curves", "mobster-joint", "mobster-joint:resource_encoding=centred"),
    Departure("curves", "hypertune-indep", "hypertune-indep:wait_for_full=true"),
    Departure("curves", "hypertune-indep", "hypertune-indep:cutoff=delayed,full_rungs=true"),
    Departure("curves", "hypertune-indep", "hypertune-indep:combine=linear"),
    Departure("curves", "hypertune-indep", "hypertune-indep:weighting=cubed"),
    Departure("curves", "hypertune-indep", "hypertune-indep:pending=median"),
    Departure("curves", "hypertune-indep", "hypertune-indep:random_fraction=0.3"),
    Departure("curves", "hypertune-indep", "hypertune-indep:model=forest,pending=median"),
    Departure("curves", "dyhpo", "dyhpo:probability_sh=0"),
    Departure("curves", "dyhpo", "dyhpo:incumbent=observed"),
    Departure("curves", "dyhpo", "dyhpo:model=deep_kernel"),
    Departure("curves", "dyhpo", "dyhpo:initial=1"),
)


def cells(tables: Path, suite: str, methods: Sequence[str], seeds: int) -> list[Cell]:
    """Return the runs of some methods on one suite."""
    names = list(methods)
    if suite == "functions":
        return function_cells(names, FUNCTIONS, seeds, TRIALS)
    if suite == "curves":
        settings = CurveSuiteSettings(FULLS, 4)
        return curve_cells(tables / "curves.npz", names, ["all"], seeds, settings)
    settings = TransferSettings(TRANSFER_TRIALS, "full", tables / "worked-out")
    everything = transfer_cells(tables / "svm.npz", names, ["all"], 1, settings)
    tasks = sorted({cell.task for cell in everything})[:TRANSFER_TASKS]
    return transfer_cells(tables / "svm.npz", names, tasks, seeds, settings)


def plan(tables: Path, departures: Sequence[Departure], seeds: int) -> list[Cell]:
    """Return every run once, seeds outermost, in the order of the departures."""
    found = [
        cell
        for one in departures
        for cell in cells(tables, one.suite, (one.default, one.published), seeds)
    ]
    return sorted(dict.fromkeys(found), key=lambda cell: cell.seed)


def score(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the regret of a run halfway through and at its end."""
    regret = [1.0 if value is None else float(value) for value in record["regret"]]
    if record["suite"] == "functions":
        regret = [math.log10(max(value, 1e-8)) for value in regret]
    half = record["spent"].index(0.5) if "spent" in record else (len(regret) - 1) // 2
    return {"half": regret[half], "end": regret[-1]}


def differences(
    records: Sequence[Mapping[str, Any]], departures: Sequence[Departure]
) -> Iterator[tuple[Departure, dict[str, tuple[float, float, int]]]]:
    """Yield mean, standard error and number of pairs of published less default."""
    scores = {result_cell(record): score(record) for record in records}
    by_place: dict[tuple[str, str, str, int], dict[str, float]] = {
        (cell.suite, cell.method, f"{cell.table}/{cell.task}", cell.seed): found
        for cell, found in scores.items()
    }
    for one in departures:
        found: dict[str, tuple[float, float, int]] = {}
        for when in ("half", "end"):
            pairs = [
                by_place[(suite, one.published, task, seed)][when] - value[when]
                for (suite, method, task, seed), value in by_place.items()
                if (suite, method) == (one.suite, one.default)
                and (suite, one.published, task, seed) in by_place
            ]
            if len(pairs) > 1:
                error = float(np.std(pairs, ddof=1) / math.sqrt(len(pairs)))
                found[when] = (float(np.mean(pairs)), error, len(pairs))
        if found:
            yield one, found


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    reader.add_argument("tables", type=Path, help="a folder with curves.npz and svm.npz")
    reader.add_argument("--out", type=Path, default=Path("departures.jsonl"))
    reader.add_argument("--seeds", type=int, default=4)
    reader.add_argument("--cheap", action="store_true", help="only what has no Gaussian process")
    reader.add_argument("--report", action="store_true", help="say what was found, and run nothing")
    given = reader.parse_args()
    departures = CHEAP if given.cheap else (*CHEAP, *COSTLY)
    if not given.report:
        run_cells(plan(given.tables, departures, given.seeds), given.out, processes=1)
    for one, found in differences(read_runs(given.out), departures):
        told = "  ".join(
            f"{when} {mean:+.3f} ± {error:.3f}" for when, (mean, error, _) in found.items()
        )
        print(f"{one.suite:10} {one.published:62} {told}  ({found['end'][2]} pairs)")


if __name__ == "__main__":
    main()
