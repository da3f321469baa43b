"""Plain English, checked on the text of the package: how docstrings begin, words that users would
not use, comments inside expressions, constants whose names bound nothing.

Each rule is one test. A failure lists every offender as file:line and the remedy. `UNFINISHED` has
the packages that are still being rewritten; it may only shrink.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.syntax_trees import FILES, ROOT, folder, module_name, place, report, tree

UNFINISHED: set[str] = set()
"""Packages not yet rewritten ("" is the root)."""

OPENING = re.compile(
    r"(What|Which|How|Whether|Who|Whose|Whom|Where|When|Why|It|Its|They|Their|Those|He|Him|His|"
    r"Whoever|Whatever|Nobody|Somebody|Anybody|Everybody|So much|The same|All of it|Of|As)\b"
)
"""First words that make a docstring a riddle or a fragment."""

RETIRED = re.compile(
    r"\b(go(?:es|ing)? on|went on|gone on|mend(?:s|ed|ing)?|anew|lately|low is good|must hold|"
    r"acting together|nobody|whoever|whomever|somebody|anybody|everybody|"
    r"is none that|which there was not|let expect|made up his|such a one)\b",
    re.IGNORECASE,
)
"""Words that no user would use: resume, continue, fix, again, latest, lower is better, constraints,
interactions, no one, anyone."""

VAGUE = re.compile(
    r"_?(MOST|FEW|MANY|LEAST|ENOUGH|SMALL|TINY|LARGE|PATIENCE|LEAST_VARIANCE|LONGEST|SHORTEST|NEAR|"
    r"FAR|SHARE|PART|STEPS|TRIES|WIDTH|FLOOR|ROOM|EXACT|PLENTY|SURE|ALMOST|LITTLE|SLACK|BEHIND|"
    r"OFTEN|RARE|MORE|LESS|FIRST|LAST|HIGH|LOW|HALF|START)"
)
"""Names of constants that do not say what they bound."""


def finished() -> list[Path]:
    """The files that the rules hold for."""
    return [path for path in FILES if folder(module_name(path)) not in UNFINISHED]


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Docstrings of modules, classes and functions, and the texts below constants and fields."""
    for node in ast.walk(tree(path)):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for place_in_body, statement in enumerate(body or []):
            if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
                continue
            before = None if place_in_body == 0 else (body or [])[place_in_body - 1]
            if isinstance(statement.value.value, str) and (
                before is None or isinstance(before, ast.Assign | ast.AnnAssign)
            ):
                yield statement.lineno, statement.value.value.strip()


def test_docstrings_open_with_a_verb_or_a_noun() -> None:
    offenders = [
        f"{place(path, line)}: {text.splitlines()[0][:80]}"
        for path in finished()
        for line, text in docstrings(path)
        if OPENING.match(text)
    ]
    report(
        offenders,
        "A docstring opens with a verb or a noun phrase:",
        "say what the thing does or is: `Return the ...`, `Fit ...`, `The posterior of ...`.",
    )


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and texts of a file, line by line."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type in (
            tokenize.COMMENT,
            tokenize.STRING,
            getattr(tokenize, "FSTRING_MIDDLE", -1),
        ):
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line


def test_retired_words_are_gone() -> None:
    offenders = [
        f"{place(path, line)}: {found[0]!r} in {text.strip()[:80]}"
        for path in finished()
        for line, text in texts(path)
        if (found := RETIRED.search(text))
    ]
    report(
        offenders,
        "These words are retired:",
        "say resume or continue, fix, again, latest, lower is better, no one, anyone, constraints.",
    )


SHOWN = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")),
    *(path for kind in ("md", "py") for path in (ROOT / "docs").rglob(f"*.{kind}")),
    *(ROOT / "examples").rglob("*.py"),
    *(
        path
        for folder in ("dashboard", "service")
        for kind in ("html", "js")
        for path in (ROOT / "scrimp" / folder).rglob(f"*.{kind}")
    ),
]
"""Pages, templates, scripts of pages and examples: what users read."""


def test_retired_words_are_gone_from_what_users_read() -> None:
    offenders = [
        f"{path.relative_to(ROOT)}:{number}: {found[0]!r} in {line.strip()[:80]}"
        for path in SHOWN
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := RETIRED.search(line))
    ]
    assert len(SHOWN) > 60
    report(
        offenders,
        "These words are retired:",
        "say resume or continue, fix, again, latest, lower is better, no one, anyone, constraints.",
    )


def inner_comments(path: Path) -> Iterator[int]:
    """Lines with a comment that stands behind code inside brackets, not behind a whole element;
    marks for ruff and mypy are no comments."""
    depth, before = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            own_line = token.line.lstrip().startswith("#")
            if token.string.startswith(("# noqa", "# type:", "# fmt:")):
                continue
            if depth and not own_line and before != ",":
                yield token.start[0]
        elif token.type == tokenize.OP or token.string.strip():
            if token.type == tokenize.OP:
                depth += (token.string in "([{") - (token.string in ")]}")
            before = token.string


def test_comments_never_split_an_expression() -> None:
    offenders = [place(path, line) for path in finished() for line in inner_comments(path)]
    report(
        offenders,
        "A comment stands above its statement, never inside an expression:",
        "move it above the statement, or say it in the docstring.",
    )


def test_constants_say_what_they_bound() -> None:
    offenders = [
        f"{place(path, node)}: {target.id}"
        for path in finished()
        for node in tree(path).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and VAGUE.fullmatch(target.id)
    ]
    report(
        offenders,
        "These names of constants say nothing:",
        "name what is bounded and by what: MAX_METRICS_PER_REPORT, MIN_OBSERVATIONS_TO_FIT.",
    )
