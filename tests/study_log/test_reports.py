"""What objectives say becomes metrics or a failure, never anything else."""

import math
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import ReportError, StudyError
from scrimp.study_log.events import Ended, Reported
from scrimp.study_log.reports import as_metrics, as_standard_errors, report_events


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
        Decimal("1.0"),
        np.ma.array(1.0),
    ],
)
def test_numbers(value: Any) -> None:
    for metrics in (as_metrics(value, ["loss"]), as_metrics({"loss": value}, ["loss"])):
        assert metrics == {"loss": 1.0} and type(metrics["loss"]) is float


@pytest.mark.parametrize(
    "value", [Decimal("nan"), Decimal("sNaN"), np.ma.masked, np.ma.array(0.5, mask=True)]
)
def test_what_is_no_number_yet_is_nan(value: Any) -> None:
    assert math.isnan(as_metrics(value, ["loss"])["loss"])


@pytest.mark.parametrize("value", [None, "0.5", True, np.True_, [1.0], np.zeros(2), object(), 1j])
def test_other_things(value: Any) -> None:
    with pytest.raises(ReportError, match=r"metric 'loss' is .* must be a number"):
        as_metrics(value, ["loss"])


def test_the_studys_metric_is_needed() -> None:
    with pytest.raises(ReportError, match=r"'loss' was not reported \(reported: a, b\)"):
        as_metrics({"b": 1, "a": 2}, ["loss"])
    with pytest.raises(ReportError, match="reported: none"):
        as_metrics({}, ["loss"])


@pytest.mark.parametrize("name", ["", 3, None])
def test_names(name: Any) -> None:
    with pytest.raises(ReportError, match="metric name"):
        as_metrics({name: 1.0, "loss": 1.0}, ["loss"])


def test_a_good_report_stays_as_it_is() -> None:
    report = Reported(
        trial=3,
        step=2.0,
        metrics={"loss": 0.5},
        attempt=2,
        stderr={"loss": 0.1},
        cost=7.0,
        time=9.0,
    )
    assert report_events(report, ["loss"]) == [report]


def test_standard_errors_are_one_number_or_one_for_each_metric() -> None:
    assert as_standard_errors(None, ["loss"]) == {}
    assert as_standard_errors(np.float32(0.5), ["loss"]) == {"loss": 0.5}
    assert as_standard_errors({"loss": 0.5}, ["loss"]) == {"loss": 0.5}
    both = ("loss", "size")
    assert as_standard_errors(0.5, both) == {"loss": 0.5}
    assert as_standard_errors({"size": 1, "loss": None}, both) == {"size": 1.0}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"sise": 0.1}, r"stderr has 'sise', which is not a metric of the study; .*size"),
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
        stderr={"loss": 0.1},
        cost=7.0,
        time=9.0,
    )
    clean, ended = report_events(report, ["loss"])
    assert clean == Reported(
        trial=3,
        step=2.0,
        metrics={"loss": None, "other": 1.0},
        attempt=2,
        stderr={"loss": 0.1},
        cost=7.0,
        time=9.0,
    )
    assert isinstance(ended, Ended)
    assert (ended.trial, ended.status, ended.attempt, ended.time) == (3, "failed", 2, 9.0)
    assert ended.message == f"loss is {value} at step 2: not a finite number"


def test_other_metrics_need_not_be_finite() -> None:
    report = Reported(trial=3, step=2.0, metrics={"loss": 0.5, "other": math.nan})
    assert report_events(report, ["loss"]) == [
        Reported(trial=3, step=2.0, metrics={"loss": 0.5, "other": None})
    ]


def test_names_and_reports_have_a_largest_size() -> None:
    with pytest.raises(ReportError, match="at most 200"):
        as_metrics({"loss": 1.0, "n" * 201: 1.0}, ["loss"])
    with pytest.raises(ReportError, match="at most 1000"):
        as_metrics({"loss": 1.0, **{f"m{number}": 1.0 for number in range(1000)}}, ["loss"])


def test_half_a_surrogate_pair_in_a_name_fails_the_trial_and_not_the_run(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    bad = "loss" + chr(0xD800)

    def objective(trial: scrimp.LiveTrial) -> dict[str, float]:
        return {"value": 0.5} | ({bad: 1.0} if trial.id == 1 else {})

    study.optimize(objective, n_trials=3)
    assert study.history.counts["completed"] == 2
    assert "is not valid Unicode" in study.trials[1].message
    with pytest.raises(ReportError, match="not valid Unicode"):
        study.tell(study.ask(), {"value": 0.5, bad: 1.0})
    with pytest.raises(StudyError, match="not valid Unicode"):
        study.set_user_attr(bad, 1)
    study.set_note(f"a note {chr(0xDC00)}")
    assert study.note == "a note \\udc00"
