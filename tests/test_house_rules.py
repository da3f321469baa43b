"""The house rules, checked on the syntax trees of the package: sizes, names, habits, a test for
every file, no machine's paths.

Each rule is one test. A failure lists every offender as file:line and says how to mend it; a rule
is changed here, in one deliberate step, never worked around.
"""

import ast
import re
import subprocess
from pathlib import Path

from tests.syntax_trees import (
    FILES,
    PACKAGE,
    ROOT,
    dotted,
    folder,
    imports,
    module_name,
    nodes,
    place,
    report,
    tree,
)

UNTESTED = {
    "errors",
    "executors/executor",
    "json_values",
    "storage/http_messages",
    "suggesters/suggester",
}
"""Contracts without behaviour: the batteries in scrimp/testing hold every implementation to
them."""

MAX_FILE_LINES = 600
MAX_BODY_LINES = 50
MAX_PARAMETERS = 6
# where what users call by keyword may take more, if marked
WIDE = {"study", "checkpoint_selection", "cli", "bench", "integrations"}
FORBIDDEN_FILES = {"utils", "util", "common", "base", "core", "misc", "helpers", "helper", "types"}
FORBIDDEN_CLASS = re.compile(
    r"(?:^|[a-z0-9_])(Base|Abstract|Mixin|Manager|Helper|Impl)(?=[A-Z_0-9]|$)"
)
GENERATORS = {"BitGenerator", "Generator", "PCG64", "Philox", "SeedSequence", "default_rng"}


# --- sizes and shapes -----------------------------------------------------------------------------


def test_files_are_short() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {count} lines"
        for path in [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES
    ]
    report(
        offenders,
        f"A file has at most {MAX_FILE_LINES} lines:",
        "split it along its ideas, one noun per file, and mirror the split in tests/.",
    )


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body from its first statement after the docstring."""
    body = (
        function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    )
    return 0 if not body else (function.end_lineno or 0) - body[0].lineno + 1


def test_functions_are_short() -> None:
    offenders = [
        f"{place(path, node)}: {node.name} has {body_lines(node)} lines"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and body_lines(node) > MAX_BODY_LINES
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
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and parameter_count(node) > MAX_PARAMETERS
        if folder(module_name(path)) not in WIDE
        or "# noqa: PLR0913" not in source_line(path, node.lineno)
    ]
    report(
        offenders,
        f"A function takes at most {MAX_PARAMETERS} parameters:",
        "gather the settings in a frozen dataclass. Only what users call by keyword (create_study,"
        f" the options of a command) may take more, in {' and '.join(sorted(WIDE))}, marked `#"
        " noqa: PLR0913` on the line of the def.",
    )


def test_package_is_one_folder_deep() -> None:
    offenders = [
        str(path.relative_to(ROOT)) for path in FILES if len(path.relative_to(PACKAGE).parts) > 2
    ]
    report(offenders, "The package is one folder deep:", "move the file up into its folder.")


# --- names ----------------------------------------------------------------------------------------


def test_file_names_say_something() -> None:
    offenders = [
        str(path.relative_to(ROOT))
        for path in FILES
        if FORBIDDEN_FILES & {path.stem.strip("_"), path.parent.name}
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
        "the contract gets the plain noun (Kernel), the implementation the specific one"
        " (Matern52).",
    )


def test_every_module_has_a_docstring() -> None:
    offenders = [
        str(path.relative_to(ROOT))
        for path in FILES
        if tree(path).body and ast.get_docstring(tree(path)) is None
    ]
    report(
        offenders,
        "Every module with code opens with a docstring:",
        "say what it is and its rule in a line or more.",
    )


# --- habits ---------------------------------------------------------------------------------------


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
        if {"time", "time_ns"} & {alias.name for alias in node.names}
        and path != PACKAGE / "executors" / "clock.py"
    ]
    report(
        offenders, "Only executors/clock.py reads the wall clock:", "take a Clock as an argument."
    )


def test_random_generators_are_handed_in() -> None:
    offenders = [
        f"{place(path, node)}: {dotted(node)}"
        for path, node in nodes(ast.Attribute)
        if re.fullmatch(r"(np|numpy)\.random\.\w+", dotted(node))
        and dotted(node).split(".")[-1] not in GENERATORS
    ]
    offenders += [
        f"{place(path, node)}: default_rng()"
        for path, node in nodes(ast.Call)
        if isinstance(node, ast.Call)
        and dotted(node.func).endswith("default_rng")
        and not (node.args or node.keywords)
    ]
    offenders += [
        f"{place(path, node)}: {target}" for path, node, target in imports() if target == "random"
    ]
    report(
        offenders,
        "No global or unseeded random generator:",
        "take `rng: np.random.Generator` as an argument; a history derives one by"
        " `history.rng(purpose)`.",
    )


# --- tests and files ------------------------------------------------------------------------------


def test_tests_mirror_the_package() -> None:
    modules = [
        path.relative_to(PACKAGE).with_suffix("")
        for path in FILES
        if not path.stem.startswith("__") and path.parent.name != "testing"
    ]
    tested = {
        m.as_posix() for m in modules if (ROOT / "tests" / m.parent / f"test_{m.name}.py").exists()
    }
    names = {module.as_posix() for module in modules}
    offenders = [f"{name} has no test of its own" for name in names - tested - UNTESTED]
    offenders += [f"{name} is listed in UNTESTED, but it has a test" for name in tested & UNTESTED]
    offenders += [f"{name} is listed in UNTESTED, but does not exist" for name in UNTESTED - names]
    report(
        offenders,
        "Tests mirror the package, one file per file:",
        "write tests/folder/test_file.py; only contracts without behaviour may be listed in"
        " UNTESTED.",
    )


def tracked_files() -> list[Path]:
    """The files git knows; everything outside hidden folders when this is no checkout."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    if listed.returncode == 0:
        return [
            ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()
        ]
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
    ]


IMAGINED = {ROOT / "tests" / "storage" / "test_durable_files_network.py"}
"""Files whose paths belong to no machine: tables of mounted file systems, made up to be parsed."""


def test_no_machine_paths() -> None:
    machine = re.compile(
        r"(?<![\w.}/:-])/(?:" + "|".join(("work", "home", "root", "Users")) + r")/[\w.]"
    )
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
        "take the location from an argument or an environment variable (SCRIMP_DATA for benchmark"
        " data).",
    )


# --- types ----------------------------------------------------------------------------------------

MOST_ANY = 92
"""How often the package says `Any`. It may only fall: take a type that says something."""


def test_any_becomes_rarer() -> None:
    names = [node for _, node in nodes(ast.Name) if isinstance(node, ast.Name) and node.id == "Any"]
    assert len(names) <= MOST_ANY, (
        f"the package says Any {len(names)} times, and {MOST_ANY} is the most; use Json, Scalar,"
        " object, a TypedDict, a Protocol or a struct"
    )
