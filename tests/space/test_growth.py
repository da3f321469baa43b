import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.space.growth import grown_config, narrowings
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.testing.spaces import spaces

OLD = Space(
    lr=Float(1e-4, 1e-1, log=True),
    layers=Int(1, 4),
    optimizer=Categorical(["adam", "sgd"]),
    momentum=Float(0.0, 0.9, when={"optimizer": "sgd"}),
    batch=32,
)
CONFIG = {"lr": 0.01, "layers": 2, "optimizer": "sgd", "momentum": 0.5, "batch": 32}


def changed(**parameters):
    both = {**OLD.parameters, **parameters}
    return Space({name: value for name, value in both.items() if value is not ...})


GROWN = [
    ({"lr": Float(1e-6, 1.0, log=True)}, CONFIG),
    ({"lr": Float(1e-4, 1e-1)}, CONFIG),
    ({"layers": Int(1, 9, log=True)}, CONFIG),
    ({"layers": Float(0, 9)}, {**CONFIG, "layers": 2.0}),
    ({"layers": Ordinal([1, 2, 3, 4])}, CONFIG),
    ({"optimizer": Categorical(["lion", "sgd", "adam"])}, CONFIG),
    ({"dropout": Float(0, 0.5, default=0.1)}, {**CONFIG, "dropout": 0.1}),
    ({"dropout": Float(0, 0.5, when={"optimizer": "adam"}, default=0.1)}, CONFIG),
    ({"seed": Constant(3)}, {**CONFIG, "seed": 3}),
    ({"batch": Int(16, 64)}, CONFIG),
    ({"batch": ...}, {name: CONFIG[name] for name in CONFIG if name != "batch"}),
    (
        {"momentum": Float(0, 0.9, when={"optimizer": "sgd", "layers": 1})},
        {k: v for k, v in CONFIG.items() if k != "momentum"},
    ),
    ({"momentum": Float(0, 0.9, default=0.0)}, CONFIG),
    (
        {
            "optimizer": Categorical(["adam", "sgd", "lion"]),
            "momentum": Float(0, 0.9, when={"optimizer": ["sgd", "lion"]}),
        },
        CONFIG,
    ),
]


@pytest.mark.parametrize(("parameters", "expected"), GROWN)
def test_growth_keeps_every_configuration(parameters, expected):
    new = changed(**parameters)
    assert narrowings(OLD, new) == ()
    found = grown_config(CONFIG, OLD, new)
    assert found is not None
    assert new.key(found) == new.key(expected)
    assert all(
        grown_config(config, OLD, new) is not None
        for config in OLD.sample(50, np.random.default_rng(0))
    )


NARROWED = [
    (
        {"lr": Float(1e-3, 1e-1, log=True)},
        ["'lr' ran from 0.0001 to 0.1 and now from 0.001 to 0.1"],
    ),
    ({"layers": Int(2, 4)}, ["'layers' ran from 1 to 4 and now from 2 to 4"]),
    ({"layers": Ordinal([2, 3])}, ["'layers' no longer takes 1, 4"]),
    ({"lr": Ordinal([0.1, 0.01])}, ["'lr' was continuous and is now Ordinal([0.1, 0.01])"]),
    ({"lr": Int(0, 1)}, ["'lr' was continuous and is now Int(0, 1)"]),
    ({"optimizer": Categorical(["sgd", "lion"])}, ["'optimizer' no longer takes 'adam'"]),
    ({"optimizer": Constant("sgd")}, ["'optimizer' no longer takes 'adam'"]),
    ({"batch": Constant(64)}, ["'batch' no longer takes 32"]),
    ({"layers": ...}, ["'layers' is gone"]),
    ({"dropout": Float(0, 0.5)}, ["'dropout' is new and has no default"]),
    (
        {"momentum": Float(0, 0.9)},
        ["'momentum' exists for more values of 'optimizer' than before and has no default"],
    ),
    (
        {"momentum": Float(0, 0.9, when={"optimizer": ["sgd", "adam"]})},
        ["'momentum' exists for more values of 'optimizer'"],
    ),
]


@pytest.mark.parametrize(("parameters", "words"), NARROWED)
def test_narrowing_is_said_and_leaves_configurations_out(parameters, words):
    new = changed(**parameters)
    found = narrowings(OLD, new)
    assert len(found) == len(words)
    for reason, word in zip(found, words, strict=True):
        assert word in reason
    kept = [grown_config(config, OLD, new) for config in OLD.sample(200, np.random.default_rng(0))]
    assert None in kept
    assert all(config is None or new.contains(config) for config in kept)


@settings(max_examples=80, deadline=None)
@given(spaces(), st.data())
def test_no_losses_means_that_every_configuration_fits(old, data):
    """The new space: each parameter kept, given a default, dropped, or freed of its condition."""
    new = dict(old.parameters)
    for name in old:
        change = data.draw(st.sampled_from(["keep", "keep", "default", "drop", "free"]))
        parameter = old[name]
        if change == "drop":
            del new[name]
        elif change == "free":
            new[name] = _with(parameter, when=None)
        elif change == "default" and not isinstance(parameter, Constant):
            new[name] = _with(
                parameter,
                default=parameter.from_unit(0.3),
                when=data.draw(st.sampled_from([None, parameter.when])),
            )
    parents = {parent for parameter in new.values() for parent in parameter.when or ()}
    if not new or not parents <= set(new):
        return
    space = Space(new)
    kept = [grown_config(config, old, space) for config in old.sample(20, np.random.default_rng(0))]
    if not narrowings(old, space):
        assert None not in kept
    assert all(config is None or space.contains(config) for config in kept)


def _with(parameter, **settings):
    fields = {name: getattr(parameter, name) for name in parameter.__dataclass_fields__}
    return type(parameter)(**{**fields, **settings})


def test_pools():
    configs = OLD.sample(10, np.random.default_rng(0))
    pool, longer = Pool(OLD, configs[:5]), Pool(OLD, configs)
    assert narrowings(pool, longer) == ()
    assert narrowings(pool, OLD) == ()
    assert narrowings(longer, pool) == ("5 of 10 configurations of the pool do not fit",)
    assert "became a pool" in narrowings(OLD, pool)[0]
    assert grown_config(configs[0], longer, pool) == configs[0]
    assert grown_config(configs[7], longer, pool) is None
