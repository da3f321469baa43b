"""The option ``--plugin``, the same for every command that builds models or opens a storage of
one's own."""

from typing import Annotated

import typer

from scrimp.catalogs.plugins import VARIABLE, name_plugins

__all__ = ["PluginOption"]


def _imported(names: list[str] | None) -> list[str]:
    """Import them before the command begins."""
    return list(name_plugins(names or []))


PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE",
        callback=_imported,
        help=(
            "Module that registers kernels, acquisitions, models, methods or storages; repeat."
            f" Also {VARIABLE}=a,b."
        ),
    ),
]
