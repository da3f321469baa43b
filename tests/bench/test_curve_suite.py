"""Methods on training runs: the clock, the shares, and ASHA as the reference system plays it."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.curve_suite import (
    BUDGET_SHARES,
    CurveSuiteSettings,
    Timed,
    curve_cells,
    improving_reports,
    own_seed,
    play_curves,
    regret_at,
    run_curves,
)
from scrimp.bench.curve_tasks import CurveTask, Scale, table_curves
from scrimp.bench.tables import read_table
from scrimp.errors import TableError
from scrimp.executors.simulated import SimulatedCurves
from scrimp.methods.policy import Scheduled
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.suggesters.suggester import Suggester, Suggestion
from scrimp.testing.policies import PolicyBattery, World


def test_cells_of_a_table(write_table):
    cells = curve_cells(
        write_table(), ["asha", "random"], ["all"], 2, CurveSuiteSettings(fulls=4, workers=2)
    )
    assert len(cells) == 8
    first = cells[0]
    assert (first.suite, first.table, first.task, first.size, first.workers) == (
        "curves",
        "small",
        "one",
        4,
        2,
    )
    with pytest.raises(TableError, match="no task 'three'"):
        curve_cells(write_table(), ["asha"], ["three"], 1)
    with pytest.raises(TableError, match="leave out --unit-cost"):
        curve_cells(write_table(), ["asha"], ["all"], 1, CurveSuiteSettings(unit_cost=True))


def test_cells_of_a_surrogate(data):
    path = data / "surrogates" / "lcbench_yahpo.npz"
    cells = curve_cells(path, ["asha"], ["all"], 1, CurveSuiteSettings(unit_cost=True))
    assert len(cells) == 17 and cells[0].table == "lcbench_yahpo:unit-cost"


def test_every_task_has_draws_of_its_own(write_table):
    cells = curve_cells(write_table(), ["asha", "random"], ["all"], 2)
    seeds = {(cell.task, cell.seed): own_seed(cell) for cell in cells}
    assert len(set(seeds.values())) == 4  # methods share them, tasks and seeds do not


def test_regret_is_read_off_at_shares():
    trace = [(0.1, 0.5), (0.3, 0.2), (1.0, 0.1)]
    assert [regret_at(trace, share) for share in (0.05, *BUDGET_SHARES)] == [
        1.0,
        0.5,
        0.5,
        0.2,
        0.2,
        0.1,
    ]


@pytest.mark.parametrize(
    "method", ["asha", "asha-stopping", "hyperband", "sync-hyperband", "dehb", "median", "random"]
)
def test_every_scheduler_plays_a_whole_study(data: Path, method: str):
    (cell,) = curve_cells(
        data / "curves" / "alexnet_imagenet.npz", [method], ["all"], 1, CurveSuiteSettings(6, 3)
    )
    record = run_curves(cell)
    assert record["spent"] == [0.1, 0.25, 0.5, 0.75, 1.0]
    assert record["regret"] == sorted(record["regret"], reverse=True)
    assert all(0 <= spent <= 1 + 1e-9 for spent, _ in record["trace"])
    assert [regret for _, regret in record["trace"]] == sorted(
        (regret for _, regret in record["trace"]), reverse=True
    )
    assert record["decisions"] >= record["trials"] > 0 and record["decision_seconds"] > 0
    again = run_curves(cell)
    assert again["trace"] == record["trace"]


@dataclass(frozen=True)
class Rows(Suggester):
    """The rows of a pool in a fixed order."""

    order: tuple

    def suggest(self, history, request, count, rng):
        return Suggestion((history.problem.space.configs[self.order[len(history.trials)]],))


@pytest.mark.parametrize(
    ("task", "seed", "expected"),
    [
        (0, 0, [0.62272, 0.34536, 0.0, 0.0, 0.0]),
        (3, 0, [0.648023, 0.648023, 0.488688, 0.431532, 0.12821]),
        (12, 0, [0.857389, 0.810598, 0.294258, 0.028999, 0.028999]),
        (9, 1, [0.102162, 0.102162, 0.062494, 0.0, 0.0]),
        (6, 2, [0.090205, 0.044832, 0.044832, 0.029882, 0.029882]),
        (15, 2, [0.160673, 0.160673, 0.160673, 0.160673, 0.10176]),
    ],
)
def test_asha_plays_as_the_reference_system_does(
    data: Path, task: int, seed: int, expected: list[float]
):
    """The regret that the ASHA of Syne Tune 0.13.0 (type promotion) reaches when it is given the
    same rows in the same order."""
    path = data / "curves" / "lcbench.npz"
    cell = curve_cells(path, ["asha"], [read_table(path).tasks[task]], 1)[0]
    runs = table_curves(read_table(path), cell.task)
    policy = Timed("asha", runs, 0)
    order = np.random.default_rng(seed).permutation(2000)
    policy._policy = Scheduled(AsynchronousHalving(), Rows(tuple(order.tolist())))
    trace = improving_reports(play_curves(runs, policy, cell), runs, 250.0)
    assert [regret_at(trace, share) for share in BUDGET_SHARES] == pytest.approx(expected, abs=1e-6)


def test_a_run_of_a_thousand_epochs_is_cheap(data: Path):
    """20 full trainings of 50 epochs by 4 workers: about 0.1 s of CPU; a hundred times that means
    that something went wrong."""
    (cell,) = curve_cells(data / "curves" / "lcbench.npz", ["asha"], ["adult"], 1)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        record = run_curves(cell)
        seconds.append(time.process_time() - began)
    assert record["trials"] > 100
    assert min(seconds) < 10.0


class NoCurves(SimulatedCurves):
    """A battery plays its own runs."""

    levels = ()

    def curve(self, config):
        raise AssertionError(config)


class TestTimed(PolicyBattery):
    """The clock of a comparison changes nothing of what a method decides."""

    seeds = range(1)

    def policy(self) -> Timed:
        problem = World().problem
        assert problem.budget is not None
        task = CurveTask(problem.space, problem.budget, NoCurves(), Scale(0.0, 1.0, 9.0))
        return Timed("asha", task, seed=0)
