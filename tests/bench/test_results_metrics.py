"""Ranks and intervals against SciPy."""

import math

import numpy as np
import pytest
from scipy.stats import rankdata, ttest_rel

from scrimp.bench.results import (
    average_ranks,
    final_regrets,
    mean_regret,
    paired_interval,
    ranks,
    with_interval,
)


def test_ranks_average_ties_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        losses = rng.integers(0, 4, 7).astype(float)
        np.testing.assert_array_equal(ranks(losses.tolist()), rankdata(losses))


def test_finding_nothing_is_worst_and_ties_with_itself() -> None:
    assert ranks([None, 1e300, None]).tolist() == [2.5, 1.0, 2.5]


def test_average_ranks_use_the_cells_that_all_methods_have() -> None:
    a, b, c = ("t", "one", 0), ("t", "one", 1), ("t", "two", 0)
    regrets = {"gp": {a: 0.1, b: 0.2, c: 9.0}, "random": {a: 0.5, b: 0.2}}
    assert average_ranks(regrets) == {"gp": 1.25, "random": 1.75}
    assert average_ranks({}) == {} == average_ranks({"gp": {a: 1.0}, "random": {b: 1.0}})


def test_final_regrets_by_method_and_cell() -> None:
    records = [
        {
            "table": "t",
            "task": "one",
            "seed": seed,
            "method": "gp",
            "regret": [None, 0.5, 0.25 + seed],
        }
        for seed in (0, 1)
    ]
    assert final_regrets(records) == {"gp": {("t", "one", 0): 0.25, ("t", "one", 1): 1.25}}


def test_mean_regret() -> None:
    assert mean_regret([1.0, 2.0]) == 1.5
    assert math.isinf(mean_regret([1.0, None])) and math.isnan(mean_regret([]))


def test_paired_interval_is_that_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(1.0, 1.0, 12), rng.normal(0.0, 2.0, 12)
    mean, low, high = paired_interval(first.tolist(), second.tolist(), level=0.9)
    expected = ttest_rel(first, second).confidence_interval(0.9)
    assert (low, high) == pytest.approx((expected.low, expected.high))
    assert mean == pytest.approx((first - second).mean())
    assert paired_interval([1.0], [0.5]) == (0.5, -math.inf, math.inf)


def test_one_pair_has_no_interval_and_says_so() -> None:
    assert with_interval(*paired_interval([0.5], [0.25]), "+.3f") == "+0.250 (one pair)"
    assert with_interval(1.0, 0.5, 1.5, ".2f") == "1.00 [0.50, 1.50]"
