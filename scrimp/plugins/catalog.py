"""Catalogs: kernels, acquisitions, models, methods and storages by name.

    KERNELS = Catalog("kernel", {"rbf-ard": make_rbf})
    KERNELS.add("my-kernel", make_mine)
    KERNELS["my-kernel"]

A name is given once: another object under the same name is refused. Registering the same object
again is allowed, because modules are imported again and cells of a notebook run again. For an
unknown name, the installed and named plugins are loaded before it is refused.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Generic, TypeVar

from scrimp.checks import did_you_mean
from scrimp.errors import MethodError, ScrimpError
from scrimp.plugins.plugins import load_available, loading

T = TypeVar("T")

_watching: list[set[str]] = []


@contextmanager
def watched() -> Iterator[set[str]]:
    """Collect the modules whose registrations are looked up in the meantime; a study records them."""
    found: set[str] = set()
    _watching.append(found)
    try:
        yield found
    finally:
        _watching.remove(found)


class Catalog(Generic[T]):
    """Objects of one ``kind`` by name; ``known`` are those of scrimp."""

    def __init__(
        self, kind: str, known: Mapping[str, T], error: type[ScrimpError] = MethodError
    ) -> None:
        self._kind, self._error = kind, error
        self._things = dict(known)
        self._origins: dict[str, str] = {}

    def add(self, name: str, thing: T) -> None:
        """Register ``thing`` under a name."""
        if not isinstance(name, str) or not name or any(letter in " ,:=/" for letter in name):
            raise self._error(
                f"{self._kind} {name!r} is not a valid name: use a word without spaces, commas, colons,"
                " slashes and equals signs"
            )
        if name in self._things and _place(self._things[name]) != _place(thing):
            owner = self._origins.get(name, "scrimp")
            raise self._error(
                f"{self._kind} {name!r} is already registered by {owner}: use another name"
            )
        if name not in self._things or name in self._origins:
            self._things[name] = thing
            self._origins[name] = loading() or _caller()

    def copy(self) -> "Catalog[T]":
        """Return a copy, for a test that adds names."""
        made: Catalog[T] = Catalog(self._kind, self._things, self._error)
        made._origins = dict(self._origins)
        return made

    def find(self, name: str) -> T | None:
        """Return the object called ``name``; None if scrimp and its plugins have none."""
        if name not in self._things:
            load_available()
        if name not in self._things:
            return None
        origin = self._origins.get(name, "__main__")
        # A script or a notebook cannot be imported elsewhere, so it is not recorded.
        if origin != "__main__" and origin in sys.modules:
            for found in _watching:
                found.add(origin)
        return self._things[name]

    def __getitem__(self, name: str) -> T:
        found = self.find(name)
        if found is None:
            remedy = "; choose one of them, or name the plugin that registers it"
            if not self._things:
                known, remedy = "; none is registered", ": name the plugin that registers it"
            else:
                known = f" among {', '.join(sorted(self._things))}"
            hint = did_you_mean(name, self._things, remedy)
            raise self._error(f"there is no {self._kind} {name!r}{known}{hint}")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)


def _place(thing: object) -> object:
    """Return the place where a thing is defined, which stays the same if its module is imported again;
    the thing itself if it has no such place."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return tuple(_place(getattr(thing, item.name)) for item in fields(thing))
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if module is None or name is None:
        return thing
    line = getattr(getattr(thing, "__code__", None), "co_firstlineno", None)
    return module, name, line


def _caller() -> str:
    """Return the module outside scrimp that registers something."""
    frame = sys._getframe(1)
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "scrimp"
    ):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__"))
