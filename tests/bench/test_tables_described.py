"""Descriptions of spaces: each type, conditions, and what is refused."""

from typing import Any

import pytest

from scrimp.bench.formulas import FORMULAS
from scrimp.bench.tables import described_space
from scrimp.errors import TableError
from scrimp.space.parameter import Categorical, Float, Int, Ordinal

LR = {"name": "lr", "type": "float", "low": 1e-4, "high": 0.1, "log": True}


def test_each_type_and_a_condition() -> None:
    space = described_space(
        [
            LR,
            {"name": "layers", "type": "int", "low": 1, "high": 5, "log": False},
            {"name": "kernel", "type": "choice", "choices": ["linear", "rbf"]},
            {"name": "width", "type": "ordinal", "choices": [16, 32]},
            {
                "name": "gamma",
                "type": "float",
                "low": -4.0,
                "high": 3.0,
                "log": False,
                "when": {"kernel": "rbf"},
            },
        ]
    )
    kinds = [type(parameter) for parameter in space.values()]
    assert kinds == [Float, Int, Categorical, Ordinal, Float]
    assert space["lr"] == Float(1e-4, 0.1, log=True)
    space.validate(
        {"lr": 0.01, "layers": 2, "kernel": "linear", "width": 32}
    )  # gamma does not exist here


@pytest.mark.parametrize("name", FORMULAS)
def test_every_test_function_has_a_space_that_fits_it(name: str) -> None:
    import numpy as np

    space = described_space(FORMULAS[name].space)
    for config in space.sample(20, np.random.default_rng(0)):
        try:
            assert isinstance(FORMULAS[name].evaluate(config), float)
        except FloatingPointError:
            assert name == "failing"


@pytest.mark.parametrize(
    ("description", "message"),
    [
        ("lr", "must be a list of parameters"),
        ([], "the space is not valid: the space has no parameters"),
        (["lr"], "entry 0 of the space is 'lr'"),
        ([{"type": "float"}], "an object with a name and a type"),
        ([LR, LR], "lists parameter 'lr' twice"),
        (
            [{"name": "lr", "type": "real"}],
            "'lr' has type 'real'; it must be one of float, int, choice, ordinal",
        ),
        ([{"name": "lr"}], "'lr' has type None"),
        ([{"name": "lr", "type": "float", "low": 0.0}], "parameter 'lr' lacks 'high'"),
        ([{**LR, "low": 1.0}], "parameter 'lr': Float: "),
        (
            [{"name": "k", "type": "choice", "choices": []}],
            "parameter 'k': Categorical: choices is empty",
        ),
        ([{**LR, "when": {"kernel": "rbf"}}], "the space is not valid"),
    ],
)
def test_what_is_refused(description: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        described_space(description)
