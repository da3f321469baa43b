"""Spaces of ConfigSpace, both ways."""

import pytest

ConfigSpace = pytest.importorskip(
    "ConfigSpace", reason="ConfigSpace is not installed: make test-integrations brings it"
)

from scrimp.errors import SpaceError
from scrimp.integrations.configspace import configspace_of, space_of_configspace
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Space

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True, default=1e-3),
    layers=Int(1, 8, default=3),
    width=Ordinal([64, 128, 256], default=64),
    optimizer=Categorical(["adamw", "sgd", "rmsprop"], default="adamw"),
    momentum=Float(0.0, 0.99, default=0.9, when={"optimizer": ["sgd", "rmsprop"]}),
    nesterov=Categorical([True, False], default=True, when={"optimizer": "sgd", "layers": [2, 3]}),
    batch=32,
)


def test_there_and_back() -> None:
    made = configspace_of(SPACE, seed=0)
    assert dict(space_of_configspace(made)) == dict(SPACE)  # ConfigSpace sorts them
    for config in made.sample_configuration(50):  # their draws are our configurations
        assert SPACE.contains(dict(config))


def test_theirs_as_people_write_them() -> None:
    given = ConfigSpace.ConfigurationSpace(
        {"lr": (1e-4, 0.1), "layers": (1, 8), "kind": ["a", "b"], "one": "x"}
    )
    space = space_of_configspace(given)
    assert isinstance(space["lr"], Float) and isinstance(space["layers"], Int)
    assert space["one"] == Constant("x") and list(space) == list(given)
    normal = ConfigSpace.ConfigurationSpace(
        {"x": ConfigSpace.NormalFloatHyperparameter("x", mu=0, sigma=1, lower=-3, upper=3)}
    )
    assert space_of_configspace(normal)["x"] == Float(-3.0, 3.0, default=0.0)


def test_steps_become_an_order() -> None:
    made = configspace_of(Space(units=Int(8, 24, step=8)))
    assert list(made["units"].sequence) == [8, 16, 24]


def test_what_cannot_be_said_is_refused() -> None:
    with pytest.raises(SpaceError, match="'lr' has a prior, which ConfigSpace cannot express"):
        configspace_of(Space(lr=Float(0, 1, prior=(0.5, "low"))))
    given = ConfigSpace.ConfigurationSpace({"a": ["x", "y"], "b": (0, 9)})
    given.add(ConfigSpace.GreaterThanCondition(given["a"], given["b"], 3))
    with pytest.raises(SpaceError, match="cannot be kept"):
        space_of_configspace(given)
    forbidding = ConfigSpace.ConfigurationSpace({"a": ["x", "y"]})
    forbidding.add(ConfigSpace.ForbiddenEqualsClause(forbidding["a"], "y"))
    with pytest.raises(SpaceError, match="scrimp has no forbidden combinations"):
        space_of_configspace(forbidding)
