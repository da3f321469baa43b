"""Filters against plain Python."""

from collections.abc import Callable
from typing import Any

import pytest

import scrimp
from scrimp.dashboard.table import Query, Term, parse_filter
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial


@pytest.fixture(scope="module")
def history(url: str) -> History:
    return scrimp.load_study("staged", storage=url).history


def found(history: History, text: str) -> set[int]:
    wanted = parse_filter(text, history)
    assert wanted.error == ""
    return {trial.id for trial in wanted.of(history.trials)}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("val_error<0.3", lambda trial: trial.best is not None and trial.best < 0.3),
        ("VAL_ERROR < 0.3", lambda trial: trial.best is not None and trial.best < 0.3),
        ("last>=0.3 lr>1e-3", lambda t: (t.value or 0) >= 0.3 and t.config["lr"] > 1e-3),
        ("status=failed", lambda trial: trial.status == "failed"),
        ("status!=failed and kind=a", lambda t: t.status != "failed" and t.config["kind"] == "a"),
        ("status=failed|completed", lambda trial: trial.status in ("failed", "completed")),
        ("lr=1e-4..1e-2", lambda trial: 1e-4 <= trial.config["lr"] <= 1e-2),
        ("lr=..1e-4|1e-2..", lambda t: t.config["lr"] <= 1e-4 or t.config["lr"] >= 1e-2),
        ("depth=2|3", lambda trial: trial.config.get("depth") in (2, 3)),
        ('kind="<b>bold</b>"', lambda trial: trial.config["kind"] != "a"),
        ('budget>=3, "out of memory"', lambda _: False),
        ('"out of memory"', lambda trial: trial.status == "failed"),
        ("trial<=4", lambda trial: trial.id <= 4),
        ("feasible=yes", lambda trial: bool(trial.curve)),
        ("", lambda trial: True),
    ],
)
def test_comparisons_ranges_and_words(
    history: History, text: str, holds: Callable[[Trial], bool]
) -> None:
    assert found(history, text) == {trial.id for trial in history.trials if holds(trial)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "vall_error<0.3",
            "there is no 'vall_error' to filter by; there are lr, kind, depth, val_",
        ),
        ("val_error<low", "does not compare with a number; write for example val_error<0.5"),
        ("val_error<0.1|0.2", "does not compare with a number"),
        ("val_error<nan", "does not compare with a number"),
    ],
)
def test_what_is_not_understood_is_said(history: History, text: str, words: str) -> None:
    wanted = parse_filter(text, history)
    assert words in wanted.error and len(wanted.of(history.trials)) == len(history.trials)


def test_other_metrics_count_as_last_reported_and_come_before_columns() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, metric="a", method="random", storage="memory://")
    for number in range(3):
        study.tell(study.ask(), {"a": 1.0, "seconds": number, "b c": -number})
    assert found(study.history, "seconds>0") == {1, 2}
    assert found(study.history, '"b c"=-1') == {1}


@pytest.mark.parametrize(
    ("term", "value", "holds"),
    [
        (Term("x", "=", ("0.123457",)), 0.1234567, True),  # as the page shows it
        (Term("x", "=", ("True",)), True, True),
        (Term("x", "=", ("1",)), True, False),
        (Term("x", "<", ("1",)), "a", False),
        (Term("x", "<", ("1",)), None, False),
        (Term("x", "!=", ("1",)), None, True),
        (Term("x", "=", ("0.5..",)), 7, True),
    ],
)
def test_values(term: Term, value: Any, holds: bool) -> None:
    assert term.holds(value) is holds


def test_long_filters_are_refused_at_once(history: History) -> None:
    assert "at most 1000 characters" in parse_filter("x" * 50_000, history).error
    assert "use at most 30" in parse_filter("lr>0 " * 31, history).error
    assert Query.of({"text": " " * 50_000}).text == ""
