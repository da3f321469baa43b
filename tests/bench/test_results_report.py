"""Summaries: the numbers that a reader would compute by hand."""

from scrimp.bench.regret_suite import speed_summary
from scrimp.bench.results import regret_summary


def run(task: str, method: str, seed: int, regret: float | None) -> dict[str, object]:
    head = {
        "suite": "functions",
        "table": "functions",
        "task": task,
        "method": method,
        "seed": seed,
    }
    return {**head, "regret": [None, regret], "decision_seconds": 0.02, "decisions": 2}


def test_regret_summary() -> None:
    gp = {("a", 0): 0.1, ("a", 1): 0.3, ("b", 0): 5.0, ("b", 1): 1.0}
    chance = {("a", 0): 0.2, ("a", 1): 0.6, ("b", 0): 5.0, ("b", 1): None}
    records = [
        run(task, method, seed, value)
        for method, runs in (("gp", gp), ("random", chance))
        for (task, seed), value in runs.items()
    ]
    header, rows = regret_summary(records)
    assert header == ["mean final regret", "gp", "random"]
    assert rows[0] == ["a", "0.2", "0.4"] and rows[1] == ["b", "3", "inf"]
    assert rows[2] == ["average rank", "1.12", "1.88"]
    assert rows[3] == ["behind the best", "-", "0.75 [-0.05, 1.55]"]
    assert rows[4] == ["ms per decision", "10.0", "10.0"]


def test_methods_without_a_common_run_have_no_ranks() -> None:
    _, rows = regret_summary([run("a", "gp", 0, 1.0), run("b", "random", 1, 2.0)])
    assert rows[:2] == [["a", "1", "-"], ["b", "-", "2"]] and [row[0] for row in rows] == [
        "a",
        "b",
        "ms per decision",
    ]


def test_speed_summary() -> None:
    record = {"method": "gp", "n": 50, "ask_seconds": 0.0105, "ask_seconds_median": 0.012}
    full = {**record, "between_refits_seconds": 0.003, "acquisition": -1.25}
    none = {**record, "between_refits_seconds": None, "acquisition": None}
    _, rows = speed_summary([full, none])
    assert rows == [
        ["gp", "50", "10.50", "12.00", "3.000", "-1.250"],
        ["gp", "50", "10.50", "12.00", "-", "-"],
    ]
