import json

import pytest
from hypothesis import given, settings

from scrimp.errors import SpaceError
from scrimp.space.parameter_contract import Parameter
from scrimp.space.parameter_record import parameter_from_json
from scrimp.testing.spaces import parameters


@settings(max_examples=60, deadline=None)
@given(parameters())
def test_records_restore_the_parameter(parameter: Parameter) -> None:
    assert parameter_from_json("p", json.loads(json.dumps(parameter.to_json()))) == parameter


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"low": 0}, ["'lr'", "type None", "float, int"]),
        ({"type": "flaot", "low": 0}, ["'lr'", "'flaot'", "float, int"]),
        ({"type": "float", "low": 0}, ["'lr'", "lacks 'high'", "low, high"]),
        (
            {"type": "float", "low": 0, "high": 1, "steps": 0.1},
            ["'lr'", "unknown setting 'steps'", "low, high"],
        ),
        ({"type": "float", "low": 2, "high": 1}, ["'lr'", "low is 2", "below high"]),
        ({"type": "categorical"}, ["'lr'", "lacks 'choices'", "choices"]),
    ],
)
def test_bad_records_are_refused_by_name(record, words):
    with pytest.raises(SpaceError) as caught:
        parameter_from_json("lr", record)
    for word in words:
        assert word in str(caught.value)
