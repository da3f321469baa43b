"""The house rules, checked on the syntax trees of the package: layers, cycles, sizes, names, and what importing costs.

Each rule is one test. A failure lists every offender as file:line and says how to mend it; a rule is changed here, in
one deliberate step, never worked around.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "scrimp"

LAYERS: list[set[str]] = [
    {"gp", "space"},
    {"surrogates", "history"},
    {"acquisition", "storage"},
    {"encoding"},
    {"suggesters", "schedulers", "executors"},
    {"policies", "transfer", "checkpoints"},
    {"tuning"},
    {"plots", "bench"},
    {"cli", "dashboard", "integrations"},
]
"""From the bottom up: a folder imports from itself and from the layers below, never sideways."""

ARRAYS = {"gp", "surrogates", "acquisition"}  # know no trials
TRIALS = {"space", "history", "storage"}  # know no arrays

FREE = {"scrimp.errors", "scrimp.script", "scrimp.sobol"}
"""Modules at the root that every layer may import, because they import nothing of the package."""

LAZY = {("cli", "dashboard")}
"""Sideways imports that are allowed inside a function: the command that serves the pages."""

ONLY_IN = {
    "plotly": {"plots", "bench", "dashboard", "cli"},
    "typer": {"cli"},
    "fastapi": {"dashboard"},
    "jinja2": {"dashboard"},
    "uvicorn": {"dashboard", "cli"},
    "psycopg": {"storage"},
    "ray": {"executors"},
    "torch": {"integrations"},
    "jax": set(),
    "autograd": set(),
}
"""Third-party packages that belong to certain folders."""

UNTESTED = {
    "errors",
    "executors/executor",
    "policies/policy",
    "schedulers/scheduler",
    "storage/store",
    "suggesters/suggester",
    "surrogates/surrogate",
}
"""Contracts without behaviour: the batteries in scrimp/testing hold every implementation to them."""

MAX_FILE_LINES = 400
MAX_BODY_LINES = 40
MAX_PARAMETERS = 6
WIDE = {"tuning", "cli"}  # where what users call by keyword may take more, if marked
FORBIDDEN_FILES = {"utils", "util", "common", "base", "core", "misc", "helpers", "helper", "types"}
FORBIDDEN_CLASS = re.compile(r"(?:^|[a-z0-9_])(Base|Abstract|Mixin|Manager|Helper|Impl)(?=[A-Z_0-9]|$)")
GENERATORS = {"BitGenerator", "Generator", "PCG64", "Philox", "SeedSequence", "default_rng"}

FILES = sorted(PACKAGE.rglob("*.py"))


def folder(module: str) -> str:
    """'scrimp.gp.kernel' -> 'gp'; '' for modules at the root of the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).is_dir() else ""


def module_name(path: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def place(path: Path, node: ast.AST | int) -> str:
    """file:line, relative to the repository."""
    line = node if isinstance(node, int) else getattr(node, "lineno", 1)
    return f"{path.relative_to(ROOT)}:{line}"


def nodes(*kinds: type[ast.AST]) -> Iterator[tuple[Path, ast.AST]]:
    """All nodes of these kinds in the package, each with its file."""
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, kinds):
                yield path, node


def targets(path: Path, node: ast.Import | ast.ImportFrom) -> list[str]:
    """The dotted names one import statement loads; submodules rather than their package where it names them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    prefix = node.module or ""
    if node.level:
        package = module_name(path).split(".")
        package = package if path.name == "__init__.py" else package[:-1]
        prefix = ".".join([*package[: len(package) - node.level + 1], *([node.module] if node.module else [])])
    names = [f"{prefix}.{alias.name}" for alias in node.names]
    return [name if name in MODULES else prefix for name in names]


@cache
def imports() -> list[tuple[Path, ast.AST, str]]:
    """Every import of the package, wherever it stands: in functions and under TYPE_CHECKING too."""
    return [
        (path, node, target)
        for path, node in nodes(ast.Import, ast.ImportFrom)
        for target in dict.fromkeys(targets(path, node))  # type: ignore[arg-type]
    ]


def inner_imports() -> list[tuple[Path, ast.AST, str, str]]:
    """Imports of the package from within it, with the folders of both ends."""
    return [
        (path, node, folder(module_name(path)), folder(target))
        for path, node, target in imports()
        if target.split(".")[0] == "scrimp" and target not in FREE
    ]


def dotted(node: ast.AST) -> str:
    """'np.random.rand' for such an attribute, '' for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}" if dotted(value) else ""
    return ""


def at_top(path: Path, node: ast.AST) -> bool:
    """Whether the statement runs when the module is imported."""
    inside = (
        inner
        for function in ast.walk(tree(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function)
    )
    return not any(inner is node for inner in inside)


def report(offenders: list[str], rule: str, remedy: str) -> None:
    assert not offenders, f"{rule}\n  " + "\n  ".join(sorted(offenders)) + f"\nRemedy: {remedy}"


# --- layers ------------------------------------------------------------------------------------------------------


def test_every_folder_has_a_layer() -> None:
    known = set().union(*LAYERS, {"testing"})
    found = {path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    report(
        sorted(found - known),
        "These folders of the package have no layer:",
        "give the folder its place in LAYERS and in ARCHITECTURE.md, or move its files into an existing one.",
    )


def test_imports_go_down_only() -> None:
    height = {name: level for level, layer in enumerate(LAYERS) for name in layer}
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in height and target in height and source != target and height[target] >= height[source]
        if (source, target) not in LAZY or at_top(path, node)
    ]
    report(
        offenders,
        "Imports go down only, never up or sideways:",
        "move the shared part to a lower layer, or hand the value in from above (a contract, a plain value).",
    )


def test_array_layers_know_no_trials() -> None:
    offenders = [
        f"{place(path, node)}: {source} imports {target}"
        for path, node, source, target in inner_imports()
        if source in ARRAYS and target in TRIALS
    ]
    report(
        offenders,
        "gp, surrogates and acquisition work on arrays and never see configurations, histories or stores:",
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
        if folder(module_name(path)) in TRIALS and target.split(".")[0] in {"scipy", "pandas", "plotly"}
    ]
    report(
        offenders,
        "space, history and storage never import models or SciPy, so that showing results starts fast:",
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
        "join them in policies/, or move what they share down to history/ or encoding/.",
    )


def test_nothing_imports_testing() -> None:
    offenders = [place(path, node) for path, node, source, target in inner_imports() if target == "testing" != source]
    report(
        offenders, "Nothing in the package imports scrimp.testing:", "it is for tests; move what you need out of it."
    )


def test_nothing_imports_the_root() -> None:
    offenders = [
        place(path, node)
        for path, node, target in imports()
        if target == "scrimp" and path.parent != PACKAGE and folder(module_name(path)) != "testing"
    ]
    report(
        offenders,
        "The root of the package gathers the public names; its parts import each other by their own modules:",
        "write `from scrimp.history.history import History`, not `from scrimp import History`.",
    )


def test_modules_at_the_root_stand_alone() -> None:
    offenders = [
        place(path, node)
        for path, node, target in imports()
        if path.parent == PACKAGE and path.stem not in ("__init__", "__main__") and target.split(".")[0] == "scrimp"
    ]
    report(
        offenders,
        "A module at the root, such as scrimp.errors, is free to all, so it imports nothing of the package:",
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
        "move the code to the folder that owns the package (see ONLY_IN); the models are written without autodiff.",
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
    report(cycle, "Modules import each other in a circle:", "move what both need into a third module below them.")


# --- sizes and shapes --------------------------------------------------------------------------------------------


def test_files_are_short() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path in FILES
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    ]
    report(
        offenders,
        f"A file has at most {MAX_FILE_LINES} lines:",
        "split it along its ideas, one noun per file, and mirror the split in tests/.",
    )


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body from its first statement after the docstring."""
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    return 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1


def test_functions_are_short() -> None:
    offenders = [
        f"{place(path, node)}: {node.name} has {body_lines(node)} lines"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and body_lines(node) > MAX_BODY_LINES
    ]
    report(
        offenders,
        f"A function has at most {MAX_BODY_LINES} lines after its docstring:",
        "take out a step that has a name of its own, as a pure function with its own test.",
    )


def parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Named parameters; self and cls are not counted."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def source_line(path: Path, number: int) -> str:
    return path.read_text(encoding="utf-8").splitlines()[number - 1]


def test_functions_take_few_parameters() -> None:
    offenders = [
        f"{place(path, node)}: {node.name} takes {parameter_count(node)}"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameter_count(node) > MAX_PARAMETERS
        if folder(module_name(path)) not in WIDE or "# noqa: PLR0913" not in source_line(path, node.lineno)
    ]
    report(
        offenders,
        f"A function takes at most {MAX_PARAMETERS} parameters:",
        "gather the settings in a frozen dataclass. Only what users call by keyword (create_study, the options of a "
        f"command) may take more, in {' and '.join(sorted(WIDE))}, marked `# noqa: PLR0913` on the line of the def.",
    )


def test_package_is_one_folder_deep() -> None:
    offenders = [str(path.relative_to(ROOT)) for path in FILES if len(path.relative_to(PACKAGE).parts) > 2]
    report(offenders, "The package is one folder deep:", "move the file up into its folder.")


# --- names -------------------------------------------------------------------------------------------------------


def test_file_names_say_something() -> None:
    offenders = [
        str(path.relative_to(ROOT)) for path in FILES if FORBIDDEN_FILES & {path.stem.strip("_"), path.parent.name}
    ]
    report(
        offenders,
        f"No file or folder is called {', '.join(sorted(FORBIDDEN_FILES))}:",
        "name it after the noun it holds.",
    )


def test_class_names_say_something() -> None:
    offenders = [
        f"{place(path, node)}: {node.name}"
        for path, node in nodes(ast.ClassDef)
        if isinstance(node, ast.ClassDef) and FORBIDDEN_CLASS.search(node.name)
    ]
    report(
        offenders,
        "No class is a Base, Abstract, Mixin, Manager, Helper or Impl:",
        "the contract gets the plain noun (Kernel), the implementation the specific one (Matern52).",
    )


def test_every_module_has_a_docstring() -> None:
    offenders = [
        str(path.relative_to(ROOT)) for path in FILES if tree(path).body and ast.get_docstring(tree(path)) is None
    ]
    report(
        offenders, "Every module with code opens with a docstring:", "say what it is and its rule in a line or more."
    )


# --- habits ------------------------------------------------------------------------------------------------------


def test_nobody_calls_hasattr() -> None:
    offenders = [
        place(path, node)
        for path, node in nodes(ast.Call)
        if isinstance(node, ast.Call) and dotted(node.func) == "hasattr"
    ]
    report(offenders, "No hasattr:", "put the method into the contract, or match on the type.")


def test_clock_is_handed_in() -> None:
    wall_clock = {"time.time", "time.time_ns"}
    offenders = [
        place(path, node)
        for path, node in nodes(ast.Attribute)
        if dotted(node) in wall_clock and path != PACKAGE / "executors" / "clock.py"
    ]
    offenders += [
        place(path, node)
        for path, node in nodes(ast.ImportFrom)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        if {"time", "time_ns"} & {alias.name for alias in node.names} and path != PACKAGE / "executors" / "clock.py"
    ]
    report(offenders, "Only executors/clock.py reads the wall clock:", "take a Clock as an argument.")


def test_random_generators_are_handed_in() -> None:
    offenders = [
        f"{place(path, node)}: {dotted(node)}"
        for path, node in nodes(ast.Attribute)
        if re.fullmatch(r"(np|numpy)\.random\.\w+", dotted(node)) and dotted(node).split(".")[-1] not in GENERATORS
    ]
    offenders += [
        f"{place(path, node)}: default_rng()"
        for path, node in nodes(ast.Call)
        if isinstance(node, ast.Call) and dotted(node.func).endswith("default_rng") and not (node.args or node.keywords)
    ]
    offenders += [f"{place(path, node)}: {target}" for path, node, target in imports() if target == "random"]
    report(
        offenders,
        "No global or unseeded random generator:",
        "take `rng: np.random.Generator` as an argument; a history derives one by `history.rng(purpose)`.",
    )


# --- tests and files ---------------------------------------------------------------------------------------------


def test_tests_mirror_the_package() -> None:
    modules = [
        path.relative_to(PACKAGE).with_suffix("")
        for path in FILES
        if not path.stem.startswith("__") and path.parent.name != "testing"
    ]
    tested = {m.as_posix() for m in modules if (ROOT / "tests" / m.parent / f"test_{m.name}.py").exists()}
    names = {module.as_posix() for module in modules}
    offenders = [f"{name} has no test of its own" for name in names - tested - UNTESTED]
    offenders += [f"{name} is listed in UNTESTED, but it has a test" for name in tested & UNTESTED]
    offenders += [f"{name} is listed in UNTESTED, but does not exist" for name in UNTESTED - names]
    report(
        offenders,
        "Tests mirror the package, one file per file:",
        "write tests/folder/test_file.py; only contracts without behaviour may be listed in UNTESTED.",
    )


LIGHT = {
    "scrimp": ["scipy", "plotly", "typer", "rich", "pandas", "fastapi", "psycopg", "ray", "sklearn"],
    "scrimp.history.history, scrimp.space.space, scrimp.storage.store": ["scipy", "plotly", "typer", "rich", "pandas"],
}


@pytest.mark.parametrize("modules", LIGHT)
def test_importing_stays_light(modules: str) -> None:
    code = f"import sys, {modules}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert run.returncode == 0, f"`import {modules}` fails:\n{run.stderr}"
    heavy = sorted(set(LIGHT[modules]) & set(run.stdout.split()))
    report(
        heavy, f"`import {modules}` loads NumPy at most, but loaded:", "import the package in the function using it."
    )


def tracked_files() -> list[Path]:
    """The files git knows; everything outside hidden folders when this is no checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT, check=False)
    if listed.returncode == 0:
        return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


IMAGINED = {ROOT / "tests" / "storage" / "test_file_system.py"}
"""Files whose paths belong to no machine: tables of mounted file systems, made up to be parsed."""


def test_no_machine_paths() -> None:
    machine = re.compile(r"(?<![\w.}/:-])/(?:" + "|".join(("work", "home", "root", "Users")) + r")/[\w.]")
    beside = re.compile(r"\.\./" + "shared")
    offenders = []
    for path in tracked_files():
        if path in IMAGINED:
            continue
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture or an archive
        inside = path.relative_to(ROOT).parts[0] not in ("tests", "benchmarks")
        offenders += [
            f"{place(path, number)}: {line.strip()[:100]}"
            for number, line in enumerate(lines, 1)
            if machine.search(line) or (inside and beside.search(line))
        ]
    report(
        offenders,
        "No paths of one particular machine in the repository:",
        "take the location from an argument or an environment variable (SCRIMP_DATA for benchmark data).",
    )
