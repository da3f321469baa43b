"""Reports among the output of a script."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import ReportError
from scrimp.executors.report_lines import LONGEST_LINE, Lines, ScriptReport, parse_report


def test_a_report_is_metrics_with_a_step() -> None:
    line = 'scrimp: {"loss": 0.5, "acc": 1, "step": 4, "stderr": 0.1, "answer": true}'
    assert parse_report(line) == ScriptReport({"loss": 0.5, "acc": 1}, 4, 0.1, True)
    assert parse_report('42%|####  | scrimp: {"loss": 0.5}\r') == ScriptReport({"loss": 0.5})
    nan = parse_report('scrimp: {"loss": NaN}')
    assert nan is not None and math.isnan(nan.metrics["loss"])


@pytest.mark.parametrize(
    "line", ["", "loss: 0.5", "scrimp is fine", "scrimp: done", '{"loss": 0.5}', "scrimp:{}"]
)
def test_other_lines_are_none(line: str) -> None:
    assert parse_report(line) is None


@pytest.mark.parametrize(
    "line",
    [
        'scrimp: {"loss": }',
        "scrimp: {",
        'scrimp: {"loss": 0.5} and more',
        "scrimp: " + '{"a":' * 100_000,
    ],
)
def test_broken_reports_are_named(line: str) -> None:
    with pytest.raises(ReportError, match="report"):
        parse_report(line)


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 20))
def test_lines_come_out_whole_however_bytes_go_in(data: bytes, size: int) -> None:
    lines = Lines()
    found = [
        line
        for start in range(0, len(data), size)
        for line in lines.add(data[start : start + size])
    ]
    found += lines.end()
    expected = [p.decode(errors="replace") for p in data.split(b"\n")]
    assert found == (expected[:-1] if expected[-1] == "" else expected)


def test_endless_lines_are_cut() -> None:
    lines = Lines()
    assert lines.add(b"x" * (LONGEST_LINE + 1)) == ["x" * (LONGEST_LINE + 1)]
    assert lines.end() == []
