"""What stands behind each name of one kind: kernels, acquisitions, models, methods, storages.

    KERNELS = Catalog("kernel", {"rbf-ard": make_rbf})
    KERNELS.add("my-kernel", make_mine)
    KERNELS["my-kernel"]

A name is given once: a second thing under the same name is refused, whoever registered the first.
Registering the same thing again is no mistake, since modules are imported again and cells of a
notebook run again. A name that nobody has registered makes the plugins that are installed or named
load, before it is refused.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Generic, TypeVar

from scrimp.catalogs.plugins import load_available, loading
from scrimp.checks import did_you_mean
from scrimp.errors import MethodError, ScrimpError

__all__ = ["Catalog", "watched"]

T = TypeVar("T")

_watching: list[set[str]] = []


@contextmanager
def watched() -> Iterator[set[str]]:
    """The modules whose registrations are looked up meanwhile: what a study that was built from
    them needs."""
    found: set[str] = set()
    _watching.append(found)
    try:
        yield found
    finally:
        _watching.remove(found)


class Catalog(Generic[T]):
    """The things of one ``kind`` by name; ``known`` are scrimp's own."""

    def __init__(
        self, kind: str, known: Mapping[str, T], error: type[ScrimpError] = MethodError
    ) -> None:
        self._kind, self._error = kind, error
        self._things = dict(known)
        self._origins: dict[str, str] = {}

    def add(self, name: str, thing: T) -> None:
        """Give ``thing`` a name."""
        if not isinstance(name, str) or not name or any(letter in " ,:=/" for letter in name):
            raise self._error(
                f"{self._kind} {name!r} is no name: give a word without spaces, commas, colons,"
                " slashes and equals signs"
            )
        if name in self._things and _place(self._things[name]) != _place(thing):
            owner = self._origins.get(name, "scrimp")
            raise self._error(
                f"{self._kind} {name!r} exists already (of {owner}): register yours under another"
                " name"
            )
        if name not in self._things or name in self._origins:
            self._things[name] = thing
            self._origins[name] = loading() or _caller()

    def copy(self) -> "Catalog[T]":
        """The same names, for a test that adds others."""
        made: Catalog[T] = Catalog(self._kind, self._things, self._error)
        made._origins = dict(self._origins)
        return made

    def find(self, name: str) -> T | None:
        """What stands behind ``name``; None when neither scrimp nor a plugin that can be loaded
        here has registered it."""
        if name not in self._things:
            load_available()
        if name not in self._things:
            return None
        origin = self._origins.get(name, "__main__")
        if (
            origin != "__main__" and origin in sys.modules
        ):  # not a script or a text, which nobody else can import
            for found in _watching:
                found.add(origin)
        return self._things[name]

    def __getitem__(self, name: str) -> T:
        found = self.find(name)
        if found is None:
            known = ", ".join(sorted(self._things))
            remedy = "; choose one of them, or name the plugin that registers it"
            hint = did_you_mean(name, self._things, remedy)
            raise self._error(f"there is no {self._kind} {name!r} among {known}{hint}")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(self._things)


def _place(thing: object) -> object:
    """Where a thing is defined, which stays the same when its module is imported again; the thing
    itself otherwise."""
    if is_dataclass(thing) and not isinstance(thing, type):
        return tuple(_place(getattr(thing, item.name)) for item in fields(thing))
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if module is None or name is None:
        return thing
    line = getattr(getattr(thing, "__code__", None), "co_firstlineno", None)
    return module, name, line


def _caller() -> str:
    """The module outside scrimp that is registering something."""
    frame = sys._getframe(1)
    while (
        frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == "scrimp"
    ):
        frame = frame.f_back
    return str(frame.f_globals.get("__name__", "__main__"))
