"""Types at the front door: no `Any` in the signatures of what users and authors import.

Read off the syntax trees, so that integrations whose library is not installed here count too. A
public class counts with all the classes of the package that it inherits from; an alias counts as
what it stands for. The exceptions are `Config` and `Asked`, whose docstrings say why.
"""

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import scrimp
from scrimp.checkpoint_selection.selections import SelectionOptions
from scrimp.study.minimize import OptimizeOptions
from tests.syntax_trees import FILES, MODULES, PACKAGE, dotted, place, report, tree

DOORS = ("scrimp", "scrimp.extend", "scrimp.testing", "scrimp.plots")
ALLOWED = {"Config", "Asked"}

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


def exported(path: Path) -> list[str]:
    """What ``__all__`` of a file lists."""
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "__all__":
            listed = ast.literal_eval(node.value)
            assert isinstance(listed, list)
            return listed
    return []


@cache
def origins(path: Path) -> dict[str, tuple[str, str]]:
    """Names that a file imports from the package: module and name there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scrimp")
        for alias in node.names
    }


def definition(path: Path, name: str) -> tuple[Path, Definition] | None:
    """Where a name of a file is defined, wherever it was imported from; None outside the
    package."""
    for node in tree(path).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return path, node
        if isinstance(node, ast.Assign) and name in map(dotted, node.targets):
            return path, node
        if isinstance(node, ast.AnnAssign) and dotted(node.target) == name:
            return path, node
    module, there = origins(path).get(name, ("", ""))
    if f"{module}.{there}" in MODULES:
        return None  # a module, such as scrimp.errors
    return definition(MODULES[module], there) if module in MODULES else None


def annotations(path: Path, node: Definition) -> Iterator[tuple[Path, ast.expr]]:
    """The annotations that a user of a definition sees."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            given = node.args
            listed = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            listed += [part for part in (given.vararg, given.kwarg) if part is not None]
            for annotation in (*(part.annotation for part in listed), node.returns):
                if annotation is not None:
                    yield path, annotation
        case ast.AnnAssign():
            yield path, node.annotation
        case ast.ClassDef():
            for part in node.body:
                if isinstance(part, ast.FunctionDef) and seen(part.name):
                    yield from annotations(path, part)
                if isinstance(part, ast.AnnAssign) and seen(dotted(part.target)):
                    yield path, part.annotation
            for parent in node.bases:
                found = definition(path, dotted(parent))
                if found is not None and isinstance(found[1], ast.ClassDef):
                    yield from annotations(*found)


def seen(name: str) -> bool:
    """Whether users meet a member of this name."""
    return not name.startswith("_") or (name.startswith("__") and name != "__getattr__")


def says_any(path: Path, expression: ast.expr, depth: int = 6) -> bool:
    """Whether a type says `Any`, in text or by an alias."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                continue
            if says_any(path, inner, depth):
                return True
        if not isinstance(node, ast.Name) or node.id in ALLOWED or not depth:
            continue
        if node.id == "Any":
            return True
        found = definition(path, node.id)
        if found is not None and isinstance(found[1], ast.Assign | ast.AnnAssign):
            value = found[1].value
            if value is not None and says_any(found[0], value, depth - 1):
                return True
    return False


def public() -> dict[str, tuple[Path, Definition]]:
    """Everything that users import, by name."""
    doors = [MODULES[name] for name in DOORS]
    doors += [path for path in FILES if path.parent == PACKAGE / "integrations"]
    found = {
        f"{path.relative_to(PACKAGE)}:{name}": definition(path, name)
        for path in doors
        for name in exported(path)
    }
    return {name: each for name, each in found.items() if each is not None}


def test_public_signatures_say_no_any() -> None:
    things = public()
    assert len(things) > 120  # the walk finds what there is
    offenders = {
        f"{place(path, annotation)}: {ast.unparse(annotation)} ({name})"
        for name, each in things.items()
        for path, annotation in annotations(*each)
        if says_any(path, annotation)
    }
    report(
        sorted(offenders),
        "Public signatures say no Any:",
        "say what it is: Scalar, Json, Config, object where it is checked, a TypedDict for options.",
    )


def test_the_walk_sees_aliases_texts_and_parents() -> None:
    files = MODULES["scrimp.formats.toml_reading"], MODULES["scrimp.json_values"]
    assert says_any(files[0], ast.parse("list[Entries]", mode="eval").body)
    assert says_any(files[0], ast.parse("'dict[str, Any]'", mode="eval").body)
    assert not says_any(files[1], ast.parse("Config | JsonObject", mode="eval").body)
    found = definition(MODULES["scrimp"], "Float")
    assert found is not None
    assert {path.name for path, _ in annotations(*found)} == {
        "parameter.py",
        "parameter_contract.py",
    }


def test_options_are_those_of_what_they_go_to() -> None:
    """The typed options of `minimize` and `select_checkpoint` keep up with their targets."""
    own = {"self", "objective", "n_trials"}
    assert set(OptimizeOptions.__annotations__) == (
        set(inspect.signature(scrimp.Study.optimize).parameters) - own
    )
    targets = (scrimp.create_selection, scrimp.Selection.run)
    takes = {name for target in targets for name in inspect.signature(target).parameters}
    own = {"self", "evaluate", "checkpoints", "tasks", "share", "answers", "seed", "ending"}
    assert set(SelectionOptions.__annotations__) == takes - own
