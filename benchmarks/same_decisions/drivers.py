"""Playing one study through the public interface, and writing down what it decided."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import problems
import spellings
import still_clock
from spellings import scrimp

Entry = list[Any]


@dataclass(frozen=True)
class Past:
    """Studies to learn from: ``count`` of them, each of ``trials`` configurations."""

    count: int = 3
    trials: int = 20
    space: Any = problems.mixed
    training: tuple | None = None
    metrics: dict[str, str] | None = None
    method: str = "random"
    shift: float = 0.2
    direction: str = "minimize"


@dataclass(frozen=True)
class Play:
    """One study: what it asks, and how it is played.

    ``asks``: decisions by ask and tell; ``limits``: run in this process instead, until these.
    ``pending``: trials under evaluation at a time; ``fails``: the numbers of trials that fail;
    ``reopen``: load the study anew after so many decisions; ``told``: with standard errors;
    ``queued``: so many drawn configurations come first; ``plateau``: no error is below this one but
    those of a few; ``short``: trainings end by themselves.
    """

    method: Any
    space: Any = problems.mixed
    asks: int = 14
    limits: dict[str, Any] = field(default_factory=dict)
    training: tuple | None = None
    metrics: dict[str, str] | None = None
    direction: str = "minimize"
    settings: dict[str, Any] = field(default_factory=dict)
    past: Past | None = None
    learn_from: Any = None
    pending: int = 1
    enqueue: tuple[dict[str, Any], ...] = ()
    fails: tuple[int, ...] = ()
    told: bool = False
    noisy: bool = False
    reopen: int = 0
    grow: tuple[int, Any] | None = None
    retry: int = 0
    batch: bool = False
    queued: int = 0
    plateau: float | None = None
    short: bool = False
    durable: bool = False
    cost: str | None = None
    seed: int = 0


def play(plan: Play) -> dict[str, Any]:
    """The record of a study: its decisions in their order, and how it ended."""
    still_clock.restart()
    with tempfile.TemporaryDirectory(prefix="same-decisions-") as name:
        on_disk = plan.past or plan.reopen or plan.grow or plan.durable
        storage = f"sqlite:///{name}/studies.db" if on_disk else "memory://"
        learn: dict[str, Any] = {}
        if plan.past is not None:
            names = [make_past(plan.past, number, storage) for number in range(plan.past.count)]
            learn["learn_from"] = names if plan.learn_from is None else plan.learn_from
        question = {**_optimized(plan), **plan.settings, **learn}
        if plan.cost is not None:
            question["cost"] = plan.cost

        def create(space: Any, **more: Any) -> Any:
            return spellings.new_study(
                "studied",
                space,
                training=plan.training,
                method=plan.method,
                noisy=plan.noisy,
                storage=storage,
                seed=plan.seed,
                **question,
                **more,
            )

        study = create(plan.space())
        drawn = plan.space().sample(plan.queued, np.random.default_rng(11)) if plan.queued else ()
        for config in (*plan.enqueue, *drawn):
            study.enqueue(config)
        session = _Session(plan, study, storage, create)
        if plan.limits:
            session.run()
        else:
            session.ask_and_tell()
        return {
            "method": session.study.method,
            "decisions": session.decisions,
            "end": ending(session.study, plan.metrics is not None),
        }


def _optimized(plan: Play | Past) -> dict[str, Any]:
    if plan.metrics is not None:
        return {"metrics": plan.metrics}
    return {"metric": "val_error", "direction": plan.direction}


class _Session:
    """A study while it is played."""

    def __init__(self, plan: Play, study: Any, storage: str, create: Any) -> None:
        self.plan, self.study = plan, study
        self.decisions: list[Entry] = []
        self._storage, self._create = storage, create

    def measure(self, number: int, params: dict[str, Any], step: float) -> dict[str, float]:
        """All metrics of a trial after ``step`` units, and the time it took on the clock."""
        still_clock.pass_seconds(problems.seconds_of(params))
        found = problems.metrics_after(params, step)
        if "pace" in (self.plan.metrics or {}):
            found["pace"] = found["balance"] + 0.1 * found["latency"]
        if self.plan.plateau is not None and number % 9 != 8:
            found["val_error"] = max(found["val_error"], self.plan.plateau)
        if self.plan.noisy or self.plan.told:
            found["val_error"] += 0.03 * problems.noise(number, step)
        if self.plan.metrics is None and self.plan.direction == "maximize":
            found["val_error"] = 1.0 - found["val_error"]
        for name, way in (self.plan.metrics or {}).items():
            if way == "maximize":
                found[name] = 10.0 - found[name]
        return found

    def stderr(self) -> Any:
        """Return the reported noise."""
        if not self.plan.told:
            return None
        if self.plan.metrics is None:
            return 0.02
        return dict.fromkeys(self.plan.metrics, 0.02)

    def ask_and_tell(self) -> None:
        """Ask while there is room, then tell the result of whoever has waited longest."""
        plan, waiting = self.plan, []
        for turn in range(plan.asks):
            if plan.reopen and turn and turn % plan.reopen == 0 and not waiting:
                self.study = scrimp.load_study("studied", storage=self._storage)
            if plan.grow is not None and turn == plan.grow[0]:
                self.study = self._create(plan.grow[1](), load_if_exists=True)
            if plan.retry and turn == plan.retry:
                self.decisions.append(["retry", self.study.retry_failed()])
            found = self._ask(plan.pending - len(waiting))
            if not found and not waiting:
                self.decisions.append(["nothing left"])
                return
            waiting += found
            while len(waiting) >= plan.pending or (waiting and not found):
                self._tell(waiting.pop(0))
        for trial in waiting:
            self._tell(trial)

    def _ask(self, room: int) -> list[Any]:
        try:
            if self.plan.batch:
                trials = self.study.ask(count=room)
            else:
                trials = [self.study.ask()]
        except spellings.refusal():
            return []
        for trial in trials:
            again = spellings.attempts_of(trial) > 1
            self.decisions.append(
                [
                    "resume" if again else "start",
                    trial.id,
                    None if again else spellings.params_of(trial),
                    spellings.granted_of(trial),
                    spellings.place_of(trial),
                ]
            )
        return trials

    def _tell(self, trial: Any) -> None:
        params, failing = spellings.params_of(trial), trial.id in self.plan.fails
        if self.plan.training is None:
            found = self.measure(trial.id, params, 100.0)
            if failing and trial.id % 2 and spellings.attempts_of(trial) == 1:
                self.study.tell(trial, state="failed")
            elif failing and spellings.attempts_of(trial) == 1:
                self.study.tell(trial, found | {"val_error": float("nan")})
            else:
                self.study.tell(trial, found, stderr=self.stderr())
            return
        granted = spellings.granted_of(trial)
        for step in _steps(spellings.used_by(trial), granted):
            if failing and step >= 2:
                self.study.tell(trial, state="failed")
                return
            found = self.measure(trial.id, params, step)
            if not self.study.report(trial, step=step, stderr=self.stderr(), **found):
                if step < granted:
                    self.decisions.append(["stop", trial.id, step])
                return

    def run(self) -> None:
        """Let the study run itself in this process, and listen inside the objective."""

        def objective(context: Any) -> Any:
            params, granted = spellings.params_of(context), spellings.grant_inside(context)
            again = context.attempt > 1
            self.decisions.append(
                [
                    "resume" if again else "start",
                    context.id,
                    None if again else params,
                    granted,
                ]
            )
            if self.plan.training is None:
                if context.id in self.plan.fails:
                    raise ValueError("made to fail")
                return self.measure(context.id, params, 100.0)
            for step in context.steps():
                (context.checkpoint_dir / "state").write_text(str(step))
                if context.id in self.plan.fails and step >= 2:
                    raise ValueError("made to fail")
                found = self.measure(context.id, params, float(step))
                if not context.report(stderr=self.stderr(), **found) and step < granted:
                    self.decisions.append(["stop", context.id, step])
                if self.plan.short and step >= problems.length_of(params):
                    return None
            return None

        spellings.run(self.study, objective, **self.plan.limits)


def _steps(used: float, granted: float) -> list[float]:
    """The steps of a grant: whole units, then where it ends."""
    whole = [float(step) for step in range(int(used) + 1, int(granted) + 1) if step > used]
    return whole if whole and whole[-1] == granted else [*whole, granted]


def make_past(past: Past, number: int, storage: str) -> str:
    """A finished study of another data set in the same storage; its name."""
    shift = past.shift * (number + 1)
    study = spellings.new_study(
        f"past-{number}",
        past.space(),
        training=past.training,
        method=past.method,
        storage=storage,
        seed=100 + number,
        features={"rows": 100.0 * (number + 1), "classes": 2.0 + number},
        **_optimized(past),
    )
    for _ in range(past.trials):
        trial = study.ask()
        params = spellings.params_of(trial)
        if past.training is None:
            found = problems.metrics_after(params, 100.0, shift)
            if past.direction == "maximize":
                found["val_error"] = 1.0 - found["val_error"]
            study.tell(trial, found)
            continue
        for step in _steps(spellings.used_by(trial), spellings.granted_of(trial)):
            if not study.report(trial, step=step, **problems.metrics_after(params, step, shift)):
                break
    return study.name


def ending(study: Any, several: bool) -> dict[str, Any]:
    """Return the end of a study: every trial, and the best or the front."""
    trials = [
        [
            trial.id,
            trial.status,
            spellings.used_by(trial),
            spellings.granted_of(trial),
            spellings.attempts_of(trial),
            *spellings.place_of(trial),
        ]
        for trial in study.trials
    ]
    if several:
        front = [
            [trial.id, spellings.step_of(report), spellings.metrics_of(report)]
            for trial, report in study.front
        ]
        return {"trials": trials, "front": front, "knee": _or_none(lambda: study.knee)}
    return {
        "trials": trials,
        "best": _or_none(lambda: spellings.best_anywhere(study)),
        "best at full budget": _or_none(lambda: spellings.best_at_full(study)),
    }


def _or_none(find: Any) -> Entry | None:
    """A trial and its report as plain values; None where there is none."""
    try:
        trial, report = find()
    except spellings.refusal():
        return None
    return [
        trial.id,
        spellings.params_of(trial),
        spellings.step_of(report),
        spellings.metrics_of(report),
    ]


@dataclass(frozen=True)
class Simulation:
    """A method on a made table, with several workers on a virtual clock."""

    method: str
    workers: int = 4
    fulls: int = 6
    task: str = "first"
    timed: bool = True
    ending: bool = False
    seed: int = 0


def simulate(plan: Simulation) -> dict[str, Any]:
    """The record of a simulated study; its decisions are read off the times of reports."""
    still_clock.restart()
    with tempfile.TemporaryDirectory(prefix="same-decisions-") as name:
        table = problems.curve_table(Path(name), timed=plan.timed, ending=plan.ending)
        study = spellings.simulated(
            table,
            plan.method,
            task=plan.task,
            workers=plan.workers,
            fulls=plan.fulls,
            seed=plan.seed,
        )
        decisions = [
            [
                "trial",
                trial.id,
                spellings.params_of(trial),
                spellings.place_of(trial),
                [list(pair) for pair in spellings.reports_of(trial)],
            ]
            for trial in study.trials
        ]
        return {"method": study.method, "decisions": decisions, "end": ending(study, False)}


@dataclass(frozen=True)
class Choosing:
    """One selection of a checkpoint, and how it is played."""

    method: Any = "kg"
    checkpoints: Any = tuple(range(1000, 25000, 1000))
    cells: int = 20
    settings: dict[str, Any] = field(default_factory=dict)
    told: bool = False
    pending: int = 1
    fails: tuple[int, ...] = ()
    added: tuple[int, tuple] | None = None
    stop: dict[str, float] | None = None
    run: dict[str, float] | None = None
    reopen: int = 0
    given_back: int = -1
    given: int = 0
    belief: bool = False
    seed: int = 0


def choose(plan: Choosing) -> dict[str, Any]:
    """The record of a selection: its cells in their order, and its recommendations."""
    still_clock.restart()
    with tempfile.TemporaryDirectory(prefix="same-decisions-") as name:
        storage = f"sqlite:///{name}/selections.db" if plan.reopen else "memory://"
        labels = list(plan.checkpoints)
        selection = spellings.new_selection(
            "selected",
            labels,
            problems.TASKS,
            method=plan.method,
            storage=storage,
            seed=plan.seed,
            **plan.settings,
        )
        known = labels + (list(plan.added[1]) if plan.added else [])
        turned = [
            task for task, way in plan.settings.get("directions", {}).items() if way == "minimize"
        ]

        def score(checkpoint: Any, task: str) -> float:
            found = problems.score_of((known.index(checkpoint) + 1) / len(labels), task)
            return 1.0 - found if task in turned else found

        decisions: list[Entry] = []
        for number in range(plan.given):
            checkpoint, task = labels[(7 * number) % len(labels)], problems.TASKS[number % 3]
            selection.tell(checkpoint, task, score(checkpoint, task))
        if plan.run is not None:

            def evaluate(checkpoint: Any, task: str) -> Any:
                decisions.append(["cell", checkpoint, task])
                if len(decisions) - 1 in plan.fails:
                    raise ValueError("made to fail")
                found = score(checkpoint, task)
                return (found, 0.01) if plan.told else found

            selection.run(evaluate, progress=False, **plan.run)
        else:
            if plan.stop is not None:
                selection.stop_when(**plan.stop)
            selection = _measure(plan, selection, storage, score, decisions)
        end: dict[str, Any] = {"recommendation": _recommended(selection)}
        if plan.belief:
            belief = selection.posterior(refit=True)
            end["average mean"] = [float(one) for one in belief.average_mean]
            end["average std"] = [float(one) for one in belief.average_std]
            end["correlations"] = [float(one) for one in selection.task_correlations().ravel()]
        return {"method": selection.method, "decisions": decisions, "end": end}


def _measure(
    plan: Choosing, selection: Any, storage: str, score: Any, decisions: list[Entry]
) -> Any:
    """Ask for cells and tell their scores; the selection, as it was loaded last."""
    asked = 0
    while asked < plan.cells:
        if plan.reopen and asked and asked % plan.reopen == 0:
            selection = scrimp.load_selection("selected", storage=storage)
        if plan.added is not None and asked >= plan.added[0]:
            selection.add_checkpoints(list(plan.added[1]))
        try:
            cells = [selection.ask()] if plan.pending == 1 else selection.ask(count=plan.pending)
        except spellings.refusal():
            decisions.append(["nothing left"])
            break
        for checkpoint, task in cells:
            decisions.append(["cell", checkpoint, task])
            if asked == plan.given_back:
                selection.give_back(checkpoint, task)
            elif asked in plan.fails:
                selection.tell(checkpoint, task, state="failed")
            else:
                error = 0.005 + 0.001 * (asked % 4) if plan.told else None
                selection.tell(checkpoint, task, score(checkpoint, task), stderr=error)
            asked += 1
            if asked % 8 == 0:
                decisions.append(["recommended", *_recommended(selection)])
    return selection


def _recommended(selection: Any) -> Entry:
    """A recommendation as plain values."""
    answer = selection.recommend()
    return [
        answer.checkpoint,
        answer.underlying,
        answer.expected_score,
        answer.standard_error,
        answer.expected_loss,
        answer.probability_best,
        answer.runner_up,
        answer.spent,
    ]


@dataclass(frozen=True)
class Commands:
    """One command on made files; ``{table}`` and ``{scores}`` stand for their paths.

    ``results``: the parts of what it writes that are kept; without them it prints JSON.
    """

    words: str
    results: str = ""


def command(plan: Commands) -> dict[str, Any]:
    """The record of a command: what it prints, or the lines that it writes, without times."""
    with tempfile.TemporaryDirectory(prefix="same-decisions-") as name:
        folder = Path(name)
        places = {"table": str(problems.curve_table(folder, timed=True))}
        lines = ["checkpoint,task,score,stderr"]
        for number in range(15 * len(problems.TASKS)):
            row, task = divmod(number, len(problems.TASKS))
            if plan.results or number % 4 == 1:
                score = problems.score_of((row + 1) / 15, problems.TASKS[task])
                lines.append(f"{1000 * (row + 1)},{problems.TASKS[task]},{score!r},0.01")
        (folder / "scores.csv").write_text("\n".join(lines) + "\n")
        places |= {"scores": str(folder / "scores.csv"), "out": str(folder / "out.jsonl")}
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "scrimp",
                *(word.format(**places) for word in plan.words.split()),
            ],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{plan.words}: {done.stderr[-2000:]}")
        if not plan.results:
            return {"method": "command", "decisions": [json.loads(done.stdout)], "end": {}}
        written = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
        kept_keys = ("task", "method", "seed", "decisions", "trials", *plan.results.split(","))
        found = [{key: one[key] for key in kept_keys if key in one} for one in written]
        found.sort(key=lambda one: json.dumps(one, sort_keys=True))
        return {"method": "command", "decisions": found, "end": {}}
