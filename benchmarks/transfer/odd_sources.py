"""Measure how few, small and odd past studies help or harm a new one.

    python benchmarks/run.py odd_sources run wistuba_svm.npz xgboost.npz --out odd.jsonl   # resumes
    python benchmarks/run.py odd_sources report odd.jsonl

Each task of a table is the new one in turn. Its past are studies of up to eight other tasks, drawn
at random, with 60 random rows each, in a storage of their own, and changed by kind:

    few-1, few-2, few-4, few-8   so many past studies, unchanged
    ten                          8 studies of ten trials each
    renamed                      one parameter has another name there: one missing, one extra
    narrow                       only the lower half of the first number was searched
    choices                      one choice of every list is unknown here
    thousand, log, maximised     values times 1000 plus 7; logarithms; negatives, to be maximised
    failing                      four in ten trials failed or returned NaN
    useless                      constant values, no trial at all, one trial, and one normal study
    twin                         four studies, and the new task itself under another name
    shuffled, inverted           values shuffled over configurations; values turned upside down

The report compares every kind with a cold start.
"""

import argparse
import json
import logging
import math
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import scrimp
from scrimp.bench.transfer_suite import TransferTask, TransferTasks, read_tasks
from scrimp.errors import TableError
from scrimp.json_values import Config
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.storage.memory import MemoryStorage
from scrimp.study.studies import beginning
from scrimp.study_log.events import BudgetGranted, Ended, Event, Reported, TrialAdded
from scrimp.study_log.problem import Problem

Array = NDArray[np.float64]

FEW = ("few-1", "few-2", "few-4", "few-8")
KINDS = (
    *FEW,
    *("ten", "renamed", "narrow", "choices", "thousand", "log", "maximised", "failing"),
    *("useless", "twin", "shuffled", "inverted"),
)
COLD = "cold"
AT = (2, 3, 5, 10, 20)
ROWS = 60


@dataclass(frozen=True)
class Old:
    """A past study: its space, direction, configurations and values.

    NaN is a reported NaN; None is a failed trial.
    """

    space: Space
    configs: list[Config]
    values: list[float | None]
    direction: str = "minimize"

    def events(self, name: str) -> list[Event]:
        """Return the log of the study."""
        metric = "score" if self.direction == "maximize" else "value"
        problem = Problem(
            self.space,
            metrics={metric: self.direction},
        )  # type: ignore[arg-type]
        found: list[Event] = [beginning(name, problem, {"name": "random"})]
        for number, (config, value) in enumerate(zip(self.configs, self.values, strict=True)):
            found += [
                TrialAdded(trial=number, config=config),
                BudgetGranted(trial=number, budget=1.0),
            ]
            if value is None:
                found.append(Ended(trial=number, status="failed"))
            else:
                found.append(Reported(trial=number, step=1.0, metrics={metric: value}))
        return found


def drawn(task: TransferTask, rows: int, rng: np.random.Generator) -> Old:
    """Return random rows of a task."""
    chosen = rng.permutation(len(task.configs))[:rows]
    values = [float(task.values[row]) for row in chosen]
    return Old(Space(task.space.parameters), [dict(task.configs[row]) for row in chosen], [*values])


def changed(old: Old, kind: str, rng: np.random.Generator) -> Old:
    """Return the past study as its kind changes it."""
    values = np.array(old.values, dtype=float)
    if kind == "renamed":
        return renamed(old, next(iter(old.space.searched)))
    if kind == "narrow":
        return narrowed(old)
    if kind == "choices":
        return with_other_choices(old)
    if kind == "thousand":
        return with_values(old, 1000.0 * values + 7.0)
    if kind == "log":
        return with_values(
            old,
            np.log(values - np.nanmin(values) + 1e-3 * np.ptp(values[np.isfinite(values)]) + 1e-9),
        )
    if kind == "maximised":
        return Old(old.space, old.configs, (-values).tolist(), "maximize")
    if kind == "failing":
        lost = rng.random(len(values))
        kept: list[float | None] = [
            None if chance < 0.2 else math.nan if chance < 0.4 else float(value)
            for chance, value in zip(lost, values, strict=True)
        ]
        return Old(old.space, old.configs, kept)
    if kind == "shuffled":
        return with_values(old, rng.permutation(values))
    return with_values(old, -values) if kind == "inverted" else old


def with_values(old: Old, values: Array) -> Old:
    return Old(old.space, old.configs, values.tolist())


def renamed(old: Old, name: str) -> Old:
    """Rename one parameter, and the conditions that depend on it."""

    def new(key: str) -> str:
        return f"{key}_old" if key == name else key

    plain = {new(key): plainly(parameter) for key, parameter in old.space.parameters.items()}
    return Old(
        Space(plain), [{new(k): v for k, v in config.items()} for config in full(old)], old.values
    )


def plainly(parameter: Parameter) -> Parameter:
    """Return a parameter without its condition."""
    return replace(parameter, when=None) if parameter.when else parameter


def full(old: Old) -> list[Config]:
    """Return configurations with a value for every parameter."""
    defaults = {key: parameter.from_unit(0.5) for key, parameter in old.space.parameters.items()}
    return [{**defaults, **config} for config in old.configs]


def narrowed(old: Old) -> Old:
    """Keep the lower half of the first number, in a space of that width."""
    first = next(
        (name for name in old.space.searched if isinstance(old.space[name], Float | Int)), None
    )
    if first is None:
        return old
    middle = float(np.median([float(config[first]) for config in old.configs if first in config]))
    kept = [row for row, config in enumerate(old.configs) if config.get(first, middle) <= middle]
    return Old(old.space, [old.configs[row] for row in kept], [old.values[row] for row in kept])


def with_other_choices(old: Old) -> Old:
    """Replace the last of each list of choices by one that is unknown elsewhere."""
    names = [name for name in old.space.searched if isinstance(old.space[name], Categorical)]
    last = {name: list(old.space[name].grid or ())[-1] for name in names}
    parameters = {
        name: Categorical([f"not-{c}" if c == last[name] else c for c in parameter.grid or ()])
        if name in last
        else plainly(parameter)
        for name, parameter in old.space.parameters.items()
    }
    configs = [
        {k: f"not-{v}" if k in last and v == last[k] else v for k, v in config.items()}
        for config in full(old)
    ]
    return Old(Space(parameters), configs, old.values)


def past_of(tasks: TransferTasks, name: str, kind: str, seed: int) -> Iterator[Old]:
    """Yield the past studies of one new task."""
    rng = seeded(name, seed)
    others = [other for other in tasks.tasks if other != name]
    count = int(kind[4:]) if kind in FEW else {"useless": 1, "twin": 4}.get(kind, 8)
    for other in map(str, rng.permutation(others)[:count]):
        own = seeded(f"{name}/{other}", seed)
        yield changed(drawn(tasks.task(other), 10 if kind == "ten" else ROWS, own), kind, own)
    if kind == "twin":
        yield drawn(tasks.task(name), ROWS, rng)
    if kind == "useless":
        usual = drawn(tasks.task(others[0]), ROWS, rng)
        yield with_values(usual, np.ones(ROWS))
        yield Old(usual.space, [], [])
        yield Old(usual.space, usual.configs[:1], usual.values[:1])


def seeded(text: str, seed: int) -> np.random.Generator:
    """Return a generator with the same draws for every kind, so that kinds are comparable."""
    return np.random.default_rng(zlib.crc32(f"{text}/{seed}".encode()))


def regrets(tasks: TransferTasks, name: str, kind: str, seed: int) -> dict[str, object]:
    """Return the regret after `AT` evaluations, and the notes about the past."""
    task, storage = tasks.task(name), MemoryStorage()
    names = []
    if kind != COLD:
        for number, old in enumerate(past_of(tasks, name, kind, seed)):
            names.append(f"old-{number}")
            storage.create(names[-1], old.events(names[-1]))
    study = scrimp.create_study(
        "new",
        task.space,
        storage=storage,
        method="gp:initial=3" if kind == COLD else "auto",
        learn_from=names,
        seed=zlib.crc32(f"{name}/{seed}".encode()),
    )
    best, found, used = math.inf, [], 0
    for count in range(1, AT[-1] + 1):
        trial = study.ask()
        if count == 1 and study.history.notes.sources is not None:
            used = len(study.history.notes.sources.used)
        value = task.measure(trial.params)
        study.tell(trial, math.nan if value is None else value)
        best = min(best, math.inf if value is None else value)
        if count in AT:
            found.append(task.regret(best))
    return {"used": used, "given": len(names), "regret": found}


def run(given: argparse.Namespace) -> None:
    """Run every table, task, seed and kind that is not in the file yet."""
    logging.getLogger("scrimp").setLevel(logging.ERROR)
    done = (
        {(r["table"], r["task"], r["kind"], r["seed"]) for r in read(given.out)}
        if given.out.exists()
        else set()
    )
    for path in given.tables:
        tasks = read_tasks(path)
        for seed in range(given.seeds):
            for name in tasks.tasks[:: given.every]:
                for kind in (COLD, *given.kinds.split(",")):
                    if (tasks.name, name, kind, seed) in done:
                        continue
                    try:
                        found = regrets(tasks, name, kind, seed)
                    except TableError as error:
                        print(error, file=sys.stderr)
                        break
                    head = {"table": tasks.name, "task": name, "kind": kind, "seed": seed}
                    with given.out.open("a") as file:
                        file.write(json.dumps({**head, **found}) + "\n")
                print(f"{tasks.name} {name} {seed}", flush=True)


def read(path: Path) -> list[dict[str, object]]:
    return [json.loads(text) for text in path.read_text().splitlines()]


def report(given: argparse.Namespace) -> None:
    """Print the regret less that of a cold start, with half of its 95 % interval over tasks."""
    runs = {(r["table"], r["task"], r["kind"], r["seed"]): r for r in read(given.file)}
    for table in sorted({str(key[0]) for key in runs}):
        print(f"\n{table}".ljust(24), "used/given", *(f"{at:>15}" for at in AT))
        for kind in (COLD, *KINDS):
            mine = [key for key in runs if key[0] == table and key[2] == kind]
            if not mine:
                continue
            values = np.array([runs[key]["regret"] for key in mine])
            if kind == COLD:
                print(COLD.ljust(34), *(f"{value:15.4f}" for value in values.mean(axis=0)))
                continue
            cold = np.array([runs[(key[0], key[1], COLD, key[3])]["regret"] for key in mine])
            names = sorted({str(key[1]) for key in mine})
            per_task = np.array(
                [
                    np.mean(
                        [v for v, key in zip(values - cold, mine, strict=True) if key[1] == n], 0
                    )
                    for n in names
                ]
            )
            half = 1.96 * per_task.std(axis=0, ddof=1) / math.sqrt(len(names))
            used = sum(int(str(runs[key]["used"])) for key in mine)
            total = sum(int(str(runs[key]["given"])) for key in mine)
            cells = [f"{m:+.4f} ±{h:.4f}" for m, h in zip(per_task.mean(axis=0), half, strict=True)]
            print(kind.ljust(23), f"{used}/{total}".rjust(10), *(cell.rjust(15) for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("tables", nargs="+", type=Path)
    one.add_argument("--out", type=Path, required=True)
    one.add_argument("--kinds", default=",".join(KINDS))
    one.add_argument("--seeds", type=int, default=2)
    one.add_argument("--every", type=int, default=1, help="every so many tasks of each table")
    one.set_defaults(do=run)
    two = commands.add_parser("report")
    two.add_argument("file", type=Path)
    two.set_defaults(do=report)
    given = parser.parse_args()
    given.do(given)


if __name__ == "__main__":
    main()
