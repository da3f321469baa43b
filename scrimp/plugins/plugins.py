"""Plugins: modules that register kernels, acquisitions, models, methods or storages on import.

These modules are imported:

    installed    those that an installed package lists in the entry-point group ``scrimp.plugins``
    named        those that the user of this process named: ``--plugin``, ``plugins=``, a study
                 file, the variable SCRIMP_PLUGINS
    recorded     those that a study records, but only if they are installed or named, or already
                 imported

A study's record comes from a storage that others may write to. Importing a module runs it, so a
record alone never imports anything: the user must have installed the module as a plugin of scrimp,
or named it.
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


GROUP = "scrimp.plugins"
"""The entry-point group in which an installed package lists its module."""

VARIABLE = "SCRIMP_PLUGINS"
"""The environment variable with module names, separated by commas; worker processes inherit it."""

logger = logging.getLogger("scrimp")

_named: dict[str, None] = {}
_done: set[str] = set()
_under_way: list[str] = []


def name_plugins(names: Iterable[str]) -> tuple[str, ...]:
    """Import the modules that the user names, and return their checked names. Modules in the
    current folder are found too, like that of an objective."""
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
    """Return the plugins named in this process or in its variable; child processes get them."""
    listed = (part.strip() for part in os.environ.get(VARIABLE, "").split(","))
    return tuple(dict.fromkeys([*_named, *filter(None, listed)]))


def load_recorded(names: Iterable[str], study: str) -> None:
    """Import the modules that a study records, if the user has installed or named them."""
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
                f"study {study!r} needs the plugin {name!r}, which no installed package lists"
                f" (entry points {GROUP!r}), and recorded names are not imported on their own: install"
                f" its package, or name it with --plugin {name}, plugins=[{name!r}] or"
                f" {VARIABLE}={name}"
            )


def load_available() -> None:
    """Import all installed and named plugins. A broken installed plugin is logged, not raised."""
    for _, error in installed_plugins():
        if error is not None:
            logger.warning("%s", error)
    name_plugins(named_plugins())


def installed_plugins() -> Iterator[tuple[str, PluginError | None]]:
    """Import the plugins of installed packages; yield each module's name, and its error if any."""
    for entry in _installed():
        try:
            _load_installed(entry)
        except PluginError as error:
            yield entry.module, error
        else:
            yield entry.module, None


def loading() -> str | None:
    """Return the plugin that is being imported, if any."""
    return _under_way[-1] if _under_way else None


def _installed() -> "list[EntryPoint]":
    # Imported here because it takes longer to load than the rest of this module.
    from importlib.metadata import entry_points

    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _load_installed(entry: "EntryPoint") -> None:
    """Import the module of an entry point; call the function that it names, once."""
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
            f"plugin {name!r} cannot be found{missing}: install it, start in its folder, or add that"
            " folder to PYTHONPATH"
        ) from error
    except Exception as error:
        raise PluginError(
            f"plugin {name!r} fails on import ({type(error).__name__}: {error}): fix it, or leave"
            " it out"
        ) from error
    finally:
        _under_way.pop()


def _checked(name: object) -> str:
    if isinstance(name, str) and name and all(part.isidentifier() for part in name.split(".")):
        return name
    raise PluginError(
        f"plugin {name!r} is not a module name; write it as in an import, such as"
        " my_package.kernels"
    )


def own_version() -> str:
    """Return the version of scrimp; "unknown" for a source tree that is not installed."""
    # Imported here because it takes a tenth of the time of importing scrimp.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("scrimp")
    except PackageNotFoundError:
        return "unknown"
