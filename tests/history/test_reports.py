"""What objectives say becomes metrics or a failure, never anything else."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import ReportError
from scrimp.history.events import Ended, Reported
from scrimp.history.reports import (
    LONGEST_MESSAGE,
    as_metrics,
    as_standard_errors,
    headline,
    readable,
    report_events,
)


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.0,
        np.float32(1),
        np.float64(1),
        np.int64(1),
        np.array(1.0),
        np.array([1.0]),
        Fraction(1),
    ],
)
def test_numbers(value: Any) -> None:
    for metrics in (as_metrics(value, "loss"), as_metrics({"loss": value}, "loss")):
        assert metrics == {"loss": 1.0} and type(metrics["loss"]) is float


@pytest.mark.parametrize("value", [None, "0.5", True, np.True_, [1.0], np.zeros(2), object(), 1j])
def test_other_things(value: Any) -> None:
    with pytest.raises(ReportError, match=r"metric 'loss' is .* must be a number"):
        as_metrics(value, "loss")


def test_the_studys_metric_is_needed() -> None:
    with pytest.raises(ReportError, match=r"'loss' was not reported \(reported: a, b\)"):
        as_metrics({"b": 1, "a": 2}, "loss")
    with pytest.raises(ReportError, match="reported: none"):
        as_metrics({}, "loss")


@pytest.mark.parametrize("name", ["", 3, None])
def test_names(name: Any) -> None:
    with pytest.raises(ReportError, match="metric name"):
        as_metrics({name: 1.0, "loss": 1.0}, "loss")


def test_a_good_report_stays_as_it_is() -> None:
    report = Reported(
        trial=3,
        step=2.0,
        metrics={"loss": 0.5},
        attempt=2,
        stderr=0.1,
        cost=7.0,
        further_stderr={"size": 0.2},
        time=9.0,
    )
    assert report_events(report, "loss") == [report]


def test_standard_errors_are_one_number_or_one_for_each_metric() -> None:
    assert as_standard_errors(None, "loss") == (None, None)
    assert as_standard_errors(np.float32(0.5), "loss") == (0.5, None)
    assert as_standard_errors({"loss": 0.5}, "loss") == (0.5, None)
    both = ("loss", "size")
    assert as_standard_errors(0.5, both) == (0.5, None)
    assert as_standard_errors({"size": 1, "loss": None}, both) == (None, {"size": 1.0})


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"sise": 0.1}, r"stderr has 'sise', which is no metric of the study; .*size"),
        ({"size": -1.0}, r"stderr of 'size' is -1.0; it must be a finite number of at least 0"),
        ({"loss": math.nan}, r"stderr of 'loss' is nan"),
        ({"loss": "small"}, r"stderr of 'loss'.* must be a number"),
    ],
)
def test_standard_errors_that_cannot_be_are_refused(told: Any, said: str) -> None:
    with pytest.raises(ReportError, match=said):
        as_standard_errors(told, ("loss", "size"))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_not_finite_is_a_failure(value: float | None) -> None:
    report = Reported(
        trial=3,
        step=2.0,
        metrics={"loss": value, "other": 1.0},
        attempt=2,
        stderr=0.1,
        cost=7.0,
        time=9.0,
    )
    clean, ended = report_events(report, "loss")
    assert clean == Reported(
        trial=3,
        step=2.0,
        metrics={"loss": None, "other": 1.0},
        attempt=2,
        stderr=0.1,
        cost=7.0,
        time=9.0,
    )
    assert isinstance(ended, Ended)
    assert (ended.trial, ended.status, ended.attempt, ended.time) == (3, "failed", 2, 9.0)
    assert ended.message == f"loss is {value} at step 2: not a finite number"


def test_other_metrics_need_not_be_finite() -> None:
    report = Reported(trial=3, step=2.0, metrics={"loss": 0.5, "other": math.nan})
    assert report_events(report, "loss") == [
        Reported(trial=3, step=2.0, metrics={"loss": 0.5, "other": None})
    ]


def test_the_line_of_a_message_that_says_most() -> None:
    assert headline("") == "" and headline("\n one \n") == "one"
    assert headline("code 1\nTraceback\n  in x\nKeyError: 3\n\n") == "code 1: KeyError: 3"
    assert headline("KeyError: 3\nTraceback\nKeyError: 3") == "KeyError: 3"


def test_messages_and_names_have_a_largest_size() -> None:
    message = readable("tensor(" + "0.1234, " * 1_000_000 + ") out of memory")
    assert (
        len(message) <= LONGEST_MESSAGE
        and message.startswith("tensor(0.1234")
        and message.endswith("out of memory")
    )
    assert "characters left out]" in message and readable("short") == "short"
    with pytest.raises(ReportError, match="at most 200"):
        as_metrics({"loss": 1.0, "n" * 201: 1.0}, "loss")
    with pytest.raises(ReportError, match="at most 1000"):
        as_metrics({"loss": 1.0, **{f"m{number}": 1.0 for number in range(1000)}}, "loss")


def test_a_failing_objective_leaves_a_short_message() -> None:
    def objective(trial: Any) -> float:
        raise RuntimeError("tensor(" + "0.1234, " * 100_000 + ")")

    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    study.optimize(objective, n_trials=1, catch=(Exception,))
    assert len(study.trials[0].message) <= LONGEST_MESSAGE and study.trials[0].message.startswith(
        "RuntimeError"
    )
    assert len(headline(study.trials[0].message)) < 1100
