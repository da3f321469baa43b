"""``scrimp doctor``: what is installed, and whether the storage can be reached."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import JsonOption, StorageOption
from scrimp.errors import ScrimpError
from scrimp.registry.plugins import VARIABLE, installed_plugins, name_plugins, named_plugins
from scrimp.storage.open import without_secrets
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["Finding", "doctor_command", "findings"]

NEEDED = ("scrimp", "numpy", "scipy", "msgspec", "plotly", "typer", "rich", "cloudpickle")
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
    """Check versions, linear algebra, optional packages and the storage; exit code 1 when something is wrong.

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
    """Which BLAS computes, and how many threads it may use: more than one rarely helps models of this size."""
    import numpy

    config = numpy.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    yield Finding("blas", "ok", f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip())
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    set_ = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    yield Finding("threads", "ok", ", ".join(set_) or f"not limited; {os.cpu_count()} processors")


def _plugins() -> Iterator[Finding]:
    """Whether plugins of installed packages, and those that the variable names, can be imported."""
    for name, error in installed_plugins():
        yield Finding(
            f"plugin {name}", "ok" if error is None else "wrong", "installed" if error is None else str(error)
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
