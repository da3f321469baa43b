"""Arguments and options that several commands share."""

from typing import Annotated

from typer import Argument, Option

from scrimp.plugins.plugins import VARIABLE, name_plugins


def words_of(text: str) -> list[str]:
    """Split a list of names at commas.

    >>> words_of("gp, random,")
    ['gp', 'random']
    """
    return [word.strip() for word in text.split(",") if word.strip()]


StudyArgument = Annotated[str, Argument(metavar="STUDY", help="Name of the study.")]
StorageOption = Annotated[
    str, Option("--storage", help="URL of the storage.", envvar="SCRIMP_STORAGE")
]
JsonOption = Annotated[bool, Option("--json", help="Print JSON instead of text.")]
TimeoutOption = Annotated[float | None, Option(help="Seconds after which no further trial starts.")]
HostOption = Annotated[str, Option(help="Address to listen on.")]
PortOption = Annotated[int, Option(min=0, max=65535, help="Port; 0 takes a free one.")]
PluginOption = Annotated[
    list[str] | None,
    Option(
        "--plugin",
        metavar="MODULE",
        # Before the command begins.
        callback=lambda names: list(name_plugins(names or [])),
        help=(
            "Module that registers kernels, acquisitions, models, methods or storages; repeat for"
            f" several. Also {VARIABLE}=a,b."
        ),
    ),
]
