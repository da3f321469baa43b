import itertools

import numpy as np
import pytest

from scrimp.errors import SpaceError
from scrimp.space.designs import grid_design, sobol_design
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Pool, Space

SPACE = Space(
    lr=Float(1e-4, 1.0, log=True),
    optimizer=Categorical(["adam", "sgd"]),
    momentum=Float(0.0, 0.9, when={"optimizer": "sgd"}),
    batch=32,
)


def test_sobol_designs_are_valid_balanced_and_can_go_on():
    configs = sobol_design(SPACE, 16, np.random.default_rng(0))
    assert [SPACE.validate(config) for config in configs] == configs
    assert sum(config["optimizer"] == "sgd" for config in configs) == 8
    assert sorted(int(np.floor((np.log10(c["lr"]) + 4) * 4)) for c in configs) == list(range(16))
    assert sobol_design(SPACE, 6, np.random.default_rng(0), start=10) == configs[10:]


def test_sobol_designs_of_a_pool_are_members():
    pool = Pool(SPACE, SPACE.sample(10, np.random.default_rng(0)))
    assert all(pool.contains(config) for config in sobol_design(pool, 8, np.random.default_rng(1)))


def test_the_grid_is_the_product_of_the_values_that_exist():
    configs = list(grid_design(SPACE, {"lr": 3, "momentum": 2}))
    assert [c["lr"] for c in configs] == pytest.approx([1e-4] * 3 + [1e-2] * 3 + [1.0] * 3)
    assert configs[0] == {"lr": 1e-4, "optimizer": "adam", "batch": 32}
    assert configs[1:3] == [
        {"lr": 1e-4, "optimizer": "sgd", "momentum": m, "batch": 32} for m in (0.0, 0.9)
    ]
    assert len({SPACE.key(config) for config in configs}) == 9


def test_discrete_parameters_are_thinned_to_the_resolution():
    space = Space(a=Int(1, 100), b=Ordinal([1, True, 1.0]), c=Categorical(["x", "y"]))
    configs = list(grid_design(space, {"a": 3}))
    assert sorted({config["a"] for config in configs}) == [1, 50, 100]
    assert len(configs) == 3 * 3 * 2
    assert len({space.key(config) for config in configs}) == 18
    assert len(list(grid_design(Space(a=Int(1, 3, log=True)), 2))) == 2
    assert list(grid_design(Space(x=Float(0, 1)), 1)) == [{"x": 0.5}]


def test_grids_are_lazy():
    huge = Space({f"x{i}": Int(0, 999) for i in range(50)})
    assert len(list(itertools.islice(grid_design(huge), 3))) == 3


def test_the_grid_of_a_pool_is_its_members():
    members = SPACE.sample(5, np.random.default_rng(0))
    assert list(grid_design(Pool(SPACE, members))) == members


@pytest.mark.parametrize(
    ("resolution", "words"),
    [
        (None, ["'lr'", "continuous", "resolution"]),
        ({"lr": 3}, ["'momentum'", "continuous", "resolution"]),
        (0, ["'lr'", "resolution 0", "at least 1"]),
        (2.5, ["'lr'", "resolution 2.5", "whole number"]),
        ({"lr": True}, ["'lr'", "resolution True", "whole number"]),
        ({"lrr": 3}, ["'lrr'", "not in the space", "did you mean 'lr'"]),
    ],
)
def test_bad_resolutions_are_refused(resolution, words):
    with pytest.raises(SpaceError) as caught:
        grid_design(SPACE, resolution)
    for word in words:
        assert word in str(caught.value)
