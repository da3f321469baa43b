"""Examples in docstrings are true: doctests pass, and code examples compile and use names, arguments
and imports that exist.

A code example is an indented block of a docstring that begins like Python. Formulas, tables and
layouts of files are not code; they do not begin with a call, a definition or an import.
"""

import ast
import builtins
import doctest
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

import pytest

import scrimp
from tests.syntax_trees import FILES, MODULES, module_name, place, report, tree

CODE = re.compile(
    r"(def |class |with |for |from \w|import |@)"
    r"|[A-Za-z_][\w.]*\((?!.*\) +[=~] )"
    r"|[A-Za-z_]\w*(?:, \w+)* = (?!(?:log|min|max|exp|sqrt|sha256)\()[A-Za-z_][\w.]+\("
)
"""First lines of code: a statement, a call, or an assignment from a call that is no formula."""

FOREIGN = re.compile(
    r"My\w*|Mine|(answers|build|evaluate|load|make_curves|objective|open_redis|save|train|train_epoch)"
    r"|CatBoostClassifier|ConfigurationSpace|SGDClassifier|SVC|TrainingArguments|Trainer|loguniform"
)
"""Functions and classes of the reader and of other libraries."""


def modules_with(text: str) -> list[str]:
    return [name for name, path in MODULES.items() if text in path.read_text(encoding="utf-8")]


def importable(name: str) -> ModuleType | None:
    """The module; None for an integration whose library is not installed, or does not work here."""
    try:
        return importlib.import_module(name)
    except Exception:
        if name.startswith("scrimp.integrations"):
            return None
        raise


@pytest.mark.parametrize("name", modules_with(">>>"))
def test_doctests_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importable(name)
    if module is None:
        pytest.skip(f"the library of {name} is not installed")
    failed = doctest.testmod(module).failed
    assert not failed, capsys.readouterr().out


@dataclass(frozen=True)
class Example:
    """A block of code in a docstring."""

    place: str
    module: str
    text: str


def examples() -> Iterator[Example]:
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                for text in code_blocks(ast.get_docstring(node) or ""):
                    yield Example(place(path, node), module_name(path), text)


def compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def code_blocks(docstring: str) -> Iterator[str]:
    """Fenced blocks of Python, and blocks that begin like it: indented ones after a blank line, and
    whole paragraphs, since the formatter removes indentation that all paragraphs share."""
    yield from re.findall(r"```python\n(.*?)```", docstring, re.DOTALL)
    for block in re.findall(r"(?:^|\n\n)((?:    .*(?:\n|$)|\n(?=    ))+)", docstring):
        text = textwrap.dedent(block).strip("\n")
        parts = [text] if compiles(text) else text.split("\n\n")
        yield from (part for part in parts if CODE.match(part))
    for paragraph in docstring.split("\n\n"):
        if CODE.match(paragraph) and compiles(paragraph):
            yield paragraph


def test_examples_compile() -> None:
    offenders = []
    for example in examples():
        try:
            ast.parse(example.text)
        except SyntaxError as error:
            offenders.append(f"{example.place}: {error.msg}: {(error.text or '').strip()[:80]}")
    report(
        offenders,
        "These examples in docstrings are not valid Python:",
        "fix the example, or write what is not code as a table or a sentence.",
    )


def assigned(code: ast.AST) -> set[str]:
    """Names that the example defines."""
    found = set()
    for node in ast.walk(code):
        match node:
            case ast.Name(ctx=ast.Store()):
                found.add(node.id)
            case ast.FunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.arg():
                found.add(node.arg)
            case ast.alias():
                found.add((node.asname or node.name).split(".")[0])
            case _:
                pass
    return found


MISSING = object()


def resolved(node: ast.expr, names: dict[str, object]) -> object:
    """The object that a dotted name stands for; MISSING if an attribute does not exist, None where
    that cannot be known."""
    match node:
        case ast.Name():
            return names.get(node.id)
        case ast.Attribute():
            owner = resolved(node.value, names)
            if isinstance(owner, ModuleType | type):
                if isinstance(owner, ModuleType) and not owner.__name__.startswith("scrimp"):
                    return None
                fields = getattr(owner, "__dataclass_fields__", {})
                return getattr(owner, node.attr, None if node.attr in fields else MISSING)
            return owner if owner is MISSING else None
    return None


def wrong_call(function: object, call: ast.Call) -> str:
    """The reason why the arguments of a call do not fit; empty if they may."""
    if not callable(function) or any(isinstance(one, ast.Starred) for one in call.args):
        return ""
    if any(keyword.arg is None for keyword in call.keywords):
        return ""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    given = [one for one in call.args if not (isinstance(one, ast.Constant) and one.value is ...)]
    try:
        bind = signature.bind if len(given) == len(call.args) else signature.bind_partial
        bind(*given, **{keyword.arg or "": None for keyword in call.keywords})
    except TypeError as error:
        return str(error)
    return ""


@cache
def homes() -> dict[str, str]:
    """The module of each function and class at the top of a module."""
    return {
        node.name: module_name(path)
        for path in FILES
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def found_name(name: str, names: dict[str, object]) -> object:
    """The object of that name in the module, or anywhere in the package; MISSING without one."""
    if name not in names and name in homes():
        module = importable(homes()[name])
        names[name] = None if module is None else getattr(module, name)
    return names.get(name, MISSING)


def faults(example: Example) -> Iterator[str]:
    module = importable(example.module)
    if module is None:
        return
    code = ast.parse(example.text)
    own = assigned(code)
    names: dict[str, object] = {**vars(builtins), "scrimp": scrimp, **vars(module)}
    names |= {name: getattr(scrimp, name) for name in scrimp.__all__}
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("scrimp"):
            source = importlib.import_module(node.module or "")
            for alias in node.names:
                if hasattr(source, alias.name):
                    names[alias.name] = getattr(source, alias.name)
                    own.discard(alias.name)
                else:
                    yield f"{node.module} has no {alias.name}"
    for name in own:
        names.pop(name, None)
    for node in ast.walk(code):
        if isinstance(node, ast.Attribute) and resolved(node, names) is MISSING:
            yield f"{ast.unparse(node)} does not exist"
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called in own or FOREIGN.fullmatch(called):
                continue
            if called and found_name(called, names) is MISSING:
                yield f"{called} is not defined"
                continue
            function = resolved(node.func, names)
            if function is not MISSING and (wrong := wrong_call(function, node)):
                yield f"{ast.unparse(node)[:60]}: {wrong}"


def test_examples_use_what_exists() -> None:
    offenders = [
        f"{example.place}: {fault}"
        for example in examples()
        if compiles(example.text)
        for fault in faults(example)
    ]
    report(
        offenders,
        "These examples in docstrings use names or arguments that do not exist:",
        "fix the example; names of the reader and of other libraries are in FOREIGN.",
    )
