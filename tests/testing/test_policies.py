"""The random world must catch policies that break the contract."""

from dataclasses import dataclass

import pytest

from scrimp.methods.policy import Decision, Policy, Start
from scrimp.schedulers.scheduler import Finish, Resume, Wait
from scrimp.study_log.events import BudgetGranted, Ended, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.testing.policies import World, check, play


@dataclass(frozen=True)
class Fixed(Policy):
    """Starts until three trials exist, then always says ``then``."""

    then: object

    def decide(self, history, rng):
        if len(history.trials) < 3:
            return Decision(Start({"x": 0.5}, 1.0))
        return Decision(self.then)


@dataclass(frozen=True)
class Restless(Policy):
    """Decides by a counter of its own instead of the history."""

    calls: list

    def decide(self, history, rng):
        self.calls.append(1)
        return Decision(Start({"x": 0.5}, 1.0 + len(self.calls) % 2))


@pytest.mark.parametrize(
    ("then", "complaint"),
    [
        (Wait(), "nothing runs"),
        (Resume(0, 99.0), "a grant of 99.0|a grant to a trial that is running"),
        (Start({"x": 0.5}, 10.0), "a first grant of 10.0"),
        (Start({"x": 0.5}, 1.0), "beyond the study's total"),
        (Start({"x": 7.0}, 1.0), "7.0"),
    ],
)
def test_broken_policies_are_caught(then, complaint):
    total = 3 if "total" in complaint else None
    with pytest.raises((AssertionError, ValueError), match=complaint):
        play(Fixed(then), World(workers=1, n_trials=total))


def test_a_decision_that_is_not_a_function_of_the_history_is_caught():
    with pytest.raises(AssertionError, match="two decisions"):
        play(Restless([]), World())


def test_check_looks_at_the_state_of_the_trial():
    created = StudyCreated(name="check", problem=World().problem.to_json(), method={})
    history = History.of(
        [created, TrialAdded(trial=0, config={"x": 0.5}), BudgetGranted(trial=0, budget=3.0)]
    )
    with pytest.raises(AssertionError, match="running"):
        check(Resume(0, 9.0), history)
    with pytest.raises(AssertionError, match="Finish although"):
        check(Finish(), history)
    check(Wait(), history)
    history = history.with_events([Reported(trial=0, step=3.0, metrics={"loss": 0.5})])
    check(Resume(0, 9.0), history)
    with pytest.raises(AssertionError, match="a grant of 3"):
        check(Resume(0, 3.0), history)
    history = history.with_events([Ended(trial=0, status="failed")])
    with pytest.raises(AssertionError, match="failed"):
        check(Resume(0, 9.0), history)


def test_worlds_are_reproducible():
    world = World(seed=4, failing=0.1, vanishing=0.1, skipping=0.2, events=60)
    policy = Fixed(Start({"x": 0.5}, 9.0))
    assert list(play(policy, world).events) == list(play(policy, world).events)
