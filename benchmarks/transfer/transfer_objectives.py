"""Measure the value of past studies for several metrics, after 5, 10 and 20 trials.

    python benchmarks/run.py transfer_objectives lcbench_yahpo.npz --tasks 6 --seeds 5 --out results.jsonl

Each task of a YAHPO surrogate, or of a table with run times, is a study of its own; its past are
``--sources`` other tasks with ``--rows`` random trials each. Arms:

    cold           the default method, no past
    past           the default method, with the past
    gp-past        method gp, with the past: it begins with points of past fronts
    partly         the default method; half of the sources have the first metric only
    shuffled       the default method; the losses of every past study are shuffled among its trials

The regret is the missing share of the true front's hypervolume (`scrimp bench objectives`). Runs in
the results file are not repeated.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import scrimp
from scrimp.bench.tables import read_table
from scrimp.bench.trade_off_suite import FrontMeter, FrontQuestion, question_of
from scrimp.bench.yahpo import is_yahpo, read_yahpo
from scrimp.storage.memory import MemoryStorage

ARMS = ("cold", "past", "gp-past", "partly", "shuffled")
POINTS = (5, 10, 20)


def names_of(question: FrontQuestion) -> list[str]:
    """Return one metric per objective."""
    return [f"f{k + 1}" for k in range(question.front.shape[1])]


def make_past(
    question: FrontQuestion, name: str, storage: MemoryStorage, arm: str, rows: int, seed: int
) -> None:
    """Make a past study of random trials."""
    rng = np.random.default_rng(seed)
    metrics = names_of(question)
    if arm == "partly" and seed % 2:
        metrics = metrics[:1]
    told = dict.fromkeys(metrics, "minimize")
    study = scrimp.create_study(
        name, question.space, metrics=told, method="random", storage=storage, seed=seed
    )
    configs = question.space.sample(rows, rng)
    found = [question.measure(config) for config in configs]
    order = rng.permutation(rows) if arm == "shuffled" else np.arange(rows)
    for config, place in zip(configs, order, strict=True):
        outcome = found[place]
        if outcome is not None:
            study.enqueue(config)
            study.tell(study.ask(), dict(zip(metrics, outcome[0], strict=False)))


def run(
    source: str, task: str, others: list[str], arm: str, args: argparse.Namespace, seed: int
) -> dict[str, object]:
    """Run one study; return its regrets at POINTS and the cost of its decisions."""
    question = question_of(source, task)
    storage = MemoryStorage()
    learned = []
    if arm != "cold":
        for place, other in enumerate(others):
            make_past(
                question_of(source, other), other, storage, arm, args.rows, 1000 * seed + place
            )
            learned.append(other)
    study = scrimp.create_study(
        "target",
        question.space,
        metrics=dict.fromkeys(names_of(question), "minimize"),
        method="gp" if arm == "gp-past" else "auto",
        storage=storage,
        learn_from=learned or None,
        seed=seed,
    )
    meter, seconds = FrontMeter(question.front), []
    for _ in range(max(POINTS)):
        start = time.process_time()
        trial = study.ask()
        seconds.append(time.process_time() - start)
        outcome = question.measure(trial.params)
        if outcome is None:
            study.tell(trial, state="failed")
            meter.add(None)
            continue
        study.tell(trial, dict(zip(names_of(question), outcome[0], strict=True)))
        meter.add(np.array(outcome[0]))
    return {
        "task": task,
        "arm": arm,
        "seed": seed,
        "regret": [meter.regret[point - 1] for point in POINTS],
        "decision_ms": 1000 * float(np.median(seconds[5:])),
        "first_s": max(seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("table")
    parser.add_argument("--tasks", type=int, default=6)
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arms", default=",".join(ARMS))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    network = read_yahpo(args.table) if is_yahpo(args.table) else read_table(args.table)
    tasks = list(network.tasks)
    lines = args.out.read_text().splitlines() if args.out.exists() else []
    done = {(line["task"], line["arm"], line["seed"]) for line in map(json.loads, lines)}
    chosen = [
        tasks[k] for k in np.linspace(0, len(tasks) - 1, min(args.tasks, len(tasks)), dtype=int)
    ]
    for seed in range(args.seeds):
        for task in chosen:
            rest = [other for other in tasks if other != task]
            rng = np.random.default_rng(seed)
            others = list(rng.permutation(rest)[: args.sources])
            for arm in args.arms.split(","):
                if (task, arm, seed) in done:
                    continue
                line = run(args.table, task, [str(o) for o in others], arm, args, seed)
                with args.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    report([json.loads(line) for line in args.out.read_text().splitlines()])


def report(lines: list[dict[str, object]]) -> None:
    """Print mean regrets of each arm.

    Differences to the cold arm are paired and given with two standard errors.
    """
    by = {(line["task"], line["seed"], line["arm"]): np.array(line["regret"]) for line in lines}
    arms = dict.fromkeys(line["arm"] for line in lines)
    for arm in arms:
        keys = [(t, s) for t, s, a in by if a == arm and (t, s, "cold") in by]
        own = np.array([by[*key, arm] for key in keys])
        gap = own - np.array([by[*key, "cold"] for key in keys])
        error = 2 * gap.std(axis=0) / np.sqrt(max(len(gap), 1))
        spent = np.median([line["decision_ms"] for line in lines if line["arm"] == arm])
        cells = [
            f"{m:.3f} ({g:+.3f} ± {e:.3f})"
            for m, g, e in zip(own.mean(axis=0), gap.mean(axis=0), error, strict=True)
        ]
        print(f"{arm:10} n={len(keys):3d}  " + "  ".join(cells) + f"  {spent:.0f} ms")


if __name__ == "__main__":
    main()
