"""Catalog are given once, found in plugins that are installed or named, and say who registered
them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from scrimp.errors import AddressError, MethodError
from scrimp.plugins.catalog import Catalog, watched

Maker = Callable[[], int]


def first() -> int:
    return 1


def second() -> int:
    return 2


def names() -> Catalog[Maker]:
    return Catalog("colour", {"red": first})


def test_a_name_is_added_and_found() -> None:
    known = names()
    known.add("blue", second)
    assert known["blue"]() == 2 and list(known) == ["red", "blue"] and "blue" in known


def test_the_same_thing_may_come_again_and_another_is_refused() -> None:
    known = names()
    known.add("blue", second)
    known.add("blue", second)
    for name, owner in (("blue", __name__), ("red", "scrimp")):
        with pytest.raises(
            MethodError,
            match=rf"colour '{name}' is already registered by {owner}: use another",
        ):
            known.add(name, lambda: 3)
    assert known["blue"]() == 2 and known["red"]() == 1


def test_two_functions_of_one_name_on_different_lines_are_two() -> None:
    known = names()
    known.add("blue", lambda: 1)
    with pytest.raises(MethodError, match="is already registered"):
        known.add("blue", lambda: 2)


def test_a_class_defined_again_takes_its_own_place() -> None:
    """A cell of a notebook that is run again."""

    def cell(value: int) -> type:
        @dataclass
        class Mine:
            number: int = value

        return Mine

    known: Catalog[type] = Catalog("model", {})
    known.add("mine", cell(1))
    known.add("mine", cell(2))
    assert known["mine"]().number == 2


@pytest.mark.parametrize("name", ["", "two words", "a,b", "a:b", "a=b", 3])
def test_what_could_not_be_written_as_text_is_no_name(name: str) -> None:
    with pytest.raises(MethodError, match="is not a valid name"):
        names().add(name, first)


def test_unknown_names_are_answered() -> None:
    with pytest.raises(
        MethodError, match=r"there is no colour 'rad' among red; did you mean 'red'\?"
    ):
        names()["rad"]
    with pytest.raises(AddressError, match="name the plugin that registers it"):
        Catalog("place", {}, AddressError)["x"]
    assert names().find("rad") is None


def test_lookups_say_which_modules_they_need(tmp_path: Path) -> None:
    known = names()
    known.add("blue", second)
    with watched() as outer:
        known["red"]
        with watched() as inner:
            known["blue"]
    assert outer == inner == {__name__}
    exec("known.add('green', lambda: 3)", {"known": known, "__name__": "a_page"})
    with watched() as text:
        assert known["green"]() == 3
    assert text == set()
    with watched() as after:
        pass
    assert after == set()
