"""The report of several objectives: ranks at moments."""

from scrimp.bench.trade_off_report import trade_off_summary


def test_the_report_ranks_at_moments():
    def record(method, seed, value):
        return {
            "suite": "objectives", "table": "formulas", "task": "zdt1", "method": method,
            "seed": seed, "size": 60, "decision_seconds": 1.0, "decisions": 60,
            "regret": [1.0] * 29 + [value] * 30 + [0.5],
        }  # fmt: skip

    records = [record("gp", seed, 0.1) for seed in (0, 1)] + [
        record("random", seed, 0.2) for seed in (0, 1)
    ]
    header, rows = trade_off_summary(records)
    table = {row[0]: row[1:] for row in rows}
    assert header[1:] == ["gp", "random"]
    assert table["rank at 30"] == ["1.00", "2.00"] and table["rank at 60"] == ["1.50", "1.50"]
    assert table["behind at 30"][0] == "-" and "rank at 100" not in table
