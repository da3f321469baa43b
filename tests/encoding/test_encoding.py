import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.encoding.encoding import Encoding
from scrimp.errors import ConfigError
from scrimp.gp.columns import Column
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.testing.spaces import same_config, spaces

SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    layers=Int(1, 4),
    units=Int(1, 10_000, log=True),
    width=Ordinal([64, 128]),
    optimizer=Categorical(["adam", "sgd", "lion"]),
    momentum=Float(0.0, 1.0, when={"optimizer": ["sgd", "lion"], "layers": 2}),
    batch=32,
)


def test_columns_say_what_they_may_hold():
    encoding = Encoding(SPACE)
    assert encoding.dimension == 6
    continuous, categorical = Column(), Column((0.0, 0.5, 1.0), ordered=False)
    expected = (
        continuous,
        Column((0.125, 0.375, 0.625, 0.875)),
        continuous,
        Column((0.25, 0.75)),
        categorical,
        continuous,
    )
    assert encoding.columns == expected


def test_an_int_of_more_than_a_thousand_values_is_continuous():
    few, many = Encoding(Space(a=Int(1, 1000), b=Int(1, 1001))).columns
    assert few.kind == "discrete" and many.kind == "continuous"


def test_rows_of_a_known_space():
    encoding = Encoding(SPACE)
    adam = {"lr": 0.01, "layers": 2, "units": 100, "width": 64, "optimizer": "adam", "batch": 32}
    lion = {**adam, "optimizer": "lion", "momentum": 0.3}
    place = (np.log(100) - np.log(0.5)) / (np.log(10_000.5) - np.log(0.5))
    np.testing.assert_allclose(
        encoding.encode([adam, lion]),
        [[0.5, 0.375, place, 0.25, 0.0, 0.5], [0.5, 0.375, place, 0.25, 1.0, 0.3]],
    )
    assert encoding.encode([]).shape == (0, 6)
    assert encoding.decode(np.zeros((0, 6))) == []


@settings(max_examples=100, deadline=None)
@given(spaces(), st.integers(0, 10**6))
def test_configurations_come_back(space, seed):
    encoding = Encoding(space)
    configs = space.sample(8, np.random.default_rng(seed))
    x = encoding.encode(configs)
    assert x.shape == (8, encoding.dimension)
    assert x.dtype == np.float64
    assert ((x >= 0) & (x <= 1)).all()
    assert all(
        same_config(space, one, other)
        for one, other in zip(configs, encoding.decode(x), strict=True)
    )


@settings(max_examples=100, deadline=None)
@given(spaces(), st.integers(0, 10**6))
def test_any_row_decodes_to_a_valid_configuration_and_settles(space, seed):
    encoding = Encoding(space)
    x = np.random.default_rng(seed).uniform(-0.2, 1.2, (8, encoding.dimension))
    configs = encoding.decode(x)
    assert all(space.contains(config) for config in configs)
    settled = encoding.encode(configs)
    assert ((settled >= 0) & (settled <= 1)).all()
    np.testing.assert_allclose(
        encoding.encode(encoding.decode(settled)), settled, rtol=0, atol=1e-12
    )


@settings(max_examples=100, deadline=None)
@given(spaces(), st.integers(0, 10**6))
def test_the_domain_agrees_with_the_space(space, seed):
    """Rows that the domain calls legal are fixed points of decoding, and the same columns are
    switched on."""
    encoding = Encoding(space)
    if encoding.dimension == 0:
        return
    x = encoding.domain.sample(8, np.random.default_rng(seed))
    configs = encoding.decode(x)
    again = encoding.encode(configs)
    steps = [name for name in space.searched if 1000 < space[name].size < np.inf]
    free = np.array([name not in steps for name in space.searched])
    np.testing.assert_allclose(again[:, free], x[:, free], rtol=0, atol=1e-9)
    active = encoding.domain.active(x)
    expected = [[name in config for name in space.searched] for config in configs]
    np.testing.assert_array_equal(active, expected)


def test_conditions_over_constants_are_resolved():
    space = Space(
        a=Categorical(["x", "y"]),
        b=Constant(5, when={"a": "y"}),
        c=Float(0, 1, when={"b": 5}),
        d=Int(1, 3, when={"e": 1}),
        e=1,
    )
    conditions = Encoding(space).domain.conditions
    assert [(c.column, c.parent, c.values) for c in conditions] == [(1, 0, (1.0,))]


def test_pools_decode_to_members():
    rng = np.random.default_rng(0)
    pool = Pool(SPACE, SPACE.sample(50, rng))
    encoding = Encoding(pool)
    assert encoding.decode(encoding.encode(pool.configs)) == list(pool.configs)
    assert all(pool.contains(config) for config in encoding.decode(rng.random((20, 6))))
    np.testing.assert_array_equal(encoding.domain.pool, pool.units)
    assert Encoding(SPACE).domain.pool is None


def test_values_that_are_not_in_normal_form_are_accepted():
    encoding = Encoding(Space(x=Float(0, 1), n=Int(1, 2), c=Categorical(["a", "b"])))
    rough = [{"x": 1, "n": np.int64(2), "c": np.str_("b")}]
    np.testing.assert_allclose(encoding.encode(rough), [[1.0, 0.75, 1.0]])


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"x": 2.0, "c": "a"}, ["'x' is 2.0", "from 0.0 to 1.0"]),
        ({"x": float("nan"), "c": "a"}, ["'x' is nan", "finite"]),
        ({"c": "a"}, ["'x' is missing", "no default"]),
        ({"x": 0.5, "c": "z"}, ["'c' is 'z'", "one of 'a', 'b'"]),
        ({"x": None, "c": "a"}, ["'x' is None", "finite"]),
    ],
)
def test_bad_configurations_are_refused(config, words):
    with pytest.raises(ConfigError) as caught:
        Encoding(Space(x=Float(0, 1), c=Categorical(["a", "b"]))).encode(
            [{"x": 0.5, "c": "a"}, config]
        )
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.zeros(6), ["(6,)", "(n, 6)"]),
        (np.zeros((2, 5)), ["(2, 5)", "(n, 6)"]),
        (np.array([[0.5] * 6, [np.nan] + [0.5] * 5]), ["row 1", "NaN", "unit cube"]),
    ],
)
def test_bad_rows_are_refused(x, words):
    with pytest.raises(ConfigError) as caught:
        Encoding(SPACE).decode(x)
    for word in words:
        assert word in str(caught.value)


def test_a_hundred_thousand_configurations_are_cheap():
    encoding = Encoding(SPACE)
    rng = np.random.default_rng(0)
    begin = time.process_time()
    configs = encoding.decode(rng.random((100_000, 6)))
    encoding.encode(configs)
    assert time.process_time() - begin < 10.0  # both together; 0.35 s when measured
