"""Workers on a virtual clock, and the regret of what they reported by the budget spent."""

import math
from argparse import Namespace

import numpy as np
import pytest

import benchmarks.objectives.compare_front_budgets as budgets
import benchmarks.peers.front_budget_loop as loop


class ToTheEnd:
    """Starts three runs and trains each to its end."""

    def __init__(self):
        self.started, self.failed, self.ended = 0, [], []

    def start(self):
        if self.started == 3:
            return None
        self.started += 1
        return self.started, {"x": self.started}, 0

    def report(self, handle, level, losses):
        return True

    def fail(self, handle):
        self.failed.append(handle)

    def end(self, handle, goes_on):
        assert goes_on
        self.ended.append(handle)


def run_of(config):
    x = config["x"]
    return [[1.0 / x, x]] * 2 if x < 3 else [[math.nan, 3.0]]


def test_two_workers_share_what_is_spent_and_a_failed_level_costs_too():
    scheduler = ToTheEnd()
    workers = loop.Workers(scheduler, run_of)
    workers.play(10, 2)
    assert [spent for spent, _ in workers.reports] == [1, 2, 3, 4] and scheduler.failed == [3]
    assert scheduler.ended == [1, 2]
    short = loop.Workers(ToTheEnd(), run_of)
    short.play(3, 2)
    assert short.reports == workers.reports[:3]


def test_regret_by_the_share_that_was_spent():
    front = np.array([[0.0, 1.0], [1.0, 0.0]])
    training = budgets.Training(None, [], run_of, dict, front, 2)
    play = {"reports": [(2, [0.0, 1.0]), (8, [1.0, 0.0])], "seconds": 0.1, "trials": 2}
    record = budgets.measured(training, {"method": "x"}, play, 10)
    regret = dict(zip(record["spent"], record["regret"], strict=True))
    assert regret[0.1] == 1.0 and 0 < regret[0.2] < 1 and regret[0.8] == pytest.approx(0.0)


def test_a_study_of_scrimp_is_played_with_its_budgets():
    from scrimp import Int, Space

    training = budgets.Training(
        Space(x=Int(1, 40)),
        [],
        lambda config: [[1.0 / config["x"] + 1.0 / level, config["x"]] for level in range(1, 10)],
        dict,
        np.array([[0.1, 40.0], [1.1, 1.0]]),
        9,
    )
    play = budgets.played(training, "asha", 0, Namespace(fulls=2, workers=2))
    assert play["reports"][-1][0] == 18 and play["trials"] > 2  # halving: more than two in full


def test_the_front_of_a_surrogate_is_that_of_the_lowest_values_along_runs(monkeypatch):
    from scrimp import Categorical, Float, Int, Ordinal, Space

    monkeypatch.setattr(budgets, "SAMPLED", 32)
    space = Space(x=Float(0.0, 1.0), n=Int(1, 4), o=Ordinal([1, 2]), c=Categorical(["a", "b"]))

    def runs(configs):
        x = np.array([config["x"] for config in configs])
        value = np.stack([x + 1.0, x, np.where(x < 0.5, np.nan, x + 2.0)], axis=1)
        return np.stack([value, np.broadcast_to(1.0 - x[:, None], value.shape)], axis=-1)

    assert np.allclose(budgets.sampled_front(space, runs).sum(axis=1), 1.0)
    description = budgets.described(space)
    kinds = [(own["name"], own["type"]) for own in description]
    assert kinds == [("x", "float"), ("n", "int"), ("o", "ordinal"), ("c", "choice")]
    assert description[3]["choices"] == ["a", "b"]


def test_half_of_a_budget_beside_the_end_of_a_peer():
    falling = [1.0 - 0.05 * k for k in range(20)]  # 0.55 at half, 0.05 at the end
    own = {("t", "a", 0): falling, ("t", "b", 0): falling, ("t", "b", 1): falling}
    other = {cell: [1.0] * 19 + [0.6] for cell in own} | {("t", "b", 1): [1.0] * 19 + [0.5]}
    text = budgets.beside(own, other, "asha")
    assert "2 problems: -0.0250" in text and "reached in 2 of 3 runs" in text
    assert text.endswith("with 0.50 of the budget")
    nothing = {cell: [1.0] * 20 for cell in own}
    assert "reached in 0 of 3 runs" in budgets.beside(nothing, nothing, "asha")


@pytest.mark.parametrize("method", ["asha", "freeze-thaw"])
def test_runs_that_are_shorter_than_others_are_over_at_their_end(method):
    from scrimp import Int, Space

    def run_of(config):
        return [[1.0 / config["x"] + 1.0 / k, config["x"]] for k in range(1, 10)][: config["x"]]

    front = np.array([[0.1, 9.0], [1.1, 1.0]])
    training = budgets.Training(Space(x=Int(1, 9)), [], run_of, dict, front, 9)
    workers = loop.Workers(budgets.OwnStudy(training, method, 0), run_of)
    workers.play(60, 2)
    trials = workers.scheduler.study.trials
    over = [trial for trial in trials if trial.budget >= trial.params["x"]]
    assert len(over) > 2 and all(trial.status == "completed" for trial in over)
