"""The report of several objectives: ranks at moments."""

from scrimp.bench.trade_off_suite import ranks_by_problem, trade_off_summary


def record(method, seed, regret, task="zdt1"):
    return {
        "suite": "objectives", "table": "formulas", "task": task, "method": method,
        "seed": seed, "size": len(regret), "decision_seconds": 1.0, "decisions": 60,
        "regret": regret,
    }  # fmt: skip


def test_the_report_ranks_at_moments():
    def course(value):
        return [1.0] * 29 + [value] * 30 + [0.5]

    records = [record("gp", seed, course(0.1)) for seed in (0, 1)] + [
        record("random", seed, course(0.2)) for seed in (0, 1)
    ]
    header, rows = trade_off_summary(records)
    table = {row[0]: row[1:] for row in rows}
    assert header == ["regret of hypervolume after 60", "gp", "random"]
    assert table["rank at 30, 1 problems"] == ["1.00", "2.00"]
    assert table["rank at 60, 1 problems"] == ["1.50", "1.50"]
    assert table["behind at 30"][0] == "-" and not any("at 100" in name for name in table)


def test_a_method_that_came_less_far_is_ranked_as_far_as_it_came():
    records = [record("gp", 0, [0.5] * 60, task) for task in ("zdt1", "zdt2")]
    records += [record("slow", 0, [0.4] * 30, task) for task in ("zdt1", "zdt2")]
    records += [record("random", 0, [0.9] * 60, "zdt1")]
    header, rows = trade_off_summary(records)
    table = {row[0]: row[1:] for row in rows}
    assert header[0].endswith("after 30") and table["zdt2"] == ["0.5", "0.4", "-"]
    assert table["rank at 30, 1 problems"] == ["2.00", "1.00", "3.00"]
    assert table["rank at 60, 1 problems"] == ["1.00", "", "2.00"]


def test_ranks_are_averaged_within_a_problem_first():
    def cells(*values):
        return {("t", "p", 0): values[0], ("t", "p", 1): values[1], ("t", "q", 0): values[2]}

    found = ranks_by_problem({"a": cells(0.1, 0.3, 0.1), "b": cells(0.2, 0.2, 0.2)})
    assert found == {"a": [1.5, 1.0], "b": [1.5, 2.0]} and ranks_by_problem({}) == {}
