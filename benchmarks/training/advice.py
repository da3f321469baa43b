"""Advice in a day of tuning a language model: what good advice saves, and what bad advice costs.

The trainings are those of ``scrimp bench llm``: forests over recorded trials of a 50M-parameter GPT
(`scrimp.bench.llm_suite`). An adviser proposes one configuration before every decision, except for the expert:

    agent, centaur   what these recorded runs tried, in their order
    expert           the last 100 configurations of Centaur, all at the start, the last first
    shuffled         the values of Centaur, each parameter shuffled by itself
    memory           recorded configurations that ran out of memory
    none             nothing

Each adviser has one run per seed, and runs of the same seed are compared in pairs. The goal is the
loss that the forest gives to the best configuration of the recorded run of TPE: 0.9776, where the
training itself had 0.9769 and the publication 0.9768.

    python benchmarks/run.py advice gpt50m_trials.csv --seeds 6 --out advice.jsonl
    python benchmarks/run.py advice gpt50m_trials.csv --out advice.jsonl --report
"""

import argparse
import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np

from scrimp.bench.llm_suite import (
    DEFAULTS,
    SPACE,
    RecordedTrial,
    read_trials,
    recorded_trainings,
)
from scrimp.json_values import Config
from scrimp.study.studies import create_study
from scrimp.study_log.record import StudyRecord

ADVISERS = {
    "none": "",
    "agent": "Karpathy Agent (14 HPs)",
    "centaur": "Centaur (CMA-ES+LLM)",
    "expert": "Centaur (CMA-ES+LLM)",
    "shuffled": "Centaur (CMA-ES+LLM)",
    "memory": "",
}
"""The advisers, with the recorded method that they follow."""

TPE_AFTER_A_DAY = 0.9776
"""Loss of the best configuration of the recorded run of TPE, by the forest."""


def proposals(adviser: str, rows: list[RecordedTrial], seed: int) -> list[Config]:
    """Return what an adviser proposes, one configuration after the other."""
    rng = np.random.default_rng([seed, 7])
    if adviser == "none":
        return []
    if adviser == "memory":
        failed = [row.config for row in rows if row.loss is None]
        return [failed[place] for place in rng.permutation(len(failed))]
    followed = [row for row in rows if row.method == ADVISERS[adviser]]
    runs = sorted({row.run for row in followed})
    configs = [row.config for row in followed if row.run == runs[seed % len(runs)]][1:]
    if adviser == "shuffled":
        columns = {name: [config[name] for config in configs] for name in SPACE}
        for name, values in columns.items():
            columns[name] = [values[place] for place in rng.permutation(len(values))]
        configs = [{name: columns[name][at] for name in SPACE} for at in range(len(configs))]
    if adviser == "expert":
        configs = configs[:-101:-1]
    return [config for config in configs if SPACE.contains(config)]


def play(path: str, adviser: str, method: str, seed: int, hours: float) -> dict[str, object]:
    """Tune for so many hours with one adviser; return every improvement as (hours, trials, loss)."""
    trainings, rows = recorded_trainings(path), read_trials(Path(path))
    study = create_study(f"{adviser}-{seed}", SPACE, method=method, storage="memory://", seed=seed)
    study.enqueue(DEFAULTS)
    proposed = proposals(adviser, rows, seed)
    if adviser == "expert":
        study.advise(proposed, by=adviser)
    waiting = iter([] if adviser == "expert" else proposed)
    clock, best, trial, trace = 0.0, math.inf, 0, list[tuple[float, int, float]]()
    while clock < 3600 * hours:
        config = next(waiting, None)
        if config is not None:
            study.advise(config, by=adviser)
        asked = study.ask()
        loss, seconds = trainings.train(asked.params)
        clock, trial = clock + seconds, trial + 1
        if loss is None:
            study.tell(asked, state="failed", message="out of memory")
            continue
        study.tell(asked, loss)
        if loss < best and clock <= 3600 * hours:
            best = loss
            trace.append((clock / 3600, trial, loss))
    records = StudyRecord.of(study.history).advisers
    return {
        "adviser": adviser,
        "method": method,
        "seed": seed,
        "trace": trace,
        "trials": trial,
        "tried": records[0].tried if records else 0,
        "progress": records[0].progress if records else 0,
    }


def reached(run: dict, loss: float, place: int, otherwise: float) -> float:
    """Return the hours (``place`` 0) or trials (1) until a loss was reached."""
    return next((step[place] for step in run["trace"] if step[2] <= loss), otherwise)


def report(runs: list[dict], hours: float) -> None:
    """Print, for each adviser, the final loss and the time to the loss that runs without advice have
    at the end, and the trials more than those, in pairs."""
    by = defaultdict(dict)
    for run in runs:
        by[run["adviser"]][run["seed"]] = run
    alone = by["none"]
    print(f"{'adviser':10} {'loss at the end':>18} {'tried':>6} {'hours to .9776':>15}", end="")
    print(f" {'hours to own end':>17} {'share':>6} {'trials lost':>15}")
    for adviser, found in by.items():
        seeds = sorted(set(found) & set(alone))
        end = np.array([found[seed]["trace"][-1][2] for seed in seeds])
        tried = np.mean([found[seed]["tried"] for seed in seeds])
        public = np.array([reached(found[seed], TPE_AFTER_A_DAY, 0, hours) for seed in seeds])
        times, own, lost = [], [], []
        for seed in seeds:
            goal = alone[seed]["trace"][-1][2]
            times.append(reached(found[seed], goal, 0, hours))
            own.append(reached(alone[seed], goal, 0, hours))
            for _, trials, loss in alone[seed]["trace"][3:]:
                lost.append(reached(found[seed], loss, 1, found[seed]["trials"]) - trials)
        error = end.std(ddof=1) / math.sqrt(len(end)) if len(end) > 1 else math.nan
        print(
            f"{adviser:10} {end.mean():11.5f} ± {error:.5f} {tried:6.1f} {public.mean():15.1f}"
            f" {np.mean(times):17.1f} {np.mean(times) / np.mean(own):6.2f} {np.mean(lost):15.1f}"
        )


def main() -> None:
    """Run what is missing, and print the report."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("table")
    options.add_argument("--method", default="gp")
    options.add_argument("--seeds", type=int, default=6)
    options.add_argument("--hours", type=float, default=24.0)
    options.add_argument("--advisers", nargs="+", default=list(ADVISERS))
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--report", action="store_true")
    chosen = options.parse_args()
    runs = []
    if chosen.out.exists():
        runs = [json.loads(line) for line in chosen.out.read_text().splitlines()]
    known = {(run["adviser"], run["seed"]) for run in runs}
    for seed in range(0 if chosen.report else chosen.seeds):
        for adviser in chosen.advisers:
            if (adviser, seed) in known:
                continue
            run = play(chosen.table, adviser, chosen.method, seed, chosen.hours)
            runs.append(run)
            with chosen.out.open("a") as file:
                file.write(json.dumps(run) + "\n")
    report(runs, chosen.hours)


if __name__ == "__main__":
    main()
