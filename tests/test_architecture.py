"""Rules for imports, checked on the syntax trees of the package: layers, cycles, third-party
packages, and the cost of importing; and the pages that describe them.

Each rule is one test. A failure lists every offender as file:line and says how to fix it; a rule is
changed here, in one deliberate step, never worked around.
"""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.syntax_trees import (
    MODULES,
    PACKAGE,
    ROOT,
    dotted,
    folder,
    imports,
    module_name,
    place,
    report,
    tree,
)

LAYERS: list[set[str]] = [
    {"plugins", "fronts"},
    {"gp", "space"},
    {"surrogates", "study_log"},
    {"acquisition", "storage"},
    {"encoding", "display"},
    {"suggesters", "schedulers", "executors"},
    {"transfer"},
    {"methods"},
    {"freeze_thaw"},
    {"study"},
    {"checkpoint_selection"},
    {"explain", "formats"},
    {"plots", "bench"},
    {"dashboard"},
    {"cli", "service", "integrations", "extend"},
]
"""From the bottom up: a folder imports from itself and from the layers below, never sideways."""

ARRAYS = {"gp", "surrogates", "acquisition"}
"""Folders without trials."""

ARRAY_FILES = (
    "freeze_thaw/curve_process",
    "freeze_thaw/curve_target",
    "freeze_thaw/freeze_thaw_numbers",
    "checkpoint_selection/task_grid",
)
"""Models of a single folder above, without trials too."""

TRIALS = {"space", "study_log", "storage"}
"""Folders without models."""

FREE = {
    "scrimp.checks",
    "scrimp.errors",
    "scrimp.json_values",
    "scrimp.script",
    "scrimp.sobol",
    "scrimp.threads",
}
"""Modules at the root that every layer may import, because they import nothing of the package."""

FRONT = {"bench", "cli", "dashboard", "integrations", "plots", "display", "service"}
"""Folders for people: they use the public names of others, as any program does."""

FOREIGN = {"_exit", "_getframe", "_missing_", "_name_", "_replace", "_train_batch_size", "_value_"}
"""Names of the standard library and of transformers that begin with an underscore and are meant to
be used."""

LAZY = {("cli", "service"), ("cli", "integrations"), ("study", "explain")}
"""Imports that are allowed inside a function only: of the commands for the server and for trackers,
and of `Study.explain`, which users expect on a study."""

ONLY_IN = {
    "plotly": {"plots", "bench", "dashboard", "cli"},
    "typer": {"cli"},
    "fastapi": {"dashboard", "service"},
    "jinja2": {"dashboard"},
    "uvicorn": {"dashboard", "cli"},
    "psycopg": {"formats", "storage"},
    "ray": {"executors", "integrations"},
    "torch": {"integrations"},
    "jax": set(),
    "autograd": set(),
}
"""Third-party packages that belong to certain folders."""


def inner_imports() -> list[tuple[Path, ast.AST, str, str]]:
    """Imports of the package from within it, with the folders of both ends."""
    return [
        (path, node, folder(module_name(path)), folder(target))
        for path, node, target in imports()
        if target.split(".")[0] == "scrimp" and target not in FREE
    ]


def at_top(path: Path, node: ast.AST) -> bool:
    """True if the statement runs when the module is imported."""
    inside = (
        inner
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function)
    )
    return not any(inner is node for inner in inside)


def test_every_folder_has_a_layer() -> None:
    known = set().union(*LAYERS, {"testing"})
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    report(
        sorted(found - known),
        "These folders of the package have no layer:",
        "give the folder its place in LAYERS and in ARCHITECTURE.md, or move its files into an"
        " existing one.",
    )


def test_imports_go_down_only() -> None:
    height = {name: level for level, layer in enumerate(LAYERS) for name in layer}
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in height
        and target in height
        and source != target
        and height[target] >= height[source]
        if (source, target) not in LAZY or at_top(path, node)
    ]
    report(
        offenders,
        "Imports go down only, never up or sideways:",
        "move the shared part to a lower layer, or hand the value in from above (a contract, a"
        " plain value).",
    )


def test_array_layers_know_no_trials() -> None:
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in ARRAYS or path.relative_to(PACKAGE).as_posix().startswith(ARRAY_FILES)
        if target in TRIALS
    ]
    report(
        offenders,
        "gp, surrogates and acquisition, and the models of single folders, work on arrays and never"
        " on configurations, histories or stores:",
        "translate in encoding/, the only bridge, and hand in arrays.",
    )


def test_trial_layers_know_no_arrays() -> None:
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in TRIALS and target in ARRAYS
    ]
    offenders += [
        f"{place(path, node)}: {folder(module_name(path))} imports {target}"
        for path, node, target in imports()
        if folder(module_name(path)) in TRIALS
        and target.split(".")[0] in {"scipy", "pandas", "plotly"}
    ]
    report(
        offenders,
        "space, study_log and storage never import models or SciPy, so that showing results starts"
        " fast:",
        "move the numeric part to encoding/ or above.",
    )


def test_suggesters_schedulers_and_executors_are_independent() -> None:
    three = {"suggesters", "schedulers", "executors"}
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in three and target in three and source != target
    ]
    report(
        offenders,
        "Suggesters, schedulers and executors do not import each other:",
        "join them in methods/, or move what they share down to study_log/ or encoding/.",
    )


def test_nothing_imports_testing() -> None:
    offenders = [
        place(path, node)
        for path, node, source, target in inner_imports()
        if target == "testing" != source
    ]
    report(
        offenders,
        "Nothing in the package imports scrimp.testing:",
        "it is for tests; move what you need out of it.",
    )


def test_nothing_imports_the_root() -> None:
    offenders = [
        place(path, node)
        for path, node, target in imports()
        if target == "scrimp" and path.parent != PACKAGE and folder(module_name(path)) != "testing"
    ]
    report(
        offenders,
        "The root of the package gathers the public names; its parts import each other by their own"
        " modules:",
        "write `from scrimp.study_log.history import History`, not `from scrimp import History`.",
    )


def test_modules_at_the_root_stand_alone() -> None:
    offenders = [
        place(path, node)
        for path, node, target in imports()
        if path.parent == PACKAGE
        and path.stem not in ("__init__", "__main__")
        and target.split(".")[0] == "scrimp"
    ]
    report(
        offenders,
        "A module at the root, such as scrimp.errors, is free to all, so it imports nothing of the"
        " package:",
        "remove the import, or move the module into the layer it belongs to.",
    )


def test_third_party_packages_stay_in_their_folders() -> None:
    offenders = [
        f"{place(path, node)}: {target}"
        for path, node, target in imports()
        if (package := target.split(".")[0]) in ONLY_IN
        if folder(module_name(path)) not in ONLY_IN[package] | {"testing"}
    ]
    report(
        offenders,
        "These packages belong to other folders:",
        "move the code to the folder that owns the package (see ONLY_IN); the models are written"
        " without autodiff.",
    )


def test_modules_have_no_import_cycles() -> None:
    graph: dict[str, set[str]] = {name: set() for name in MODULES}
    for path, _, target in imports():
        if target in MODULES and target != module_name(path):
            graph[module_name(path)].add(target)
    cycle: list[str] = []
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        cycle = [" -> ".join(reversed(error.args[1]))]
    report(
        cycle,
        "Modules import each other in a circle:",
        "move what both need into a third module below them.",
    )


LIGHT = {
    "scrimp": [
        "scipy",
        "plotly",
        "typer",
        "rich",
        "pandas",
        "fastapi",
        "psycopg",
        "ray",
        "sklearn",
    ],
    "scrimp.study_log.history, scrimp.space.space, scrimp.storage.store": [
        "scipy",
        "plotly",
        "typer",
        "rich",
        "pandas",
    ],
}


@pytest.mark.parametrize("modules", LIGHT)
def test_importing_stays_light(modules: str) -> None:
    code = f"import sys, {modules}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert run.returncode == 0, f"`import {modules}` fails:\n{run.stderr}"
    heavy = sorted(set(LIGHT[modules]) & set(run.stdout.split()))
    report(
        heavy,
        f"`import {modules}` loads NumPy at most, but loaded:",
        "import the package in the function using it.",
    )


def own_names(path: Path) -> set[str]:
    """Names that a file defines: functions, classes, and attributes of self."""
    found = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and dotted(node.value) in ("self", "cls"):
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign):
            found.add(dotted(node.target))
    return found


def test_the_front_uses_public_names_only() -> None:
    offenders = []
    for path in (path for path in MODULES.values() if folder(module_name(path)) in FRONT):
        own = own_names(path) | FOREIGN
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute):
                names = [] if dotted(node.value) in ("self", "cls") else [node.attr]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scrimp"):
                names = [alias.name for alias in node.names]
            else:
                continue
            private = [name for name in names if name.startswith("_") and name[:2] != "__"]
            offenders += [f"{place(path, node)}: {name}" for name in private if name not in own]
    report(
        offenders,
        f"{', '.join(sorted(FRONT))} use public names only:",
        "make what you need public where it lives, with a docstring, or ask for less.",
    )


def test_the_page_shows_the_layers() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = page.split("## Layers")[1].split("In the middle")[0]
    shown = [
        set(re.split(r" {2,}", line.strip())) & set().union(*LAYERS)
        for line in picture.splitlines()
        if line.startswith("    ")
    ]
    assert shown == LAYERS[::-1]


PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("name", PAGES)
def test_pages_name_files_that_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w.]+/)*\w+\.(?:py|md|toml))`", text))
    known = {path.name for path in PACKAGE.rglob("*.py")}
    missing = [
        one
        for one in named
        if not ((PACKAGE / one).exists() or (ROOT / one).exists() or one in known)
        if "annealing" not in one
    ]
    report(missing, f"{name} names files that do not exist:", "write the present names.")


@pytest.mark.parametrize("name", PAGES)
def test_pages_name_folders_that_exist(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)/`", text))
    missing = [one for one in named if not any((root / one).is_dir() for root in (ROOT, PACKAGE))]
    report(missing, f"{name} names folders that do not exist:", "write the present names.")
