"""Records about curves: one fit for each metric, written and read back."""

import msgspec
import pytest

from scrimp.study_log.decision_record import (
    CurveFit,
    DecisionRecord,
    DrawnAt,
    Growth,
    MetricFit,
    Modelled,
)

FIT = CurveFit((MetricFit((0.1,)), MetricFit((0.2,), "constant")), 4, DrawnAt(1, 2, 3))


def test_models_of_several_metrics_come_back() -> None:
    record = DecisionRecord(curves=FIT, reason=Modelled(-3.0, question=Growth(8.0)))
    assert msgspec.json.decode(msgspec.json.encode(record), type=DecisionRecord) == record


def test_one_metric_is_written_like_several() -> None:
    text = b'{"fits":[{"theta":[0.1]}],"rows":4,"pool":{"decision":1,"rows":2,"trials":3}}'
    one = msgspec.json.decode(text, type=CurveFit)
    assert one == CurveFit((MetricFit((0.1,)),), 4, DrawnAt(1, 2, 3))
    assert msgspec.json.encode(one) == text


def test_an_unknown_kind_and_a_fit_of_no_metric_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"theta":[0.1],"kind":"odd"}', type=MetricFit)
    with pytest.raises(msgspec.ValidationError):
        empty = b'{"fits":[],"rows":4,"pool":{"decision":1,"rows":2,"trials":3}}'
        msgspec.json.decode(empty, type=CurveFit)
