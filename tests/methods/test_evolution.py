"""DEHB: brackets of published size, evolution by the formula, greedy places."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import MethodError
from scrimp.methods.evolution import POPULATIONS, Evolution, child
from scrimp.methods.policy import Policy, Start
from scrimp.plugins.settings import build
from scrimp.schedulers.scheduler import Finish, Resume
from scrimp.space.parameter import Categorical, Constant, Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.testing.policies import PolicyBattery, World, play

SPACE = Space(x=Float(0, 1), y=Float(0, 1), z=Float(1e-3, 1, log=True))


class TestEvolution(PolicyBattery):
    def policy(self) -> Policy:
        return Evolution()


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    workers=st.integers(1, 6),
    chances=st.tuples(*[st.sampled_from([0.0, 0.05, 0.3])] * 5),
)
def test_keeps_the_rules_in_any_world(seed, workers, chances):
    failing, vanishing, early, skipping, diverging = chances
    play(Evolution(), World(seed, workers, 80, 40, failing, vanishing, early, skipping, diverging))


def run(policy, space, decisions, loss, maximum=9):
    """One worker; ``loss(config)`` at every level. Returns the history and the actions."""
    problem = Problem(space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, maximum))
    history = History.of([StudyCreated(name="dehb", problem=problem.to_json(), method={})])
    actions = []
    for _ in range(decisions):
        action = policy.decide(history, history.rng("decide")).action
        actions.append(action)
        decided = Decided(decision=history.decisions, seen=history.length)
        if isinstance(action, Start):
            number, attempt = len(history.trials), 1
            history = history.with_events(
                [decided, TrialAdded(trial=number, config=action.config, tag=dict(action.tag))]
            )
        elif isinstance(action, Resume):
            number, attempt = action.trial, history.trials[action.trial].attempt + 1
            history = history.with_events([decided])
        else:
            break
        value = loss(history.trials[number].config)
        history = history.with_events(
            [
                BudgetGranted(trial=number, budget=action.budget, attempt=attempt),
                Reported(
                    trial=number, step=action.budget, metrics={"loss": value}, attempt=attempt
                ),
            ]
        )
    return history, actions


def sphere(config):
    return (
        (config["x"] - 0.3) ** 2 + (config["y"] - 0.6) ** 2 + (np.log10(config["z"]) + 1) ** 2 / 9
    )


def test_the_first_bracket_promotes_and_later_ones_evolve():
    """Levels 1, 3, 9: brackets of (9, 3, 1), (5, 2), (3), then (9, 3, 1) again."""
    _, actions = run(Evolution(), SPACE, 13 + 7 + 3 + 13, sphere)
    assert [type(action) for action in actions[:13]] == [Start] * 9 + [Resume] * 4
    assert all(isinstance(action, Start) for action in actions[13:])
    assert [action.budget for action in actions[13:]] == [3] * 5 + [9] * 2 + [9] * 3 + [1] * 9 + [
        3
    ] * 3 + [9]
    assert [action.tag["slot"] for action in actions[13:18]] == [0, 1, 2, 3, 4]
    configs = [tuple(action.config.items()) for action in actions if isinstance(action, Start)]
    assert len(set(configs)) == len(configs)


def test_a_child_is_the_formula():
    rng = np.random.default_rng(0)
    parents, target = rng.random((3, 6)), rng.random(6)
    mutant = parents[0] + 0.5 * (parents[1] - parents[2])
    inside = (mutant >= 0) & (mutant <= 1)
    seen_mutant, seen_target = np.zeros(6, bool), np.zeros(6, bool)
    for _ in range(200):
        made = child(parents, target, 0.5, 0.5, rng)
        from_target = made == target
        from_mutant = np.isclose(made, mutant)
        assert (from_target | from_mutant | ~inside).all()
        assert not from_target.all()  # one entry always comes from the mutant
        assert ((made >= 0) & (made <= 1)).all()
        seen_mutant |= from_mutant
        seen_target |= from_target
    assert seen_target.all() and (seen_mutant | ~inside).all()


def test_crossover_at_its_ends():
    rng = np.random.default_rng(1)
    parents, target = np.full((3, 5), 0.5), np.zeros(5)
    assert child(parents, target, 0.5, 1.0, rng).tolist() == [0.5] * 5
    assert sorted(child(parents, target, 0.5, 0.0, rng).tolist()) == [0, 0, 0, 0, 0.5]


def test_entries_outside_the_cube_are_drawn_anew():
    rng = np.random.default_rng(2)
    parents = np.array([[0.9] * 400, [1.0] * 400, [0.0] * 400])  # mutant 1.4
    made = child(parents, np.zeros(400), 0.5, 1.0, rng)
    assert made.min() < 0.05 and made.max() > 0.95 and abs(made.mean() - 0.5) < 0.06


def test_places_are_taken_over_by_what_is_at_least_as_good():
    history, actions = run(Evolution(), SPACE, 13 + 7 + 3 + 9, sphere)
    members = history.derive(POPULATIONS)
    assert {level: len(holders) for level, holders in members.items()} == {1.0: 9, 3.0: 5, 9.0: 3}
    first = [sphere(action.config) for action in actions[:9]]
    second = [sphere(action.config) for action in actions[23:32]]
    assert [report.loss for report, _ in members[1.0]] == [
        min(pair) for pair in zip(first, second, strict=True)
    ]


def test_finds_more_than_random_search():
    """Sphere in 3 dimensions, 8 seeds, 150 decisions: evolution must win on average (paired, by its
    median)."""
    wins = 0
    for seed in range(8):
        problem_space = Space(
            x=Float(0, 1), y=Float(0, 1), z=Float(1e-3, 1, log=True), seed=Constant(seed)
        )
        history, actions = run(Evolution(), problem_space, 150, sphere)
        count = sum(isinstance(action, Start) for action in actions)
        draws = problem_space.sample(count, np.random.default_rng(seed))
        wins += history.best[1].loss < min(sphere(config) for config in draws)
    assert wins >= 6


def test_a_failed_trial_holds_no_place():
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 9))
    history = History.of([StudyCreated(name="dehb", problem=problem.to_json(), method={})])
    config = SPACE.sample(1, np.random.default_rng(0))[0]
    added = TrialAdded(trial=0, config=config, tag={"bracket": 0, "slot": 0})
    history = history.with_events(
        [added, BudgetGranted(trial=0, budget=1.0), Ended(trial=0, status="failed")]
    )
    assert history.derive(POPULATIONS) == {}


def test_a_pool_gives_members_once_until_it_is_exhausted():
    pool = Pool(
        Space(x=Float(0, 1), c=Categorical(["a", "b"])),
        [{"x": k / 29, "c": "ab"[k % 2]} for k in range(30)],
    )
    history, actions = run(Evolution(), pool, 100, lambda config: config["x"])
    assert isinstance(actions[-1], Finish)
    assert len(history.trials) == 30


def test_bad_settings_are_refused():
    for settings_, complaint in (
        ({"mutation": 0.0}, "mutation is 0.0"),
        ({"crossover": 1.5}, "crossover is 1.5"),
        ({"brackets": 0}, "brackets is 0"),
        ({"reduction": 1}, "reduction is 1"),
    ):
        with pytest.raises(MethodError, match=complaint):
            build(Evolution, settings_)
