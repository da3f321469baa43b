"""Fields of the same name are handed on; the others keep their defaults."""

from dataclasses import dataclass

from scrimp.suggesters.shared_settings import shared_settings


@dataclass(frozen=True)
class Inner:
    kernel: str = "rbf"
    size: int = 3
    dense: bool = False


@dataclass(frozen=True)
class Method:
    kernel: str = "matern"
    other: int = 9


def test_shared_fields_are_handed_on() -> None:
    assert shared_settings(Inner, Method()) == Inner("matern")
    assert shared_settings(Inner, Method("x"), dense=True, size=5) == Inner("x", 5, True)
