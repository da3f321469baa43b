"""A torture test of selections by question: processes that ask are killed at random, and no answer
may be lost, none asked again, and every decision must be replayed.

    # SQLite, then a journal; from the repository root
    python -m tests.tools.question_torture --kills 200

Three processes run one race. Each kill is a SIGKILL of one of them, which is then replaced. A process
writes down which questions it is about to answer, and which reports were acknowledged. At the end
the race must hold the answers and the counts of a race that no one disturbed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import scrimp
from scrimp.checkpoint_selection.question_policy import race_of
from scrimp.checkpoint_selection.selection import Selection
from scrimp.executors.clock import wall_clock
from scrimp.explain.replay import replay
from scrimp.study_log.history import History

STEPS = list(range(1, 25))
TASKS = {f"task{number}": 40 + 10 * number for number in range(8)}
SHARE = 0.25

ASKER = """
import json, os, sys, time
import scrimp
from scrimp.checkpoint_selection import selection as module
from tests.tools.question_torture import evaluate

def note(kind, trial):
    line = [kind, trial.params["checkpoint"], trial.params["task"], trial.begin, trial.budget]
    with open(os.environ["NOTES"], "a") as file:
        file.write(json.dumps(line) + "\\n")

def noted(function, settings):
    inner = Evaluation(function, settings)

    def objective(trial):
        note("asks", trial)
        time.sleep(0.0 if os.path.exists(os.environ["NOTES"] + ".hurry") else 0.15)
        inner(trial)
        note("acknowledged", trial)

    return objective

Evaluation = module.QuestionEvaluation
module.QuestionEvaluation = noted
selection = scrimp.load_selection("race", storage=sys.argv[1])
selection.run(evaluate, progress=False)
"""


def evaluate(checkpoint: object, task: str, questions: list[int]) -> list[float]:
    """Answers that are the same whenever they are asked; checkpoint 17 is best."""
    step, place = int(str(checkpoint)), list(TASKS).index(task)
    ability = 0.8 - abs(step - 17) / 40
    difficulty = [np.random.default_rng([place, question]).random() for question in questions]
    luck = [np.random.default_rng([step, place, question]).random() for question in questions]
    return [float(ability + 0.3 * b > a) for a, b in zip(difficulty, luck, strict=True)]


def selection_at(url: str) -> Selection:
    """Create the selection that is raced."""
    selection = scrimp.create_selection(
        "race", checkpoints=STEPS, tasks=TASKS, storage=url, seed=1, load_if_exists=True
    )
    selection.stop_when(share=SHARE)
    return selection


def torture_questions(
    url: str, kills: int, folder: Path, seed: int = 0
) -> tuple[History, list[str]]:
    """Kill askers, let the rest finish; return the history and its defects."""
    selection = selection_at(url)
    notes = folder / "notes"
    environment = {**os.environ, "NOTES": str(notes), "OPENBLAS_NUM_THREADS": "1"}
    errors = open(folder / "errors", "ab")  # noqa: SIM115 - closed below, for several processes

    def launch() -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-W", "error", "-c", ASKER, url]
        return subprocess.Popen(command, env=environment, stdout=errors, stderr=errors)

    chance, processes = np.random.default_rng(seed), [launch() for _ in range(3)]
    try:
        for _ in range(kills):
            time.sleep(chance.uniform(0.1, 1.0))
            slot = int(chance.integers(3))
            processes[slot].kill()
            processes[slot].wait()
            processes[slot] = launch()
        over_before = bool(selection.finished)
        Path(f"{notes}.hurry").touch()
        codes = [process.wait(timeout=600) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
        errors.close()
    history = scrimp.load_selection("race", storage=url).history
    found = defects(history, notes)
    found += [f"a process ended with code {code}" for code in codes if code]
    found += ["the race was over before the last kill"] if over_before and kills > 20 else []
    return history, found


def defects(history: History, notes: Path) -> list[str]:
    """Return what is wrong: answers lost, changed, asked again, or decisions that differ."""
    found, acknowledged = [], set()
    race = race_of(history)[1]
    for line in notes.read_text().splitlines(keepends=True):
        if not line.endswith("\n"):
            continue  # cut by a kill
        kind, step, task, begin, end = json.loads(line)
        cell = step, task, begin
        if kind == "asks" and cell in acknowledged:
            found.append(f"{task} of {step} was asked again from question {begin}")
        elif kind == "acknowledged":
            acknowledged.add(cell)
            if race.counts[STEPS.index(step), list(TASKS).index(task)] < end:
                found.append(f"the answers of {step} to {task} up to {end} are lost")
    for row, task in np.argwhere(race.counts > 0):
        count = int(race.counts[row, task])
        expected = evaluate(STEPS[row], list(TASKS)[task], race.order[task][:count].tolist())
        if race.book.answers(np.array([row]), task, count)[0].tolist() != expected:
            found.append(f"answers of {STEPS[row]} to task {task} differ")
    calm = selection_at("memory://")
    calm.run(evaluate, progress=False)
    if not (race_of(calm.history)[1].counts == race.counts).all():
        found.append("other questions were asked than in a race that no one disturbed")
    found += [
        f"decision {each.decision}: {each.difference}"
        for each in replay(history.events)
        if not each.same
    ]
    return found


def main() -> None:
    """Attack SQLite, then a journal; exit code 1 if one of them has a defect."""
    parser = argparse.ArgumentParser(description="Kill processes that ask questions, at random.")
    parser.add_argument("--kills", type=int, default=200, help="half of them on each storage")
    options = parser.parse_args()
    good = True
    for kind in ("sqlite:///{}/race.db", "journal:///{}/race"):
        began = wall_clock()
        with tempfile.TemporaryDirectory(prefix="scrimp-race-") as place:
            url = kind.format(place)
            history, found = torture_questions(url, -(-options.kills // 2), Path(place))
        again = sum(trial.attempt > 1 for trial in history.trials)
        print(
            f"{url.partition(':')[0]}: {-(-options.kills // 2)} kills in {wall_clock() - began:.0f} s,"
            f" {int(race_of(history)[1].counts.sum())} answers, {history.decisions} decisions"
            f" replayed, {again} parts with more than one attempt, {len(found)} defects"
        )
        for defect in found:
            print(f"  {defect}")
        good = good and not found
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
