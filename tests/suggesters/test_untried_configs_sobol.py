"""Quasi-random search: a Sobol sequence by index, even where others join in."""

import numpy as np

from scrimp.space.designs import sobol_design
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.problem import Problem
from scrimp.suggesters.suggester import Suggester
from scrimp.suggesters.untried_configs import KNOWN, QuasiRandomSuggester, nearest_fresh
from scrimp.testing.policies import SuggesterBattery, ask, begin, drive, pend

SQUARE = Space(x=Float(0, 1), y=Float(0, 1))


class TestQuasiRandomSuggester(SuggesterBattery):
    def suggester(self) -> Suggester:
        return QuasiRandomSuggester()


def test_one_by_one_or_at_once_is_the_same_sequence() -> None:
    start = begin(Problem(SQUARE, seed=5))
    singles = drive(QuasiRandomSuggester(), start, 16, lambda config: 0.0)
    batch = ask(QuasiRandomSuggester(), start, 16).configs
    assert [trial.config for trial in singles.trials] == list(batch)


def test_sixteen_points_fall_into_sixteen_cells() -> None:
    """What makes it a Sobol sequence: every one of the 4 x 4 cells, the 16 columns and the 16 rows
    gets exactly one."""
    points = np.array(
        [[c["x"], c["y"]] for c in ask(QuasiRandomSuggester(), begin(Problem(SQUARE)), 16).configs]
    )
    for cells in ((4, 4), (16, 1), (1, 16)):
        assert len({(int(x * cells[0]), int(y * cells[1])) for x, y in points}) == 16


def test_seeds_differ() -> None:
    one, other = (
        ask(QuasiRandomSuggester(), begin(Problem(SQUARE, seed=seed))).configs for seed in (0, 1)
    )
    assert one != other


def test_repetitions_of_a_small_space_are_skipped() -> None:
    space = Space(a=Categorical(["x", "y"]), b=Int(1, 3))
    assert (
        len(
            {
                tuple(config.values())
                for config in ask(QuasiRandomSuggester(), begin(Problem(space)), 6).configs
            }
        )
        == 6
    )
    assert len(sobol_design(space, 6, np.random.default_rng(0))) == 6  # the bare design may repeat


def test_nearest_rows_of_a_pool() -> None:
    """By hand: categories are 1 apart, the known and the taken rows are passed over."""
    space = Space(x=Float(0, 1), a=Categorical(["u", "v"]))
    rows = [{"x": 0.1, "a": "u"}, {"x": 0.5, "a": "u"}, {"x": 0.4, "a": "v"}, {"x": 0.9, "a": "u"}]
    history = begin(Problem(Pool(space, rows)))
    point = space.to_units([{"x": 0.4, "a": "u"}])
    assert nearest_fresh(history.derive(KNOWN), np.repeat(point, 5, axis=0)) == [
        rows[1],
        rows[0],
        rows[3],
        rows[2],
    ]
    known = pend(history, rows[1]).derive(KNOWN)
    assert nearest_fresh(known, point, [rows[0]]) == [rows[3]]
