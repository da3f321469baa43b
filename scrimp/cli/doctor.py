"""``scrimp doctor``: check what is installed and that the storage can be reached."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer

from scrimp.cli.options import JsonOption, StorageOption
from scrimp.cli.printing import echo
from scrimp.errors import ScrimpError
from scrimp.plugins.plugins import VARIABLE, installed_plugins, name_plugins, named_plugins
from scrimp.storage.open import without_secrets
from scrimp.study.studies import DEFAULT_URL, storage_at

NEEDED = ("scrimp", "numpy", "scipy", "threadpoolctl", "msgspec", "typer", "rich", "cloudpickle")
OPTIONAL = {
    "plotly": "plots; pip install 'scrimp[plots]'",
    "psycopg": "PostgreSQL; pip install 'scrimp[postgres]'",
    "fastapi": "the dashboard; pip install 'scrimp[dashboard]'",
    "jinja2": "the dashboard; pip install 'scrimp[dashboard]'",
    "uvicorn": "the dashboard; pip install 'scrimp[dashboard]'",
    "ray": "clusters under Ray; pip install 'scrimp[ray]'",
    "pandas": "study.dataframe(); pip install pandas",
    "pyarrow": "Parquet files; pip install pyarrow",
    "scikit-learn": "scrimp bench make and ScrimpSearchCV; pip install 'scrimp[sklearn]'",
    "kaleido": "figures as PNG, SVG and PDF; pip install kaleido",
}


@dataclass(frozen=True)
class Finding:
    """One check; ``state`` is ok, absent (optional) or wrong."""

    name: str
    state: str
    detail: str


def doctor_command(storage: StorageOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """Check versions, linear algebra, optional packages and the storage; exit code 1 if something
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
    """Run all checks; none changes anything."""
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
    """Report the BLAS in use, its threads, and the variables that set them."""
    # The libraries that NumPy and SciPy load compute the models.
    import numpy.linalg  # noqa: F401
    import scipy.linalg  # noqa: F401

    from scrimp.threads import loaded_libraries, one_thread

    libraries = sorted(loaded_libraries(), key=lambda library: str(library["filepath"]))
    if not libraries:
        none = "no library whose threads can be set; decisions use its own number of threads"
        yield Finding("blas", "ok", none)
        return
    for library in libraries:
        named = f"{library['internal_api']} {library['version'] or ''}".strip()
        file = os.path.basename(library["filepath"])
        yield Finding("blas", "ok", f"{named}, {_threads(library['num_threads'])}, in {file}")
    with one_thread():
        inside = max(library["num_threads"] or 1 for library in loaded_libraries())
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    said = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    outside = max(library["num_threads"] or 1 for library in libraries)
    used = f"{_threads(inside)} for decisions, {_threads(outside)} otherwise"
    given = ", ".join(said) or "the environment sets none"
    yield Finding("threads", "ok", f"{used}, on {os.cpu_count()} processors; {given}")


def _threads(count: int | None) -> str:
    return "1 thread" if count in (None, 1) else f"{count} threads"


def _plugins() -> Iterator[Finding]:
    """Import the plugins of installed packages and those that the variable names."""
    for name, error in installed_plugins():
        state, detail = ("ok", "installed") if error is None else ("wrong", str(error))
        yield Finding(f"plugin {name}", state, detail)
    for name in named_plugins():
        try:
            name_plugins([name])
            yield Finding(f"plugin {name}", "ok", f"named by {VARIABLE}")
        except ScrimpError as error:
            yield Finding(f"plugin {name}", "wrong", str(error))


def _reachable(url: str) -> Finding:
    try:
        count = len(storage_at(url).names())
    except ScrimpError as error:
        return Finding("storage", "wrong", str(error))
    held = "1 study" if count == 1 else f"{count} studies"
    return Finding("storage", "ok", f"{without_secrets(url)} with {held}")
