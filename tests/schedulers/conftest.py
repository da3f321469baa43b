"""Small histories by hand: a `Log` keeps the numbers straight."""

import pytest

from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.events import (
    BudgetGranted,
    Ended,
    Event,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals, lifted
from scrimp.study_log.problem import Budget, Problem


class Log:
    """A study over epochs that is written event by event."""

    def __init__(self, maximum: float = 9, minimum: float = 1) -> None:
        problem = Problem(
            Space(x=Float(0, 1)),
            metrics={"loss": "minimize"},
            budget=Budget("epoch", minimum, maximum),
        )
        self.history = History.of([StudyCreated(name="log", problem=problem.to_json(), method={})])

    def append(self, *events: Event) -> None:
        self.history = self.history.with_events(events)

    def limit(self, n_trials: int | None) -> None:
        self.append(
            StudyChanged(totals=Totals(n_trials=n_trials), lifted=lifted(n_trials=n_trials))
        )

    def start(self, budget: float, **tag: object) -> int:
        number = len(self.history.trials)
        self.append(
            TrialAdded(trial=number, config={"x": 0.5}, tag=tag),
            BudgetGranted(trial=number, budget=budget),
        )
        return number

    def resume(self, trial: int, budget: float) -> None:
        self.append(
            BudgetGranted(
                trial=trial, budget=budget, attempt=self.history.trials[trial].attempt + 1
            )
        )

    def report(self, trial: int, step: float, loss: float | None) -> None:
        attempt = self.history.trials[trial].attempt
        self.append(Reported(trial=trial, step=step, metrics={"loss": loss}, attempt=attempt))

    def end(self, trial: int, status: str) -> None:
        self.append(Ended(trial=trial, status=status, attempt=self.history.trials[trial].attempt))

    def lose(self, trial: int) -> None:
        self.append(Lost(trial=trial, attempt=self.history.trials[trial].attempt))

    def ask(self, scheduler):
        """What the scheduler wants now."""
        return scheduler.next_request(self.history, self.history.rng("test"))


@pytest.fixture
def log():
    """An empty study over 1 to 9 epochs."""
    return Log()


@pytest.fixture
def new_log():
    """Makes an empty study: new_log(maximum, minimum)."""
    return Log
