"""Spaces made from configurations."""

from scrimp.formats.result_folders import inferred_space
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.space import Space


def test_a_space_holds_what_was_tried() -> None:
    configs = [
        {"lr": 0.001, "n": 1, "kind": "a", "seed": 3},
        {"lr": 0.01, "n": 5, "kind": None, "seed": 3},
        {"lr": 0.1, "n": 3, "kind": "a", "seed": 3},
    ]
    assert inferred_space(configs) == Space(
        lr=Float(0.001, 0.1, log=True), n=Int(1, 5), kind=Categorical(["a", None]), seed=Constant(3)
    )
