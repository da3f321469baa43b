"""One name, one idea: public names are not shared between folders, and what acts is called by a verb.

Each rule is one test, as in `test_house_rules`; a failure lists every offender and says how to fix it.
"""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.syntax_trees import (
    FILES,
    PACKAGE,
    dotted,
    folder,
    module_name,
    nodes,
    place,
    report,
    tree,
)

SHARED = {"main"}
"""What every program of its own calls its entrance."""

EFFECTS = {
    "link",
    "mkdir",
    "rename",
    "replace",
    "rmdir",
    "rmtree",
    "symlink_to",
    "unlink",
    "write_bytes",
    "write_text",
}
"""Calls that change files, wherever they are methods of a path or functions of os and shutil."""

RETIRED = {
    "contract": ("class", set(), "Battery for tests; the contract itself has the plain noun"),
    "registry": ("any", set(), "catalog"),
    "configuration": ("any", {"testing"}, "config"),
    "configurations": ("any", {"testing"}, "config"),
    "params": ("any", {"executors", "study_log", "integrations", "", "study"}, "config"),
    "rung": ("any", {"study_log", "plots", "schedulers", "storage"}, "level"),
    "rungs": ("any", {"study_log", "plots", "schedulers", "storage"}, "levels"),
}
"""Second names of one idea: what may not be called so ("class": classes only), the folders in which
the word means something else or is the users' word, and the word to take. ARCHITECTURE.md, "Words",
says what each means."""

LOGS = re.compile(r"(ledger|store|storage)\.(append|extend|create|delete)$")
"""Calls that change a log."""


def public_definitions() -> dict[str, set[Path]]:
    """Classes and functions at the top of modules, each with the files that define it."""
    found: dict[str, set[Path]] = defaultdict(set)
    for path in FILES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                found[node.name].add(path)
    return found


def test_public_names_stand_for_one_thing() -> None:
    offenders = [
        f"{name}: {', '.join(sorted(str(path.relative_to(PACKAGE)) for path in paths))}"
        for name, paths in public_definitions().items()
        if name not in SHARED and len({folder(module_name(path)) for path in paths}) > 1
    ]
    report(
        offenders,
        "These public names stand for different things in different folders:",
        "give the more special one the more special name; a reader who searches for a name finds one definition.",
    )


def is_participle(name: str) -> bool:
    """Whether a name reads as a result: its first word ends in -ed, or is an irregular participle.

    >>> is_participle("_removed"), is_participle("_made_room"), is_participle("seed"), is_participle("embed")
    (True, True, False, False)
    """
    first = name.strip("_").split("_")[0]
    regular = first.endswith("ed") and first not in {
        "seed",
        "need",
        "embed",
        "feed",
        "speed",
        "exceed",
        "proceed",
    }
    return regular or first in {"carried", "chosen", "drawn", "given", "made", "told", "written"}


def listeners() -> set[ast.AST]:
    """Public methods: `ended(trial)` tells an object what happened, as its name says."""
    return {
        item
        for _, node in nodes(ast.ClassDef)
        if isinstance(node, ast.ClassDef)
        for item in node.body
        if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
    }


def acts(function: ast.FunctionDef | ast.AsyncFunctionDef, listening: set[ast.AST]) -> bool:
    """Whether it returns nothing without being a listener, or changes files or a log by itself."""
    returns_none = isinstance(function.returns, ast.Constant) and function.returns.value is None
    if returns_none and function not in listening:
        return True
    calls = [dotted(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
    paths = ("os.", "shutil.", "path.", "folder.", "file.", "target.")
    return any(
        LOGS.search(call) or (call.rpartition(".")[2] in EFFECTS and call.startswith(paths))
        for call in calls
    )


def test_what_acts_is_called_by_a_verb() -> None:
    listening = listeners()
    offenders = [
        f"{place(path, node)}: {node.name}"
        for path, node in nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if is_participle(node.name) and acts(node, listening)
    ]
    report(
        offenders,
        "These functions do something, and their names read as results:",
        "call them by the verb: `_remove`, not `_removed`.",
    )


def words_of(name: str) -> list[str]:
    """The words of a name.

    >>> words_of("KernelContract"), words_of("_best_params")
    (['kernel', 'contract'], ['best', 'params'])
    """
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def test_a_retired_word_names_nothing() -> None:
    named = [
        (path, place(path, node), node.name, isinstance(node, ast.ClassDef))
        for path, node in nodes(ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    named += [(path, str(path.relative_to(PACKAGE)), path.stem, False) for path in FILES]
    named += [(path, str(path.relative_to(PACKAGE)), path.parent.name, False) for path in FILES]
    offenders = [
        f"{where}: {name} (say {instead})"
        for path, where, name, is_class in named
        for word in words_of(name)
        if word in RETIRED
        for kind, homes, instead in [RETIRED[word]]
        if (kind == "any" or is_class) and folder(module_name(path)) not in homes
    ]
    report(
        offenders,
        "These names use a second word for one idea:",
        'take the word of ARCHITECTURE.md, "Words".',
    )


def is_number(value: ast.expr) -> bool:
    """Return True for an expression of literal numbers only, such as ``-1e300`` or ``(0.1, 0.9)``."""
    literals = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    arithmetic = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple)
    return (
        isinstance(value, arithmetic)
        and bool(literals)
        and all(type(node.value) in (int, float) for node in literals)
        and not any(isinstance(node, ast.Name | ast.Call) for node in ast.walk(value))
    )


def test_a_number_says_what_it_bounds() -> None:
    offenders = [
        f"{place(path, node)}: {target.id}"
        for path in FILES
        for node in tree(path).body
        if isinstance(node, ast.Assign) and is_number(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and "_" not in target.id.strip("_")
    ]
    report(
        offenders,
        "These numbers have a name of one word, which could bound anything:",
        "say what they count or bound: MAX_FITTED_ROWS, not ROWS.",
    )
