"""The files of the package as syntax trees, for the tests that hold it to its rules."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "scrimp"
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
    """The dotted names one import statement loads; submodules rather than their package where it
    names them."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    prefix = node.module or ""
    if node.level:
        package = module_name(path).split(".")
        package = package if path.name == "__init__.py" else package[:-1]
        prefix = ".".join(
            [*package[: len(package) - node.level + 1], *([node.module] if node.module else [])]
        )
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


def dotted(node: ast.AST) -> str:
    """'np.random.rand' for such an attribute, '' for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr}" if dotted(value) else ""
    return ""


def report(offenders: list[str], rule: str, remedy: str) -> None:
    """Fail with every offender, the rule and how to mend it."""
    assert not offenders, f"{rule}\n  " + "\n  ".join(sorted(offenders)) + f"\nRemedy: {remedy}"
