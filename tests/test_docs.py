"""Every Python block of the README and the documentation runs as it stands.

The blocks of a page run in order, in one fresh namespace and an empty directory. A block that needs
optional data or much time is fenced as ```python no-run: it must still be valid Python, and no page
may consist of such blocks alone. A block with a title, ```python title="train.py", is a file: it is
there for the blocks after it, and a study file must be right.
"""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scrimp.formats.study_file import read_study_file

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LABEL = re.compile(r'(python( no-run)?|toml)( title="(?P<title>[\w.-]+)")?')


class Block(NamedTuple):
    """A fenced block: what stands after the fence, the code, and the line of the page it begins
    on."""

    label: str
    code: str
    line: int

    @property
    def title(self) -> str | None:
        """The name of the file that it is."""
        found = LABEL.fullmatch(self.label)
        return found and found["title"]

    @property
    def runs(self) -> bool:
        return self.label.startswith("python") and "no-run" not in self.label


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def files(page: Path) -> list[Block]:
    """The blocks of a page that are files."""
    return [block for block in fenced(page) if block.title]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page whose label mentions Python."""
    return [block for block in fenced(page) if "py" in block.label]


def fenced(page: Path) -> list[Block]:
    """All fenced blocks of a page."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m["info"].strip(), m["code"], text.count("\n", 0, m.start("code")))
        for m in FENCE.finditer(text)
    ]


def compiled(page: Path, block: Block) -> Any:
    """The block as code whose line numbers are those of the page, so that a traceback points into
    it."""
    return compile("\n" * block.line + block.code, str(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_fences_are_known(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^```", text, re.MULTILINE)) % 2 == 0, (
        f"{page.name} has a fence that is never closed"
    )
    for block in blocks(page):
        assert LABEL.fullmatch(block.label), (
            f"{page.name}:{block.line}: fence {block.label!r}; use python, python no-run, with or "
            'without title="FILE"'
        )
        compiled(page, block)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRIMP_STORAGE", raising=False)
    namespace: dict[str, Any] = {"__name__": f"page_{page.stem}"}
    run = [block for block in blocks(page) if block.runs]
    assert run or files(page), (
        f"{page.name} has {len(blocks(page))} blocks marked no-run and none that runs; let one run"
    )
    for block in files(page):
        Path(str(block.title)).write_text(block.code, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for block in run:
        exec(compiled(page, block), namespace)
    for block in files(page):
        if "[space]" in block.code:
            read_study_file(tmp_path / str(block.title))


def test_the_documentation_is_found() -> None:
    """An empty list of pages would let everything pass."""
    assert sum(len(blocks(page)) for page in PAGES) >= 5


@pytest.mark.parametrize("name", ["reliability.md", "security.md"])
def test_every_line_that_names_a_test_has_it(name: str) -> None:
    """Faults and how they end, rights and what they do not allow: a promise without a test is
    none."""
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+?)`", text))
    sources = [*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "scrimp" / "testing").glob("*.py")]
    defined = {
        name
        for path in sources
        for name in re.findall(r"def (test_\w+)\(", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 45 and sorted(named - defined) == []


def test_every_promise_of_the_security_page_names_a_test() -> None:
    text = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    promises = [block for block in text.split("\n\n") if block.startswith("| cannot | test |")]
    lines = [line for block in promises for line in block.splitlines()[2:]]
    assert len(lines) > 30 and [line for line in lines if "`test_" not in line] == []
