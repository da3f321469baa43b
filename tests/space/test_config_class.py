"""Spaces from dataclasses and pydantic models."""

from dataclasses import dataclass, field
from typing import Annotated

import pytest

from scrimp.errors import SpaceError
from scrimp.space.config_class import filled, parameters_of
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.space import Space


@dataclass
class Optimizer:
    kind: Annotated[str, Categorical(["adamw", "sgd"])] = "adamw"
    momentum: Annotated[float, Float(0.0, 0.99, when={"kind": "sgd"})] = 0.9


@dataclass
class Train:
    lr: Annotated[float, Float(1e-5, 1e-1, log=True)]
    layers: Annotated[int, "how deep", Int(1, 8)] = 3
    optimizer: Optimizer = field(default_factory=Optimizer)
    data: str = "digits"
    seen: int = field(default=0, init=False)


def test_annotated_fields_are_searched_and_the_others_stay_out() -> None:
    assert Space.of(Train) == Space(
        {
            "lr": Float(1e-5, 1e-1, log=True),
            "layers": Int(1, 8, default=3),
            "optimizer.kind": Categorical(["adamw", "sgd"], default="adamw"),
            "optimizer.momentum": Float(0.0, 0.99, default=0.9, when={"optimizer.kind": "sgd"}),
        }
    )


def test_a_configuration_becomes_an_object_again() -> None:
    space = Space.of(Train)
    config = space.validate({"lr": 0.01, "optimizer.kind": "sgd", "optimizer.momentum": 0.5})
    assert filled(Train, config) == Train(0.01, 3, Optimizer("sgd", 0.5))
    plain = space.validate({"lr": 0.01})
    assert filled(Train, plain) == Train(0.01)
    with pytest.raises(SpaceError, match="Train has no field 'rate'; it has lr, layers"):
        filled(Train, {"rate": 1})


def test_a_condition_may_name_a_parent_elsewhere() -> None:
    @dataclass
    class Inner:
        width: Annotated[int, Int(1, 9, when={"deep": True})] = 4

    @dataclass
    class Outer:
        inner: Annotated[Inner, "a part"]
        deep: Annotated[bool, Categorical([True, False])] = True

    Outer.__annotations__["inner"] = Inner  # classes of functions have no module to be found in
    assert parameters_of(Outer)["inner.width"].when == {"deep": (True,)}


def test_a_parameter_keeps_its_own_default_and_a_constant_its_value() -> None:
    @dataclass
    class Own:
        x: Annotated[float, Float(0, 1, default=0.25)] = 0.5
        batch: Annotated[int, Constant(32)] = 64

    assert Space.of(Own).validate({}) == {"x": 0.25, "batch": 32}


def test_models_of_pydantic_are_read_alike() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Model(pydantic.BaseModel):
        lr: Annotated[float, Float(1e-5, 1e-1, log=True)] = 1e-3
        layers: Annotated[int, pydantic.Field(ge=1), Int(1, 8)]
        tags: list[str] = pydantic.Field(default_factory=list)

    space = Space.of(Model)
    assert space == Space(lr=Float(1e-5, 1e-1, log=True, default=1e-3), layers=Int(1, 8))
    assert filled(Model, {"layers": 2}) == Model(layers=2)


@dataclass
class Bare:
    data: str = "digits"


@dataclass
class Open:
    x: Annotated[float, Float(0, 1)]
    data: str


@dataclass
class Outside:
    x: Annotated[float, Float(0, 1)] = 2.0


@dataclass
class Twice:
    x: Annotated[float, Float(0, 1), Int(1, 2)] = 1


@dataclass
class Sometimes:
    kind: Annotated[str, Categorical(["a", "b"])]
    x: Annotated[float, Float(0, 1, when={"kind": "a"})]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Bare, "Bare has no field to search; annotate one"),
        (Open, "field 'data' has neither a default nor a parameter"),
        (Outside, "field 'x' has a default outside its parameter's range: .*2.0"),
        (Twice, "field 'x' is annotated with 2 parameters; give one"),
        (Sometimes, "field 'x' exists only under a condition; give it a default"),
        (int, "Space.of got <class 'int'>; it takes a dataclass or a pydantic model"),
        (Bare(), r"Space.of got Bare\(.*the class itself"),
    ],
)
def test_wrong_classes_are_told_what_is_wrong(given: type, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        Space.of(given)


def test_names_that_are_not_known_are_told() -> None:
    @dataclass
    class Lost:
        x: "Annotated[float, Nowhere(1)]"  # noqa: F821

    with pytest.raises(SpaceError, match=r"annotations of Lost cannot be read: .*Nowhere"):
        Space.of(Lost)
