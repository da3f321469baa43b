import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import ConfigError, SpaceError
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Pool, Space, nearest_rows
from scrimp.testing.spaces import SpaceBattery, same_config, spaces

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8, default=2),
    width=Ordinal([64, 128, 256, 512]),
    optimizer=Categorical(["adamw", "sgd"]),
    momentum=Float(0.0, 0.99, when={"optimizer": "sgd"}),
    nesterov=Categorical([True, False], when={"optimizer": "sgd"}, default=False),
    batch=32,
)
ADAM = {"lr": 0.01, "layers": 3, "width": 64, "optimizer": "adamw", "batch": 32}
SGD = {
    "lr": 0.01,
    "layers": 3,
    "width": 64,
    "optimizer": "sgd",
    "momentum": 0.9,
    "nesterov": True,
    "batch": 32,
}


class TestSpace(SpaceBattery):
    def space(self):
        return SPACE


class TestSpaceOfConstants(SpaceBattery):
    def space(self):
        return Space(a=1, b="x")


class TestPool(SpaceBattery):
    def space(self):
        return Pool(SPACE, SPACE.sample(20, np.random.default_rng(0)))


@settings(max_examples=80, deadline=None)
@given(spaces(), st.integers(0, 10**6))
def test_random_spaces_keep_the_contract(space, seed):
    rng = np.random.default_rng(seed)
    configs = space.sample(3, rng)
    units = space.to_units(configs)
    for config, again in zip(configs, space.from_units(units), strict=True):
        assert same_config(space, space.validate(config), config)
        assert same_config(space, config, again)
    assert Space.from_json(space.to_json()) == space
    partial = {name: configs[0][name] for name in configs[0] if rng.random() < 0.5}
    completed = space.complete(partial, rng)
    assert space.key(space.validate(completed)) == space.key(completed)
    assert all(completed[name] == partial[name] for name in partial)


BAD_SPACES = [
    (lambda: Space(), ["no parameters", "at least one"]),
    (lambda: Space({}), ["no parameters", "at least one"]),
    (lambda: Space({"": Float(0, 1)}), ["''", "Float(0.0, 1.0)", "non-empty"]),
    (lambda: Space({3: Float(0, 1)}), ["3", "Float(0.0, 1.0)", "strings"]),
    (lambda: Space(hidden=[64, 64]), ["'hidden'", "[64, 64] of type list", "must be a string"]),
    (lambda: Space(lr=Float), ["'lr'", "Float", "of type ABCMeta"]),
    (lambda: Space(x=float("nan")), ["'x'", "nan", "finite"]),
    (lambda: Space(m=Float(0, 1, when={"o": 1})), ["'m'", "'o'", "not in the space"]),
    (lambda: Space.from_json({}), ["record {}", "list parameters"]),
    (
        lambda: Space.from_json({"parameters": [{"type": "int"}]}),
        ["'type': 'int'", "each with a name"],
    ),
    (
        lambda: Space.from_json({"parameters": [{"name": "n", "type": "int", "low": 1}]}),
        ["'n'", "lacks 'high'"],
    ),
    (lambda: Pool(SPACE, []), ["no configurations", "at least one"]),
    (
        lambda: Pool(SPACE, [ADAM, SGD, ADAM]),
        ["configurations 0 and 2", "'lr': 0.01", "listed once"],
    ),
    (
        lambda: Pool(SPACE, [ADAM, {**ADAM, "lr": 1}]),
        ["configuration 1", "'lr' is 1", "from 1e-05 to 0.1"],
    ),
]


@pytest.mark.parametrize(("define", "words"), BAD_SPACES)
def test_bad_spaces_are_refused_with_name_value_and_rule(define, words):
    with pytest.raises(SpaceError) as caught:
        define()
    for word in words:
        assert word in str(caught.value)


BAD_CONFIGS = [
    ({**ADAM, "lr": 1.0}, ["'lr' is 1.0", "from 1e-05 to 0.1"]),
    ({**ADAM, "lr": "0.01"}, ["'lr' is '0.01'", "finite number"]),
    ({**ADAM, "layers": 2.5}, ["'layers' is 2.5", "whole number"]),
    ({**ADAM, "layers": True}, ["'layers' is True", "whole number"]),
    ({**ADAM, "width": 100}, ["'width' is 100", "one of 64, 128, 256, 512"]),
    ({**ADAM, "optimizer": "adam"}, ["'optimizer' is 'adam'", "one of 'adamw', 'sgd'"]),
    ({**ADAM, "optimizer": None}, ["'optimizer' is None", "one of 'adamw', 'sgd'"]),
    ({**ADAM, "batch": 64}, ["'batch' is 64", "one of 32"]),
    (
        {**ADAM, "momentum": 0.9},
        ["'momentum' is 0.9", "left out", "only when 'optimizer' is 'sgd'", "is 'adamw'"],
    ),
    (
        {**ADAM, "learning_rate": 0.1},
        ["'learning_rate' with value 0.1", "not in the space", "'lr', 'layers'"],
    ),
    ({**ADAM, "widht": 64}, ["'widht' with value 64", "not in the space", "did you mean 'width'"]),
    ({**ADAM, 5: 64}, ["parameter 5 with value 64", "not in the space"]),
    (
        {k: v for k, v in ADAM.items() if k != "lr"},
        ["'lr' is missing", "no default", "Float(1e-05, 0.1, log=True)"],
    ),
    (
        {k: v for k, v in SGD.items() if k != "momentum"},
        ["'momentum' is missing", "no default", "Float(0.0, 0.99"],
    ),
    ([("lr", 0.1)], ["the configuration is [('lr', 0.1)]", "map parameter names"]),
    (None, ["the configuration is None", "map parameter names"]),
]


@pytest.mark.parametrize(("config", "words"), BAD_CONFIGS)
def test_bad_configurations_are_refused_with_name_value_and_rule(config, words):
    with pytest.raises(ConfigError) as caught:
        SPACE.validate(config)
    for word in words:
        assert word in str(caught.value)
    assert not SPACE.contains(config)


def test_validation_normalises_fills_in_and_orders():
    config = SPACE.validate(
        {"optimizer": "sgd", "momentum": 0, "width": 128.0, "lr": np.float64(0.01)}
    )
    expected = {
        "lr": 0.01,
        "layers": 2,
        "width": 128,
        "optimizer": "sgd",
        "momentum": 0.0,
        "nesterov": False,
        "batch": 32,
    }
    assert list(config.items()) == list(expected.items())
    assert SPACE.key(config) == SPACE.key(expected)


def test_a_child_whose_parent_is_absent_is_refused_too():
    space = Space(
        a=Categorical([0, 1]), b=Categorical([0, 1], when={"a": 1}), c=Float(0, 1, when={"b": 1})
    )
    with pytest.raises(
        ConfigError,
        match=(
            r"'c' is 0\.5; it must be left out, since it exists only when 'b' is 1, and that is"
            r" absent"
        ),
    ):
        space.validate({"a": 0, "c": 0.5})


def test_spaces_are_mappings():
    assert list(SPACE) == ["lr", "layers", "width", "optimizer", "momentum", "nesterov", "batch"]
    assert SPACE["layers"] == Int(1, 8, default=2)
    assert SPACE["batch"] == Constant(32)
    assert "lr" in SPACE and len(SPACE) == 7
    assert SPACE.searched == ("lr", "layers", "width", "optimizer", "momentum", "nesterov")
    assert SPACE.defaults == {"layers": 2, "nesterov": False}
    assert Space({"weight-decay": Float(0, 1)}, parameters=Int(1, 2))["parameters"] == Int(1, 2)


def test_repr_can_be_read():
    assert (
        repr(Space(lr=Float(1e-5, 0.1, log=True), b=1))
        == "Space(lr=Float(1e-05, 0.1, log=True), b=Constant(1))"
    )
    assert repr(Space({"a-b": 1})) == "Space({'a-b': Constant(1)})"


def test_equality():
    assert Space(a=1) != Space(a=True)
    assert Space(a=Int(1, 2), b=0) != Space(b=0, a=Int(1, 2))
    assert Space(a=Int(1, 2)) == Space(a=Int(1, 2))
    assert Space(a=Int(1, 2)) != {"a": Int(1, 2)}


def test_active_follows_the_conditions():
    assert SPACE.active(ADAM) == ("lr", "layers", "width", "optimizer", "batch")
    assert SPACE.active({"optimizer": "sgd"}) == tuple(SPACE)


def test_keys_tell_types_and_absence_apart():
    space = Space(
        a=Categorical([1, True, 1.0, None]), b=Categorical([0, None], when={"a": [1, True]})
    )
    configs = [
        {"a": 1, "b": 0},
        {"a": 1, "b": None},
        {"a": True, "b": 0},
        {"a": True, "b": None},
        {"a": 1.0},
        {"a": None},
    ]
    assert len({space.key(config) for config in configs}) == 6 == space.size


def test_sizes():
    assert SPACE.size == math.inf
    assert Space(a=Int(1, 8), b=Ordinal([1, 2, 3]), c=5).size == 24
    conditional = Space(
        o=Categorical(["x", "y", "z"]),
        m=Int(1, 10, when={"o": "x"}),
        n=Int(1, 2, when={"o": ["x", "y"]}),
    )
    assert conditional.size == 10 * 2 + 2 + 1
    many = {f"o{i}": Categorical([0, 1]) for i in range(40)} | {
        f"c{i}": Int(1, 3, when={f"o{i}": 1}) for i in range(40)
    }
    assert Space(many).size == 4**40


def test_samples_are_uniform_over_choices_and_scales():
    """5,000 draws: shares and means within five standard errors."""
    configs = SPACE.sample(5000, np.random.default_rng(0))
    share = np.mean([config["optimizer"] == "sgd" for config in configs])
    assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(5000)
    assert abs(np.mean([math.log10(config["lr"]) for config in configs]) + 3) < 5 * 4 / math.sqrt(
        12 * 5000
    )
    assert all(("momentum" in config) == (config["optimizer"] == "sgd") for config in configs)


def test_completing_draws_parents_that_fit():
    rng = np.random.default_rng(0)
    for _ in range(20):
        assert SPACE.complete({"momentum": 0.5}, rng)["optimizer"] == "sgd"
    assert SPACE.complete({"lr": 1e-3}, rng)["layers"] == 2
    with pytest.raises(ConfigError, match=r"'momentum' is 0\.5; it must be left out"):
        SPACE.complete({"momentum": 0.5, "optimizer": "adamw"}, rng)
    with pytest.raises(ConfigError, match="did you mean 'momentum'"):
        SPACE.complete({"momentun": 0.5}, rng)


class TestPoolMembers:
    members = SPACE.sample(30, np.random.default_rng(1))
    pool = Pool(SPACE, members)

    def test_only_members_are_valid(self):
        assert self.pool.validate(dict(reversed(self.members[3].items()))) == self.members[3]
        assert self.pool.index(self.members[7]) == 7
        assert self.pool.configs == tuple(self.members)
        with pytest.raises(ConfigError, match="not in the pool of 30"):
            self.pool.validate(ADAM)
        with pytest.raises(ConfigError, match="'lr' is 5"):
            self.pool.validate({**ADAM, "lr": 5})

    def test_draws_are_without_replacement(self):
        drawn = self.pool.sample(30, np.random.default_rng(0))
        assert {self.pool.key(config) for config in drawn} == {
            self.pool.key(config) for config in self.members
        }
        assert drawn != self.members
        with pytest.raises(ConfigError, match="31 configurations requested of a pool of 30"):
            self.pool.sample(31, np.random.default_rng(0))

    def test_members_are_copies(self):
        self.pool.sample(1, np.random.default_rng(0))[0]["lr"] = 0
        self.pool.validate(self.members[0])["lr"] = 0
        assert all(self.pool.contains(config) for config in self.pool.configs)

    def test_every_member_is_nearest_to_itself(self):
        assert self.pool.size == 30
        np.testing.assert_array_equal(self.pool.nearest(self.pool.units), np.arange(30))
        rows = np.array([4, 9, 11])
        assert set(self.pool.nearest(self.pool.units, rows).tolist()) <= {4, 9, 11}
        assert self.pool.nearest(self.pool.units[rows], rows).tolist() == [4, 9, 11]
        assert self.pool.from_units(self.pool.units) == self.members

    def test_completing_chooses_among_members(self):
        rng = np.random.default_rng(0)
        for config in self.members:
            assert self.pool.complete({"lr": config["lr"]}, rng) == config
        with pytest.raises(ConfigError, match="not in the pool"):
            self.pool.complete(ADAM, rng)

    def test_a_pool_is_not_its_space(self):
        assert self.pool != SPACE
        assert "30 configurations" in repr(self.pool)


def test_nearest_rows_against_a_loop():
    rng = np.random.default_rng(0)
    rows, places = rng.random((40, 3)), rng.random((25, 3))
    rows[:, 2], places[:, 2] = rng.integers(3, size=40) / 2, rng.integers(3, size=25) / 2
    apart = np.array([False, False, True])
    found = nearest_rows(places, rows, apart)
    for place, row in zip(places, found, strict=True):
        distances = [(p := place - other)[0] ** 2 + p[1] ** 2 + (p[2] != 0) for other in rows]
        assert row == int(np.argmin(distances))


def test_categories_are_all_equally_far():
    rows = np.array([[0.0, 0.5], [0.3, 1.0]])
    assert nearest_rows(np.array([[0.2, 0.0]]), rows, np.array([False, True])).tolist() == [1]
    assert nearest_rows(np.array([[0.2, 0.0]]), rows, np.array([False, False])).tolist() == [0]
