"""Spaces written with lists and distributions of scipy.stats."""

import numpy as np
import pytest
from scipy.stats import lognorm, loguniform, norm, poisson, randint, uniform

import scrimp
from scrimp.errors import SpaceError
from scrimp.integrations.foreign_space import objects_of, space_of


def test_distributions_become_their_ranges():
    space, labels = space_of(
        {
            "C": loguniform(1e-2, 1e3),
            "share": uniform(0.25, 0.5),
            "depth": randint(1, 10),
            "x": scrimp.Float(0, 1),
        }
    )
    assert not labels
    assert space["C"] == scrimp.Float(1e-2, 1e3, log=True)
    assert space["share"] == scrimp.Float(0.25, 0.75)
    assert space["depth"] == scrimp.Int(1, 9)
    assert space["x"] == scrimp.Float(0, 1)


def test_distributions_without_ends_are_cut_at_their_tails():
    space, _ = space_of({"a": norm(2, 3), "b": lognorm(2.0), "n": poisson(20)})
    a, b, n = space["a"], space["b"], space["n"]
    assert isinstance(a, scrimp.Float) and not a.log
    assert (a.low, a.high) == pytest.approx((norm(2, 3).ppf(0.001), norm(2, 3).ppf(0.999)))
    assert isinstance(b, scrimp.Float) and b.log
    assert isinstance(n, scrimp.Int) and (n.low, n.high) == (8, 35)


def test_objects_are_chosen_by_labels_and_come_back():
    space, labels = space_of({"f": [np.sin, np.cos, None], "k": [(1, 2), (3,)], "one": ["rbf"]})
    assert objects_of({"f": "<ufunc 'sin'>", "k": "(3,)", "one": "rbf"}, labels) == {
        "f": np.sin,
        "k": (3,),
        "one": "rbf",
    }
    assert objects_of({"f": None}, labels) == {"f": None}
    assert space["one"] == scrimp.Constant("rbf")
    drawn = space.sample(20, np.random.default_rng(0))
    assert {objects_of(config, labels)["f"] for config in drawn} == {np.sin, np.cos, None}


def test_objects_that_look_alike_stay_apart():
    class Same:
        def __repr__(self):
            return "Same()"

    first, second = Same(), Same()
    _, labels = space_of({"s": [first, second]})
    assert list(labels["s"].values()) == [first, second]


@pytest.mark.parametrize("value", [3, "abc", [], uniform(1, 0)])
def test_what_is_no_parameter_is_named(value):
    with pytest.raises(SpaceError, match="'lr'"):
        space_of({"lr": value})


def test_a_list_of_mappings_is_refused_in_words():
    with pytest.raises(SpaceError, match="mapping from names"):
        space_of([{"lr": [1, 2]}])
