"""Parameters in a line: what can be written, and what is said of what cannot."""

import pytest

from scrimp.errors import SpaceError
from scrimp.space.parameter import parameter_from_json
from scrimp.space.space_text import read_scalar, read_space_text


def test_every_kind_side_by_side() -> None:
    found = read_space_text(
        [
            "lr=float(1e-5, 1e-1, log) layers = int(1,8);width=ordinal(64,128,256)",
            "optimizer=Choice(adamw, 'sgd, slow', \"3\")",
            "momentum=float(0,0.99,default=0.9,when=optimizer:adamw|sgd)",
            "batch=32",
            "nesterov=true",
        ]
    )
    assert found == {
        "lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
        "layers": {"type": "int", "low": 1, "high": 8},
        "width": {"type": "ordinal", "values": [64, 128, 256]},
        "optimizer": {"type": "categorical", "choices": ["adamw", "sgd, slow", "3"]},
        "momentum": {
            "type": "float",
            "low": 0,
            "high": 0.99,
            "default": 0.9,
            "when": {"optimizer": ["adamw", "sgd"]},
        },
        "batch": 32,
        "nesterov": True,
    }
    for name in ("lr", "layers", "width", "optimizer", "momentum"):
        assert parameter_from_json(name, found[name]).to_json()["type"] == found[name]["type"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lr", "cannot read 'lr'"),
        ("lr=float(1,2", "cannot read"),
        ("lr=float(1,2))", "cannot read"),
        ("lr=floaty(1,2)", "'floaty'; it must be one of float"),
        ("lr=float(1,2,3)", "has 3 values; float takes low and high"),
        ("lr=float(1,2,when=optimizer)", "write when=optimizer:sgd"),
        ("x=1 x=2", "'x' is given twice"),
    ],
)
def test_mistakes_are_named(text: str, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        read_space_text([text])


def test_scalars() -> None:
    read = [read_scalar(text) for text in ("3", "-1e-5", "True", "none", "'3'", "sgd", "1_000")]
    assert read == [3, -1e-5, True, None, "3", "sgd", 1000]
