"""``scrimp doctor``: what is installed, and whether the storage can be reached."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import typer

from scrimp.catalogs.plugins import VARIABLE, installed_plugins, name_plugins, named_plugins
from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption
from scrimp.errors import ScrimpError
from scrimp.storage.open import without_secrets
from scrimp.tuning.studies import DEFAULT_URL, storage_at

if TYPE_CHECKING:
    from scrimp.tuning.threads import Library

__all__ = ["Finding", "doctor_command", "findings"]

NEEDED = (
    "scrimp",
    "numpy",
    "scipy",
    "threadpoolctl",
    "msgspec",
    "plotly",
    "typer",
    "rich",
    "cloudpickle",
)
OPTIONAL = {
    "psycopg": "PostgreSQL; pip install 'scrimp[postgres]'",
    "fastapi": "the dashboard; pip install 'scrimp[dashboard]'",
    "jinja2": "the dashboard; pip install 'scrimp[dashboard]'",
    "uvicorn": "the dashboard; pip install 'scrimp[dashboard]'",
    "ray": "clusters under Ray; pip install 'scrimp[ray]'",
    "pandas": "study.dataframe(); pip install pandas",
    "pyarrow": "Parquet files; pip install pyarrow",
    "scikit-learn": "scrimp bench make; pip install 'scrimp[bench]'",
    "kaleido": "figures as PNG and SVG; pip install kaleido",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: ``state`` is ok, absent (optional) or wrong."""

    name: str
    state: str
    detail: str


def doctor_command(storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """Check versions, linear algebra, optional packages and the storage; exit code 1 when something
    is wrong.

    Example: scrimp doctor --storage sqlite:///scrimp.db
    """
    found = list(findings(storage))
    if as_json:
        echo(json.dumps([asdict(finding) for finding in found]))
    else:
        for finding in found:
            echo(f"{finding.state:<7} {finding.name:<16} {finding.detail}")
    if any(finding.state == "wrong" for finding in found):
        raise typer.Exit(1)


def findings(storage: str) -> Iterator[Finding]:
    """Everything that can be checked without changing anything."""
    from importlib.metadata import PackageNotFoundError, version

    yield Finding("python", "ok", f"{platform.python_version()} on {platform.platform()}")
    for name in NEEDED:
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "wrong", f"not installed; pip install {name}")
    yield from _linear_algebra()
    for name, purpose in OPTIONAL.items():
        try:
            yield Finding(name, "ok", version(name))
        except PackageNotFoundError:
            yield Finding(name, "absent", f"needed only for {purpose}")
    yield from _plugins()
    yield _reachable(storage)


def _linear_algebra() -> Iterator[Finding]:
    """Which BLAS computes, how many threads it uses outside decisions and inside, and what the
    environment says of them."""
    from scrimp.tuning.threads import loaded_libraries, one_thread

    libraries = sorted(_libraries_of_models(), key=lambda library: str(library["filepath"]))
    if not libraries:
        yield Finding(
            "blas",
            "ok",
            "none whose threads can be set; decisions compute with as many as it takes",
        )
        return
    for library in libraries:
        named = f"{library['internal_api']} {library['version'] or ''}".strip()
        yield Finding(
            "blas",
            "ok",
            f"{named}, {_threads(library['num_threads'])}, in"
            f" {os.path.basename(library['filepath'])}",
        )
    with one_thread():
        inside = max(library["num_threads"] or 1 for library in loaded_libraries())
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    said = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    outside = max(library["num_threads"] or 1 for library in libraries)
    yield Finding(
        "threads",
        "ok",
        f"decisions compute with {_threads(inside)}, everything else with {_threads(outside)} on"
        f" {os.cpu_count()} processors; " + (", ".join(said) or "the environment sets none"),
    )


def _libraries_of_models() -> "list[Library]":
    """The libraries that models compute with: those that NumPy and SciPy bring along."""
    import numpy.linalg
    import scipy.linalg

    from scrimp.tuning.threads import loaded_libraries

    del numpy, scipy
    return loaded_libraries()


def _threads(count: int | None) -> str:
    return "1 thread" if count in (None, 1) else f"{count} threads"


def _plugins() -> Iterator[Finding]:
    """Whether plugins of installed packages, and those that the variable names, can be imported."""
    for name, error in installed_plugins():
        yield Finding(
            f"plugin {name}",
            "ok" if error is None else "wrong",
            "installed" if error is None else str(error),
        )
    for name in named_plugins():
        try:
            name_plugins([name])
            yield Finding(f"plugin {name}", "ok", f"named by {VARIABLE}")
        except ScrimpError as error:
            yield Finding(f"plugin {name}", "wrong", str(error))


def _reachable(url: str) -> Finding:
    shown = without_secrets(url)
    try:
        place = storage_at(url)
        names = place.names()
    except ScrimpError as error:
        return Finding("storage", "wrong", str(error))
    return Finding("storage", "ok", f"{shown} with {len(names)} studies")
