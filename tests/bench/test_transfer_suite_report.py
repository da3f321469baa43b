"""The summary by hand."""

import numpy as np

from scrimp.bench.transfer_suite import average_ranks_at, transfer_summary


def record(
    task: str, method: str, regret: list[float], rank: list[int], solved: list[bool]
) -> dict[str, object]:
    return {
        "table": "t",
        "task": task,
        "seed": 0,
        "method": method,
        "at": [1, 5],
        "regret": regret,
        "grid_rank": rank,
        "solved": solved,
        "decision_seconds": 0.05,
        "decisions": 5,
    }


RECORDS = [
    record("a", "auto", [0.5, 0.0], [9, 1], [False, True]),
    record("a", "gp", [0.5, 0.2], [9, 4], [False, False]),
    record("b", "auto", [0.1, 0.1], [3, 3], [False, False]),
    record("b", "gp", [0.9, 0.3], [20, 5], [False, False]),
]


def test_means_ranks_and_unsolved() -> None:
    header, rows = transfer_summary(RECORDS)
    found = {row[0]: row[1:] for row in rows}
    assert header == ["evaluations", "1", "5"]
    assert found["ADTM auto"] == ["0.3000", "0.0500"] and found["ADTM gp"] == ["0.7000", "0.2500"]
    assert found["grid rank auto"] == ["6.0", "2.0"] and found["unsolved auto"] == ["1.00", "0.50"]
    assert found["rank auto"] == ["1.25", "1.00"] and found["rank gp"] == [
        "1.75",
        "2.00",
    ]  # ties share
    assert found["ms per decision gp"] == ["10.0", ""]


def test_ranks_use_runs_that_all_methods_have() -> None:
    ranks = average_ranks_at(RECORDS[:3])
    assert ranks["auto"].tolist() == [1.5, 1.0]
    assert np.isnan(average_ranks_at([RECORDS[0], RECORDS[3]])["gp"]).all()
