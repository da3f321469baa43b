import math

import numpy as np
import pytest

from scrimp.study_log.standings import standings, with_report
from scrimp.study_log.trial import INFEASIBLE_STANDING, Observation


def report(*losses, step=1.0, violation=-math.inf, missing=False):
    whole = tuple(map(float, losses))
    counted = None if missing else whole
    return Observation(step, {}, whole, counted, violation=violation)


def test_one_metric_stands_by_itself():
    points = [report(0.5), report(-1.0), Observation(1.0, {}, None, None)]
    assert standings(points) == [0.5, -1.0, math.inf]


def test_several_metrics_stand_by_fronts_then_by_what_they_add():
    points = [report(2, 2), report(0, 3), report(3, 3), report(1, 1.5), report(3, 0)]
    places = standings(points)
    assert sorted(places[row] for row in (1, 3, 4)) == [0.0, 1.0, 2.0]
    assert places[0] == 3.0 and places[2] == 4.0
    assert places[3] > max(places[1], places[4]) or places[3] == 0.0


def test_what_is_not_known_or_not_allowed_stands_behind():
    points = [
        report(0, 0, violation=2.0),
        report(0, 0, violation=1.0),
        report(0, 0, violation=None),
        report(0, math.nan, missing=True),
        report(9, 9),
        Observation(1.0, {}, None, None),
    ]
    places = standings(points)
    assert places[4] == 0.0
    assert places[1] < places[0] < math.inf and places[5] == math.inf
    assert INFEASIBLE_STANDING <= max(places[2], places[3]) < places[1]


def test_nothing_feasible_at_all():
    places = standings([report(0, 0, violation=2.0), report(0, 0, violation=1.0)])
    assert INFEASIBLE_STANDING <= places[1] < places[0]


def test_a_report_from_before_a_metric_joined_stands_behind():
    old, new = report(0, 0), report(5, 5, 5)
    assert standings([old, new])[1] == 0.0 < INFEASIBLE_STANDING <= standings([old, new])[0]


@pytest.mark.parametrize("width", [2, 3, 4])
def test_the_front_is_what_nothing_dominates(width):
    rng = np.random.default_rng(width)
    rows = rng.integers(0, 5, size=(60, width)).astype(float)
    front = []
    for number, row in enumerate(rows):
        front = with_report(front, report(*row), number)
    beaten = [any((other <= row).all() and (other < row).any() for other in rows) for row in rows]
    assert {losses for losses, _, _ in front} == {
        tuple(row) for row, worse in zip(rows, beaten, strict=True) if not worse
    }
    first = {}
    for number, row in enumerate(rows):
        first.setdefault(tuple(row), number)
    assert all(first[losses] == number for losses, number, _ in front)  # of equals the first


def test_many_reports_in_many_metrics_are_told_apart_by_their_fronts_all_the_same():
    rng = np.random.default_rng(0)
    rows = rng.random((60, 6))
    rows[7] = -1.0
    places = standings([report(*row) for row in rows])
    assert sorted(places) == list(map(float, range(60))) and places[7] == 0.0
