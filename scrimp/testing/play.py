"""A random world that holds a policy to its contract, one decision and one event at a time.

Workers ask when they like; trials report, skip steps, overshoot, report late, fail, end early or
vanish. Each decision is checked:

- the same history gives the same decision, also when it is folded again from its log
- never `Wait` or `Finish` at the wrong time: `Wait` only while something is in flight, `Finish`
  only when nothing is
- a grant is positive, more than the trial had, and never beyond the full budget; only a paused
  trial is resumed
- no configuration is added beyond the study's total, and every one is valid

    history = play(policy, World(seed=0, workers=3, failing=0.2))
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from scrimp.history.events import (
    BudgetGranted,
    Ended,
    Event,
    Lost,
    Noted,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.history.history import History
from scrimp.history.limits import Totals
from scrimp.history.problem import Budget, Problem
from scrimp.history.trial import Trial
from scrimp.json_values import Json
from scrimp.policies.policy import Action, Finish, Policy, Resume, Start, Verdict, Wait
from scrimp.space.parameter import Float
from scrimp.space.space import Space

__all__ = ["World", "play"]


def _problem() -> Problem:
    return Problem(Space(x=Float(0.0, 1.0)), metric="loss", budget=Budget("epoch", 1, 9))


@dataclass(frozen=True)
class World:
    """How things go: probabilities per event, and how many events there are at most."""

    seed: int = 0
    workers: int = 3
    events: int = 120
    n_trials: int | None = None
    failing: float = 0.0
    vanishing: float = 0.0
    ending_early: float = 0.0
    skipping: float = 0.0
    diverging: float = 0.0
    problem: Problem = field(default_factory=_problem)
    method: Mapping[str, Json] = field(default_factory=dict)


def play(policy: Policy, world: World) -> History:
    """The history after ``world.events`` events, or when the policy finished; AssertionError where
    it breaks the contract."""
    game = _Game(policy, world)
    for _ in range(world.events):
        busy = len(game.history.with_status("running"))
        if busy < world.workers and (not busy or game.rng.random() < 0.7) and not game.waiting:
            if game.ask():
                return game.history
        elif busy:
            game.happen()
        else:
            raise AssertionError("the policy waits although nothing runs")
    return game.history


class _Game:
    def __init__(self, policy: Policy, world: World) -> None:
        self.policy = policy
        self.world = world
        self.rng = np.random.default_rng(world.seed)
        self.waiting = False
        created = StudyCreated(
            name="play", problem=world.problem.to_json(), method=dict(world.method)
        )
        self.history = History.of([created, StudyChanged(totals=Totals(n_trials=world.n_trials))])

    def append(self, *events: Event) -> None:
        self.history = self.history.with_events(events)

    def ask(self) -> bool:
        """A free worker asks; True when the study is over."""
        stale = self.history.with_status("stale")
        if stale:
            self.append(
                BudgetGranted(
                    trial=stale[0].id, budget=stale[0].granted, attempt=stale[0].attempt + 1
                )
            )
            return False
        action = self._decision()
        check(action, self.history)
        noted = Noted(decision=self.history.decisions, seen=self.history.length)
        match action:
            case Wait():
                self.waiting = True
            case Finish():
                return True
            case Start():
                number = len(self.history.trials)
                added = TrialAdded(trial=number, config=action.config, tag=dict(action.tag))
                self.append(noted, added, BudgetGranted(trial=number, budget=action.budget))
            case Resume():
                attempt = self.history.trials[action.trial].attempt + 1
                self.append(
                    noted, BudgetGranted(trial=action.trial, budget=action.budget, attempt=attempt)
                )
        return False

    def _decision(self) -> Action:
        decisions = [
            self.policy.decide(history, history.rng("decide"))
            for history in (self.history, self.history, History.of(self.history.events))
        ]
        assert decisions[0] == decisions[1], "the same history gave two decisions"
        assert decisions[0] == decisions[2], "a history folded again gave another decision"
        return decisions[0].action

    def happen(self) -> None:
        """Something happens to one of the running trials."""
        self.waiting = False
        running = self.history.with_status("running")
        trial = running[self.rng.integers(len(running))]
        draw = self.rng.random(4)
        if draw[0] < self.world.failing:
            self.append(Ended(trial=trial.id, status="failed", attempt=trial.attempt))
        elif draw[1] < self.world.vanishing:
            self.append(Lost(trial=trial.id, attempt=trial.attempt))
            if self.rng.random() < 0.5:  # the vanished worker may still talk
                self._report(trial)
        elif draw[2] < self.world.ending_early:
            self.append(Ended(trial=trial.id, status="completed", attempt=trial.attempt))
        else:
            self._report(trial)

    def _report(self, trial: Trial) -> None:
        full = self.world.problem.full_budget
        step = min(trial.budget + 1.0, full)
        if self.rng.random() < self.world.skipping:
            step = min(trial.budget + float(self.rng.integers(-2, 7)), full)
            step = max(step, 1.0)
        loss = (
            None
            if self.rng.random() < self.world.diverging
            else float(np.round(self.rng.random(), 2))
        )
        metrics = {self.world.problem.metric: loss}
        self.append(Reported(trial=trial.id, step=step, metrics=metrics, attempt=trial.attempt))
        if self.history.trials[trial.id].status == "running":
            verdict = self.policy.review(self.history, trial.id)
            assert verdict is self.policy.review(History.of(self.history.events), trial.id), (
                "two verdicts on one report"
            )
            if verdict is Verdict.STOP:
                self.append(Ended(trial=trial.id, status="stopped", attempt=trial.attempt))


def check(action: Action, history: History) -> None:
    """AssertionError when ``action`` breaks the contract."""
    full = history.problem.full_budget
    running = history.counts["running"]
    match action:
        case Wait():
            assert running, "Wait although nothing runs"
        case Finish():
            assert not running, "Finish although something runs"
        case Start():
            total = history.totals.n_trials
            assert total is None or len(history.trials) < total, (
                "a configuration beyond the study's total"
            )
            assert 0 < action.budget <= full, (
                f"a first grant of {action.budget}, where the full budget is {full}"
            )
            assert history.problem.space.validate(action.config) == action.config
        case Resume():
            trial = history.trials[action.trial]
            assert trial.status == "paused", f"a grant to a trial that is {trial.status}"
            assert trial.granted < action.budget <= full, (
                f"a grant of {action.budget} after {trial.granted} of {full}"
            )
            assert trial.budget < action.budget, (
                f"a grant of {action.budget} to a trial that used {trial.budget}"
            )
