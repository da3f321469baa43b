"""The other end of the pipe: what a peer's configuration gives on a pool that it cannot search."""

import numpy as np

import benchmarks.objectives.compare_objectives as compare
from scrimp import Categorical, Float, Space
from scrimp.bench.trade_off_suite import FrontQuestion
from scrimp.space.space import Pool

SPACE = [
    {"name": "kind", "type": "choice", "choices": ["a", "b"]},
    {"name": "rate", "type": "float", "low": 0.0, "high": 1.0, "when": {"kind": "b"}},
]


def test_the_nearest_row_that_was_not_had_yet():
    configs = [{"kind": "a"}, {"kind": "b", "rate": 0.1}, {"kind": "b", "rate": 0.9}]
    space = Space(kind=Categorical(["a", "b"]), rate=Float(0, 1, when={"kind": "b"}))
    pool = Pool(space, configs)
    question = FrontQuestion(pool, lambda c: ([float(pool.index(c)), 0.0], []), np.zeros((1, 2)))
    measure = compare.measure_for_peer(question, SPACE)
    asked = [("b", 0.8), ("b", 0.8), ("a", 0.9), ("b", 0.8)]
    found = [measure({"kind": kind, "rate": rate}) for kind, rate in asked]
    assert [losses[0] for losses, _ in found[:3]] == [2.0, 1.0, 0.0]
    assert found[3] is not None  # all rows are had: they come again


def test_what_does_not_exist_counts_as_one_value():
    assert compare.filled({"kind": "a", "rate": 0.7}, SPACE) == {"kind": "a", "rate": 0.0}
    assert compare.filled({"kind": "b", "rate": 0.7}, SPACE) == {"kind": "b", "rate": 0.7}
