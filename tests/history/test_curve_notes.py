"""Notes about curves: what older logs wrote is read, and what is written comes back."""

import msgspec
import pytest

from scrimp.history.curve_notes import CurveFit, Growth, MetricFit, NewcomerPool
from scrimp.history.notes import Modelled, Notes

FIT = CurveFit((0.1,), 4, NewcomerPool(1, 2, 3), (MetricFit((0.1,)), MetricFit((0.2,), "constant")))


def test_models_of_several_metrics_come_back() -> None:
    notes = Notes(curves=FIT, reason=Modelled(-3.0, question=Growth(8.0)))
    assert msgspec.json.decode(msgspec.json.encode(notes), type=Notes) == notes


def test_a_record_of_one_metric_is_read_and_written_as_it_was() -> None:
    text = b'{"theta":[0.1],"rows":4,"pool":{"decision":1,"rows":2,"trials":3}}'
    one = msgspec.json.decode(text, type=CurveFit)
    assert one.each == ()
    assert msgspec.json.encode(one) == text


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"theta":[0.1],"kind":"odd"}', type=MetricFit)
