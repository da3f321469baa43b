"""Plugins: modules that register kernels, acquisitions, models, methods or storages when they are
imported.

Which modules are imported:

    installed    what an installed package announces in the entry-point group ``scrimp.plugins``
    named        what the person running this process named: ``--plugin``, ``plugins=``, a study
                 file, the variable SCRIMP_PLUGINS
    recorded     what a study records, but only if it is installed or named in this sense, or
                 imported already

A study's record comes from a storage that others may write to. Importing a module runs it, so a
record alone never gets anything imported: whoever runs the command has installed the module as a
plugin of scrimp, or has named it.
"""

import importlib
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from scrimp.errors import PluginError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUP",
    "VARIABLE",
    "installed_plugins",
    "load_available",
    "load_recorded",
    "loading",
    "name_plugins",
    "named_plugins",
    "own_version",
]

GROUP = "scrimp.plugins"
"""The group of entry points in which an installed package announces its module."""

VARIABLE = "SCRIMP_PLUGINS"
"""The variable that names modules, separated by commas; worker processes get what their parent was
given."""

logger = logging.getLogger("scrimp")

_named: dict[str, None] = {}
_done: set[str] = set()
_under_way: list[str] = []


def name_plugins(names: Iterable[str]) -> tuple[str, ...]:
    """Import the modules that the person running this process names; the names, checked.

    Modules in the current folder are found too, as those of an objective are.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        such = names if isinstance(names, str) else "my_package.kernels"
        raise PluginError(f"plugins is {names!r}; give a list of module names, such as [{such!r}]")
    checked = tuple(dict.fromkeys(_checked(name) for name in names))
    if checked and os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    for name in checked:
        _load(name)
        _named[name] = None
    return checked


def named_plugins() -> tuple[str, ...]:
    """What was named in this process or in its variable: what a process it starts is given."""
    listed = (part.strip() for part in os.environ.get(VARIABLE, "").split(","))
    return tuple(dict.fromkeys([*_named, *filter(None, listed)]))


def load_recorded(names: Iterable[str], study: str) -> None:
    """Import the modules that a study records, where the person running this process has installed
    or named them."""
    for name in map(_checked, names):
        if name in sys.modules:
            continue
        announced = [entry for entry in _installed() if entry.module == name]
        if announced:
            _load_installed(announced[0])
        elif name in named_plugins():
            name_plugins([name])
        else:
            raise PluginError(
                f"study {study!r} needs the plugin {name!r}, which no installed package announces"
                f" (entry points {GROUP!r}); a record alone gets nothing imported: install its"
                f" package, or name it with --plugin {name}, plugins=[{name!r}] or"
                f" {VARIABLE}={name}"
            )


def load_available() -> None:
    """Import all that is installed or named, as is done when a name is unknown. An installed one
    that fails is said, no more."""
    for _, error in installed_plugins():
        if error is not None:
            logger.warning("%s", error)
    name_plugins(named_plugins())  # what somebody asked for must load


def installed_plugins() -> Iterator[tuple[str, PluginError | None]]:
    """Import what installed packages announce: the name of each module, and why it failed if it
    did."""
    for entry in _installed():
        try:
            _load_installed(entry)
        except PluginError as error:
            yield entry.module, error
        else:
            yield entry.module, None


def loading() -> str | None:
    """The plugin that is being imported just now."""
    return _under_way[-1] if _under_way else None


def _installed() -> "list[EntryPoint]":
    from importlib.metadata import entry_points  # takes longer to load than everything else here

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _load_installed(entry: "EntryPoint") -> None:
    """The module of an entry point; a function that it names is called, once."""
    _load(entry.module)
    if entry.attr and entry.value not in _done:
        with _reported(entry.module):
            entry.load()()
        _done.add(entry.value)


def _load(name: str) -> None:
    with _reported(name):
        importlib.import_module(name)


@contextmanager
def _reported(name: str) -> Iterator[None]:
    _under_way.append(name)
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (
            f"; it imports {error.name!r}, which is not installed" if error.name != name else ""
        )
        raise PluginError(
            f"plugin {name!r} cannot be found here{missing}: install it, start in its folder, or"
            " name that folder in PYTHONPATH"
        ) from error
    except Exception as error:  # a module of somebody else's may raise anything
        raise PluginError(
            f"plugin {name!r} fails on import ({type(error).__name__}: {error}): mend it, or leave"
            " it out"
        ) from error
    finally:
        _under_way.pop()


def _checked(name: object) -> str:
    if isinstance(name, str) and name and all(part.isidentifier() for part in name.split(".")):
        return name
    raise PluginError(
        f"plugin {name!r} is no name of a module; write it as one imports it, such as"
        " my_package.kernels"
    )


def own_version() -> str:
    """The version of scrimp; a copy of the source that was never installed has none."""
    from importlib.metadata import (
        PackageNotFoundError,
        version,
    )  # a tenth of the time that importing scrimp takes

    try:
        return version("scrimp")
    except PackageNotFoundError:
        return "unknown"
