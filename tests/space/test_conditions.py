import itertools

import pytest
from hypothesis import given, settings

from scrimp.errors import SpaceError
from scrimp.space.conditions import Conditions, nearest
from scrimp.space.designs import grid_design
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Space
from scrimp.testing.spaces import spaces

OPTIMIZER = Categorical(["adam", "sgd", "lion"])


def exists(config, **parameters):
    conditions = Conditions.of(parameters)
    known = {}
    for name in conditions.order:
        if conditions.exists(name, known):
            known[name] = config.get(name)
    return set(known)


def test_a_list_means_any_and_several_parents_mean_all():
    parameters = {
        "optimizer": OPTIMIZER,
        "layers": Int(1, 4),
        "momentum": Float(0, 1, when={"optimizer": ["sgd", "lion"], "layers": [2, 3]}),
    }
    for optimizer, layers in itertools.product(["adam", "sgd", "lion"], range(1, 5)):
        found = exists({"optimizer": optimizer, "layers": layers}, **parameters)
        assert ("momentum" in found) == (optimizer != "adam" and layers in (2, 3))


def test_a_child_of_an_inactive_parent_is_inactive_and_order_of_declaration_is_free():
    parameters = {
        "decay": Float(0, 1, when={"nesterov": True}),
        "nesterov": Categorical([True, False], when={"optimizer": "sgd"}),
        "optimizer": OPTIMIZER,
    }
    assert Conditions.of(parameters).order == ("optimizer", "nesterov", "decay")
    assert exists({"optimizer": "sgd", "nesterov": True}, **parameters) == {
        "optimizer",
        "nesterov",
        "decay",
    }
    assert exists({"optimizer": "sgd", "nesterov": False}, **parameters) == {
        "optimizer",
        "nesterov",
    }
    assert exists({"optimizer": "adam", "nesterov": True}, **parameters) == {"optimizer"}


def test_values_of_parents_are_told_apart_by_type():
    parameters = {"mode": Categorical([1, True]), "child": Constant(0, when={"mode": True})}
    assert exists({"mode": True}, **parameters) == {"mode", "child"}
    assert exists({"mode": 1}, **parameters) == {"mode"}


BAD = [
    (
        {"m": Float(0, 1, when={"optimiser": "sgd"}), "optimizer": OPTIMIZER},
        ["'m'", "'optimiser'", "mean 'optimizer'"],
    ),
    (
        {"m": Float(0, 1, when={"zz": 1}), "optimizer": OPTIMIZER},
        ["'m'", "'zz'", "parameters are 'm', 'optimizer'"],
    ),
    ({"m": Float(0, 1, when={"m": 0.5})}, ["'m'", "itself", "another"]),
    (
        {"m": Float(0, 1, when={"optimizer": "sdg"}), "optimizer": OPTIMIZER},
        ["'m'", "'optimizer' is 'sdg'", "one of 'adam'"],
    ),
    ({"m": Float(0, 1, when={"n": 9}), "n": Int(1, 8)}, ["'m'", "'n' is 9", "from 1 to 8"]),
    ({"m": Float(0, 1, when={"n": True}), "n": Int(1, 8)}, ["'m'", "'n' is True", "whole number"]),
    ({"m": Float(0, 1, when={"c": 2}), "c": Constant(1)}, ["'m'", "'c' is 2", "one of 1"]),
    (
        {"m": Float(0, 1, when={"lr": 0.5}), "lr": Float(0, 1)},
        ["'m'", "'lr'", "Float(0.0, 1.0)", "must be an Int"],
    ),
    (
        {"m": Float(0, 1, when={"n": 5}), "n": Int(1, 5000)},
        ["'m'", "'n'", "Int(1, 5000)", "at most 1000"],
    ),
    (
        {
            "a": Int(0, 1, when={"b": 0}),
            "b": Int(0, 1, when={"c": 0}),
            "c": Int(0, 1, when={"a": 0}),
            "d": Int(0, 1),
        },
        ["cycle", "a -> b -> c -> a", "remove"],
    ),
    (
        {
            "optimizer": OPTIMIZER,
            "a": Int(0, 1, when={"optimizer": "adam"}),
            "b": Int(0, 1, when={"a": 1, "optimizer": ["sgd", "lion"]}),
        },
        ["'b'", "never exist", "'optimizer'"],
    ),
]


@pytest.mark.parametrize(("parameters", "words"), BAD)
def test_bad_conditions_are_refused_with_names_value_and_rule(parameters, words):
    with pytest.raises(SpaceError) as caught:
        Conditions.of(parameters)
    for word in words:
        assert word in str(caught.value)


def test_implied_conditions_reach_over_generations():
    parameters = {
        "o": OPTIMIZER,
        "a": Ordinal([1, 2], when={"o": ["sgd", "adam"]}),
        "b": Float(0, 1, when={"a": 2}),
    }
    implied = Conditions.of(parameters).implied
    assert implied["b"] == {"a": {(int, 2)}, "o": {(str, "sgd"), (str, "adam")}}


def test_nearest_names():
    assert nearest("momentun", {"lr": 0, "momentum": 0}) == "; did you mean 'momentum'?"
    assert nearest("zzz", {"lr": 0}) == "; its parameters are 'lr'"


@settings(max_examples=60, deadline=None)
@given(spaces())
def test_the_count_is_the_length_of_the_grid(space):
    small = (
        Space(
            {name: parameter for name, parameter in space.items() if not _long(parameter)}
            or {"one": 1}
        )
        if not _tied(space)
        else Space(one=1)
    )
    assert small.size == sum(1 for _ in grid_design(small))


def _long(parameter):
    return parameter.size > 50


def _tied(space):
    """Whether a parameter that will be left out is the parent of another."""
    return any(
        _long(space[parent]) for needs in space.conditions.allowed.values() for parent in needs
    )
