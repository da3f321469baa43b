"""Spaces of Ray Tune as spaces of scrimp."""

import pytest

tune = pytest.importorskip(
    "ray.tune", reason="Ray Tune is not installed: make test-integrations brings it"
)

from scrimp.errors import SpaceError
from scrimp.integrations.ray_tune import nested, space_of_ray
from scrimp.space.parameter import Categorical, Constant, Float, Int


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        (tune.uniform(0, 1), Float(0.0, 1.0)),
        (tune.loguniform(1e-5, 1e-1), Float(1e-5, 1e-1, log=True)),
        (tune.quniform(0, 1, 0.25), Float(0.0, 1.0, step=0.25)),
        (tune.randint(1, 9), Int(1, 8)),
        (tune.qrandint(8, 64, 8), Int(8, 64, step=8)),
        (tune.lograndint(1, 100), Int(1, 99, log=True)),
        (tune.choice(["a", None]), Categorical(["a", None])),
        (tune.grid_search([1, 2]), Categorical([1, 2])),
        ("adam", Constant("adam")),
    ],
)
def test_spaces_of_ray_are_spaces(given: object, parameter: object) -> None:
    assert space_of_ray({"x": given})["x"] == parameter


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (tune.randn(), "has no bounds; give a range"),
        (tune.choice([[1], [2]]), "must be numbers, words"),
        (tune.sample_from(lambda spec: 1), "scrimp takes uniform"),
    ],
)
def test_what_cannot_be_searched_is_told(given: object, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        space_of_ray({"x": given})


def test_names_with_slashes_are_nested() -> None:
    assert nested({"lr": 0.1, "net/width": 8}) == {"lr": 0.1, "net": {"width": 8}}
