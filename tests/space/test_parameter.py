import itertools
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import scrimp
from scrimp.errors import ConfigError, SpaceError
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal, parameter_from_json
from scrimp.space.parameter_contract import Parameter, identity
from scrimp.testing.spaces import parameters

NAN, INF = float("nan"), float("inf")

BAD_DEFINITIONS = [
    (lambda: Float(1.0, 0.0), ["Float", "low is 1.0", "below high"]),
    (lambda: Float(1.0, 1.0), ["Float", "low is 1.0", "below high"]),
    (lambda: Float(0.0, 1.0, log=True), ["Float", "low is 0.0", "above 0"]),
    (lambda: Float(-1.0, 1.0, log=True), ["Float", "low is -1.0", "above 0"]),
    (lambda: Float(NAN, 1.0), ["Float", "low is nan", "finite"]),
    (lambda: Float(0.0, INF), ["Float", "high is inf", "finite"]),
    (lambda: Float(0.0, 10**400), ["Float", "high is 1000", "finite"]),
    (lambda: Float("0", 1.0), ["Float", "low is '0'", "finite number"]),
    (lambda: Float(False, True), ["Float", "low is False", "finite number"]),
    (lambda: Float(-1.7e308, 1.7e308), ["Float", "-1.7e+308", "too far apart"]),
    (lambda: Float(1e16, 1e16 + 2, log=True), ["Float", "1e+16", "too close"]),
    (lambda: Float(0.1, 1.0, log="yes"), ["Float", "log is 'yes'", "True or False"]),
    (lambda: Float(0.0, 1.0, default=2.0), ["Float", "default is 2.0", "from 0.0 to 1.0"]),
    (lambda: Float(0.0, 1.0, prior=0.5), ["Float", "prior is 0.5", "(value, confidence)"]),
    (lambda: Float(0.0, 1.0, prior=(3.0, "low")), ["Float", "prior is 3.0", "from 0.0 to 1.0"]),
    (
        lambda: Float(0.0, 1.0, prior=(0.5, "sure")),
        ["Float", "confidence 'sure'", "'low', 'medium', 'high'"],
    ),
    (lambda: Float(0.0, 1.0, prior=(0.5, 0)), ["Float", "confidence 0", "above 0"]),
    (lambda: Float(0.0, 1.0, prior=(0.5, True)), ["Float", "confidence True", "number above 0"]),
    (lambda: Float(0.0, 1.0, when="sgd"), ["Float", "when is 'sgd'", "map parents"]),
    (lambda: Float(0.0, 1.0, when={}), ["Float", "when is {}", "map parents"]),
    (lambda: Float(0.0, 1.0, when={"optimizer": []}), ["Float", "no value", "'optimizer'"]),
    (lambda: Int(5, 1), ["Int", "low is 5", "below high"]),
    (lambda: Int(3, 3), ["Int", "low is 3", "Constant"]),
    (lambda: Int(0, 8, log=True), ["Int", "low is 0", "above 0"]),
    (lambda: Int(0.5, 3), ["Int", "low is 0.5", "whole number"]),
    (lambda: Int(True, 3), ["Int", "low is True", "whole number"]),
    (lambda: Int(0, 10**13), ["Int", "high is 10000000000000", "between"]),
    (lambda: Int(0, NAN), ["Int", "high is nan", "whole number"]),
    (lambda: Float(0.1, 1.0, log=True, step=0.1), ["Float", "step is 0.1", "log=True", "Ordinal"]),
    (lambda: Float(0.0, 1.0, step=0), ["Float", "step is 0", "above 0"]),
    (lambda: Float(0.0, 1.0, step=-0.1), ["Float", "step is -0.1", "above 0"]),
    (lambda: Float(0.0, 1.0, step=NAN), ["Float", "step is nan", "finite"]),
    (lambda: Float(0.0, 1.0, step=True), ["Float", "step is True", "finite"]),
    (lambda: Float(0.0, 1.0, step="0.1"), ["Float", "step is '0.1'", "finite"]),
    (lambda: Float(0.0, 1.0, step=2), ["Float", "step is 2.0", "smaller"]),
    (lambda: Float(0.0, 1.0, step=1e-15), ["Float", "step is 1e-15", "larger"]),
    (lambda: Float(1e9, 1e9 + 1, step=1e-7), ["Float", "step is 1e-07", "larger"]),
    (lambda: Float(0.0, 1.0, step=0.1, default=0.25), ["Float", "default is 0.25", "steps of 0.1"]),
    (
        lambda: Float(0.0, 1.0, step=0.1, prior=(0.25, "low")),
        ["Float", "prior is 0.25", "steps of 0.1"],
    ),
    (lambda: Int(1, 8, step=0.5), ["Int", "step is 0.5", "whole number"]),
    (lambda: Int(1, 8, step=0), ["Int", "step is 0", "above 0"]),
    (lambda: Int(1, 8, step=8), ["Int", "step is 8", "smaller"]),
    (lambda: Int(1, 8, log=True, step=2), ["Int", "step is 2", "log=True"]),
    (lambda: Ordinal([]), ["Ordinal", "values is empty", "at least one"]),
    (lambda: Ordinal([1, 2, 1]), ["Ordinal", "1 twice", "listed once"]),
    (lambda: Ordinal(5), ["Ordinal", "values is 5", "list"]),
    (lambda: Categorical([]), ["Categorical", "choices is empty", "at least one"]),
    (lambda: Categorical(["a", "a"]), ["Categorical", "'a' twice", "listed once"]),
    (lambda: Categorical("adam"), ["Categorical", "choices is 'adam'", "list"]),
    (lambda: Categorical([(64, 64)]), ["Categorical", "(64, 64) of type tuple", "name"]),
    (lambda: Categorical([1.0, NAN]), ["Categorical", "nan", "finite"]),
    (lambda: Categorical(["a"], default="b"), ["Categorical", "default is 'b'", "one of 'a'"]),
    (lambda: Constant([1]), ["Constant", "[1] of type list", "name"]),
    (lambda: Constant(1, default=1), ["Constant", "default 1", "a value only"]),
]


@pytest.mark.parametrize(("define", "words"), BAD_DEFINITIONS)
def test_bad_definitions_are_refused_with_value_and_rule(define, words):
    with pytest.raises(SpaceError) as caught:
        define()
    for word in words:
        assert word in str(caught.value)


BAD_VALUES = [
    (Float(0.0, 1.0), 1.5, "from 0.0 to 1.0"),
    (Float(0.0, 1.0), -1e-9, "from 0.0 to 1.0"),
    (Float(0.0, 1.0), NAN, "finite number"),
    (Float(0.0, 1.0), INF, "finite number"),
    (Float(0.0, 1.0), 10**400, "finite number"),
    (Float(0.0, 1.0), True, "finite number"),
    (Float(0.0, 1.0), np.bool_(True), "finite number"),
    (Float(0.0, 1.0), "0.5", "finite number"),
    (Float(0.0, 1.0), None, "finite number"),
    (Float(0.0, 1.0), [0.5], "finite number"),
    (Int(1, 8), 0, "from 1 to 8"),
    (Int(1, 8), 9, "from 1 to 8"),
    (Int(1, 8), 2.5, "whole number"),
    (Int(1, 8), True, "whole number"),
    (Int(1, 8), "3", "whole number"),
    (Int(1, 8), NAN, "whole number"),
    (Int(1, 8), -INF, "whole number"),
    (Float(0.0, 1.0, step=0.1), 0.25, "in steps of 0.1"),
    (Float(0.0, 1.0, step=0.1), 0.3001, "in steps of 0.1"),
    (Float(0.0, 1.0, step=0.1), 1.1, "from 0.0 to 1.0"),
    (Int(8, 256, step=8), 12, "from 8 to 256 in steps of 8"),
    (Int(8, 256, step=8), 264, "from 8 to 256"),
    (Ordinal([64, 128]), 65, "one of 64, 128"),
    (Ordinal([0, 1]), True, "one of 0, 1"),
    (Ordinal([64, 128]), "64", "one of 64, 128"),
    (Categorical(["a", None]), "b", "one of 'a', None"),
    (Categorical([True, False]), 1, "one of True, False"),
    (Categorical(["a"]), ["a"], "one of 'a'"),
    (Categorical(["a"]), {}, "one of 'a'"),
    (Constant(32), 64, "one of 32"),
    (Constant(1), True, "one of 1"),
]


@pytest.mark.parametrize(("parameter", "value", "rule"), BAD_VALUES)
def test_bad_values_are_refused_with_parameter_value_and_rule(parameter, value, rule):
    with pytest.raises(ConfigError) as caught:
        parameter.validate("width", value)
    assert "'width'" in str(caught.value)
    assert repr(value) in str(caught.value)
    assert rule in str(caught.value)


@pytest.mark.parametrize(
    ("parameter", "value", "normal"),
    [
        (Float(0.0, 1.0), 1, 1.0),
        (Float(0.0, 1.0), np.float32(0.5), 0.5),
        (Float(0.0, 1.0), np.int64(0), 0.0),
        (Int(1, 8), 3.0, 3),
        (Int(1, 8), np.uint8(8), 8),
        (Float(0.0, 1.0, step=0.1), 3 * 0.1, 0.3),
        (Float(0.0, 0.3, step=0.1), 3 * 0.1, 0.3),
        (Float(0.0, 1.0, step=0.1), np.float32(0.7), 0.7),
        (Float(-1, 1, step=0.5), 1, 1.0),
        (Int(8, 256, step=8), 16.0, 16),
        (Ordinal([0.5, 1, 2]), 1.0, 1),
        (Categorical([1, True, 1.0]), True, True),
        (Categorical([1, True, 1.0]), 1.0, 1.0),
        (Categorical(["a", None]), None, None),
        (Categorical(["a"]), np.str_("a"), "a"),
        (Constant(32), np.int64(32), 32),
    ],
)
def test_values_are_normalised(parameter, value, normal):
    assert identity(parameter.validate("p", value)) == identity(normal)


@settings(max_examples=100, deadline=None)
@given(parameters(), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_every_place_has_a_legal_value_and_leads_back(parameter, places):
    values = parameter.from_units(np.array(places))
    assert [identity(parameter.validate("p", value)) for value in values] == [
        identity(value) for value in values
    ]
    units = parameter.to_units(values)
    assert ((units >= -1e-15) & (units <= 1 + 1e-15)).all()
    if isinstance(parameter, Float) and parameter.step is None:
        np.testing.assert_allclose(units, places, rtol=0, atol=1e-12)
    else:
        assert [identity(value) for value in parameter.from_units(units)] == [
            identity(value) for value in values
        ]


@settings(max_examples=100, deadline=None)
@given(parameters())
def test_pickle_and_repr_restore_the_parameter(parameter):
    assert pickle.loads(pickle.dumps(parameter)) == parameter
    names = {kind.__name__: kind for kind in (Float, Int, Ordinal, Categorical, Constant)}
    assert eval(repr(parameter), names) == parameter


def test_scalars_are_the_same_as_arrays():
    parameter = Float(1e-4, 1.0, log=True)
    assert parameter.from_unit(0.5) == pytest.approx(0.01)
    assert parameter.to_unit(0.01) == pytest.approx(0.5)
    assert isinstance(parameter.from_unit(0.5), float)
    assert parameter.from_unit(0.0) == 1e-4
    assert parameter.from_unit(1.0) == 1.0


@pytest.mark.parametrize(
    ("log", "shares"), [(False, [0.25] * 4), (True, np.diff(np.log([0.5, 1.5, 2.5, 3.5, 4.5])))]
)
def test_every_integer_has_its_share(log, shares):
    values = Int(1, 4, log=log).from_units((np.arange(100_000) + 0.5) / 100_000)
    counts = np.bincount(values, minlength=5)[1:] / 100_000
    np.testing.assert_allclose(counts, np.array(shares) / np.sum(shares), atol=1e-4)


def test_places_of_listed_values():
    np.testing.assert_allclose(
        Ordinal(["s", "m", "l", "xl"]).to_units(["s", "m", "l", "xl"]), [1 / 8, 3 / 8, 5 / 8, 7 / 8]
    )
    np.testing.assert_allclose(Categorical(["a", "b", "c"]).to_units(["c", "a", "b"]), [1, 0, 0.5])
    assert Categorical(["a"]).to_unit("a") == 0.0
    np.testing.assert_allclose(Int(1, 2).to_units([1, 2]), [0.25, 0.75])


def test_grids_and_sizes():
    assert list(Int(2, 5).grid) == [2, 3, 4, 5]
    assert Float(0, 1).grid is None
    sizes = [
        item.size
        for item in (Float(0, 1), Int(2, 5), Ordinal([1, 2]), Categorical(["a", "c"]), Constant(1))
    ]
    assert sizes == [math.inf, 4, 2, 2, 1]
    assert Int(0, 10**12).size == 10**12 + 1


def test_equality_is_by_type_too():
    assert Categorical([1, 0]) != Categorical([True, False])
    assert Categorical([1, 0]) == Categorical((1, 0))
    assert hash(Categorical([1, 0])) == hash(Categorical((1, 0)))
    assert Float(0, 1) == Float(0.0, 1.0)
    assert Float(0, 1) != "Float(0.0, 1.0)"


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


@pytest.mark.parametrize(
    ("parameter", "value", "bound"),
    [
        (Float(0.0, 0.3), 0.1 + 0.2, 0.3),
        (Float(0.1, 1.0), 0.3 - 0.2, 0.1),
        (Float(0.0, 1.0), 0.1 + 0.2 - 0.3 - 1.2e-16, 0.0),
        (Float(1e-5, 0.1, log=True), np.float32(0.1), 0.1),
        (Float(1e-5, 0.1, log=True), np.float32(1e-5), 1e-5),
    ],
)
def test_a_value_that_misses_a_bound_by_rounding_is_the_bound(parameter, value, bound):
    assert scrimp.Space(x=parameter).validate({"x": value}) == {"x": bound}


@pytest.mark.parametrize("value", [0.3 + 1e-15, 0.3000001, -1e-9])
def test_a_value_that_misses_a_bound_by_more_is_refused(value):
    with pytest.raises(ConfigError, match=r"must be from 0\.0 to 0\.3"):
        Float(0.0, 0.3).validate("x", value)


def test_errors_of_values_speak_python():
    space = scrimp.Space(x=Float(0, 1), n=Int(1, 5), c=Categorical(["a", "b"]))
    for name, value in itertools.product(space, [None, [1], {"a": 1}, "text", object()]):
        with pytest.raises(ConfigError) as raised:
            space.validate({"x": 0.5, "n": 2, "c": "a", name: value})
        assert f"parameter {name!r} is {value!r}; it must be" in str(raised.value)
        assert "null" not in str(raised.value)
