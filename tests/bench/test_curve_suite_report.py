"""The summary of curve comparisons, worked by hand."""

import numpy as np
import pytest

from scrimp.bench.curve_suite import curve_summary, mean_trace, share_to_reach


def record(method, task, seed, trace, seconds=0.5):
    def regret(share):
        return next((value for spent, value in reversed(trace) if spent <= share), 1.0)

    shares = [0.1, 0.25, 0.5, 0.75, 1.0]
    return {
        "table": "toy",
        "task": task,
        "method": method,
        "seed": seed,
        "decision_seconds": seconds,
        "decisions": 10,
        "spent": shares,
        "regret": [regret(share) for share in shares],
        "trace": [list(point) for point in trace],
    }


ASHA = [record("asha", "a", 0, [(0.2, 0.6), (0.8, 0.2)]), record("asha", "b", 0, [(0.4, 0.4)])]
FAST = [record("fast", "a", 0, [(0.1, 0.3)]), record("fast", "b", 0, [(0.3, 0.2)], seconds=1.5)]


def test_the_mean_of_step_functions():
    mean = mean_trace(ASHA)
    assert mean[[98, 198, 300, 398, 500, 799, 999]] == pytest.approx(
        [1, 1, 0.8, 0.8, 0.5, 0.3, 0.3]
    )
    assert mean[199] == pytest.approx(0.8)  # at 0.2 itself
    assert len(mean) == 1000 and (np.diff(mean) <= 0).all()


def test_the_share_at_which_a_goal_is_reached():
    assert share_to_reach(ASHA, 0.3) == pytest.approx(0.8)
    assert share_to_reach(FAST, 0.3) == pytest.approx(0.3)
    assert share_to_reach(FAST, 0.1) is None


def test_one_row_per_method():
    header, rows = curve_summary([*ASHA, *FAST])
    assert header[:6] == ["method", "at 0.1", "at 0.25", "at 0.5", "at 0.75", "at 1"]
    assert rows[0] == [
        "asha",
        "1.0000",
        "0.8000",
        "0.5000",
        "0.5000",
        "0.3000",
        "1.50",
        "0.800",
        "1.25x",
        "0.500",
        "-",
    ]
    assert rows[1][:10] == [
        "fast",
        "0.6500",
        "0.6500",
        "0.2500",
        "0.2500",
        "0.2500",
        "1.50",
        "0.300",
        "3.33x",
        "1.000",
    ]
    assert rows[1][10].startswith("-0.050 [")


def test_without_asha_nothing_is_compared_with_it():
    _, rows = curve_summary(FAST)
    assert rows[0][7:9] == ["-", "-"] and rows[0][10] == "-"


def test_asha_in_capitals_is_compared_with_too():
    mine = [record("MINE", "a", 0, [(0.2, 0.1)]), record("MINE", "b", 0, [(0.2, 0.1)])]
    _, rows = curve_summary([{**one, "method": "ASHA"} for one in ASHA] + mine)
    assert rows[0][-1] == "-" and rows[1][-1] != "-"
