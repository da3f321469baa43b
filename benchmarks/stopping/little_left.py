"""Compare the gain that `scrimp.LittleLeft` states with the gain that a study then makes.

    python benchmarks/run.py little_left                                      # formulas, gp
    python benchmarks/run.py little_left --grid fcnet.npz --curves lcbench.npz --tasks 3 --seeds 3
    python benchmarks/run.py little_left --terminator                         # and Optuna's Terminator

Each study is played to its end without a stop rule. Then its log is read again up to several points
along the way, where the gain left, the largest expected improvement of one candidate, and the best
value are noted. Rules that would have ended there are compared by what they save and what they lose:
a stop rule changes no decision before it ends a study.

Losses and gains are shares of the distance from the median of the first ten trials to the best of the
whole run. A rule ends a run when its number was below a threshold at five points in a row.
The threshold is 1 % of that distance, or of all thresholds the one that saves most while it loses less
than 1 % on average.

``--terminator`` gives the trials of the studies by gp to Optuna (`environments optuna` installs it) and
notes the regret bound of its Terminator at the same points. Its published rule ends a study when the
bound is below the error of one evaluation; with the thresholds here that error is a
`StaticErrorEvaluator`.
"""

import argparse
import json
import math
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import scrimp
from benchmarks.environments import python, script_command
from scrimp.bench.formulas import FORMULAS
from scrimp.bench.tables import described_space, read_table
from scrimp.space.space import Pool
from scrimp.study.decisions import policy_of
from scrimp.study_log.events import Decided
from scrimp.study_log.history import History

FORMULA_NAMES = ("branin", "hartmann3", "hartmann6", "levy4", "mixed")
PARTS = ("low", "high", "log", "choices", "values")
"""Parts of a parameter that Optuna is told."""

PATIENCE = 5
"""Points in a row at which a number has to be below its threshold."""

THRESHOLDS = 10.0 ** np.arange(-5.0, 0.01, 0.05)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--grid", action="append", default=[], help="a table of final values")
    parser.add_argument("--curves", action="append", default=[], help="a table of learning curves")
    parser.add_argument("--tasks", type=int, default=3, help="tasks of each table")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--trials", type=int, default=60, help="trials of a study by gp")
    parser.add_argument("--fulls", type=int, default=20, help="full trainings by freeze-thaw")
    parser.add_argument("--points", type=int, default=50, help="points along a run")
    parser.add_argument("--no-formulas", action="store_true")
    parser.add_argument("--terminator", action="store_true", help="compare Optuna's Terminator")
    parser.add_argument("--out", type=Path, default=None, help="write the points as JSON lines")
    given = parser.parse_args()
    runs = []
    for label, study in studies(given):
        points = list(stated(study, given.points))
        if given.terminator and label.startswith("gp"):
            for point, bound in zip(points, regret_bounds(study, points), strict=True):
                point["terminator"] = bound
        runs.append((label, points))
        print(label, f"best {study.best_value:.5g}", f"{len(points)} points", flush=True)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps({"run": label, "points": points}) + "\n")
    kinds = {label.split("/")[0] for label, _ in runs}
    for kind in sorted(kinds | {kind.split(",")[0] for kind in kinds}):
        report(kind, [points for label, points in runs if label.startswith(kind)])


def studies(given: argparse.Namespace) -> Iterator[tuple[str, scrimp.Study]]:
    """Play every study."""
    for seed in range(given.seeds):
        for name in () if given.no_formulas else FORMULA_NAMES:
            formula = FORMULAS[name]
            space = described_space(list(formula.space))
            yield f"gp, formulas/{name}/{seed}", by_gp(space, formula.evaluate, given.trials, seed)
        for path in given.grid:
            table = read_table(path)
            for name in table.tasks[: given.tasks]:
                task = table.task(name)
                values = dict(zip(map(key, task.pool.configs), task.final.tolist(), strict=True))
                study = by_gp(
                    task.pool, lambda config, values=values: values[key(config)], given.trials, seed
                )
                yield f"gp, {table.name}/{name}/{seed}", study
        for path in given.curves:
            table = read_table(path)
            for name in table.tasks[: given.tasks]:
                study = by_freeze_thaw(table.task(name), table.levels, given.fulls, seed)
                yield f"freeze-thaw, {table.name}/{name}/{seed}", study


def key(config: dict) -> str:
    return json.dumps(config, sort_keys=True)


def by_gp(space: scrimp.Space, measure: Callable, trials: int, seed: int) -> scrimp.Study:
    """A study without budgets."""
    study = scrimp.create_study("s", space, method="gp", storage="memory://", seed=seed)
    study.optimize(lambda trial: measure(dict(trial.params)), n_trials=trials, progress=False)
    return study


def by_freeze_thaw(task: object, levels: np.ndarray, fulls: int, seed: int) -> scrimp.Study:
    """A study of the learning curves of a table."""
    pool: Pool = task.pool
    place = {key(config): number for number, config in enumerate(pool.configs)}

    def objective(trial: scrimp.LiveTrial) -> None:
        row = place[key(dict(trial.params))]
        for step in trial.steps():
            value = task.value[row, int(step) - 1]
            trial.report(value=float(value) if math.isfinite(value) else math.nan)

    study = scrimp.create_study(
        "s",
        pool,
        budget=scrimp.Budget("epoch", 1, len(levels)),
        method="freeze-thaw",
        storage="memory://",
        seed=seed,
    )
    study.optimize(objective, total_budget=fulls * len(levels), progress=False, catch=(Exception,))
    return study


def stated(study: scrimp.Study, count: int) -> Iterator[dict[str, float]]:
    """The share of the run, the best loss and the gain left, at several points along a run."""
    events = study.history.events
    places = [place for place, event in enumerate(events) if isinstance(event, Decided)]
    first = min(10, len(places) - 1)
    chosen = np.unique(np.linspace(first, len(places) - 1, count).astype(int))
    end = study.history.spent
    final = study.history.best[1].loss
    begin = History.of(events[: places[first]])
    lasts = [trial.last for trial in begin.trials]
    losses = [last.loss for last in lasts if last is not None and last.loss is not None]
    for place in chosen:
        history = History.of(events[: places[place]])
        left = policy_of(history).gain_left(history, history.rng("gain left"))
        yield {
            "share": history.spent / end,
            "left": (history.best[1].loss - final),
            "stated": left.expected,
            "candidate": left.per_cost,
            "range": float(np.median(losses)) - final,
            "trials": sum(trial.loss is not None for trial in history.trials),
        }


def regret_bounds(study: scrimp.Study, points: list[dict[str, float]]) -> list[float]:
    """The bound of Optuna's Terminator at each point."""
    told = {
        "space": [
            {
                "name": name,
                "type": type(parameter).__name__.lower(),
                **{part: vars(parameter)[part] for part in PARTS if part in vars(parameter)},
            }
            for name, parameter in study.space.items()
        ],
        "trials": [
            [dict(trial.params), trial.loss] for trial in study.trials if trial.loss is not None
        ],
        "points": [point["trials"] for point in points],
    }
    command = script_command(python("optuna"), "optuna_terminator")
    asked = json.dumps(told)
    answer = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def report(kind: str, runs: list[list[dict[str, float]]]) -> None:
    """Print how the stated gain compares with the realised one, and what rules save."""
    runs = [run for run in runs if run and run[0]["range"] > 0]
    print(f"\n{kind}: {len(runs)} runs")
    print("share of the run   stated   realised   (means, in shares of the range)")
    for low, high in ((0.15, 0.3), (0.3, 0.5), (0.5, 0.75), (0.75, 1.0)):
        here = [p for run in runs for p in run if low <= p["share"] < high]
        here = [p for p in here if math.isfinite(p["stated"])]
        if here:
            said = np.mean([p["stated"] / p["range"] for p in here])
            made = np.mean([p["left"] / p["range"] for p in here])
            print(f"{low:.2f} to {high:.2f}       {said:.4f}   {made:.4f}   {len(here)} points")
    for name in ("stated", "candidate", "terminator"):
        if any(name not in point for run in runs for point in run):
            continue
        found = (0.0, 0.0, math.nan)
        for threshold in THRESHOLDS:
            saved, lost = outcome(runs, name, threshold)
            if lost < 0.01 and saved > found[0]:
                found = saved, lost, threshold
        saved, lost = outcome(runs, name, 0.01)
        print(
            f"{name}: saves {saved:.3f} and loses {lost:.4f} at 0.01;"
            f" saves {found[0]:.3f} and loses {found[1]:.4f} at {found[2]:.2g}"
        )


def outcome(runs: list, name: str, threshold: float) -> tuple[float, float]:
    """The mean share of the run that a rule saves, and what it loses."""
    saved, lost = [], []
    for run in runs:
        below = [point[name] / point["range"] < threshold for point in run]
        ends = (k for k in range(PATIENCE - 1, len(run)) if all(below[k - PATIENCE + 1 : k + 1]))
        end = next(ends, None)
        saved.append(0.0 if end is None else 1.0 - run[end]["share"])
        lost.append(0.0 if end is None else run[end]["left"] / run[end]["range"])
    return float(np.mean(saved)), float(np.mean(lost))


if __name__ == "__main__":
    main()
