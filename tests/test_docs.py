"""Every Python block of the README and the documentation runs as it stands.

The blocks of a page run in order, in one fresh namespace and an empty directory. A block that needs
optional data or much time is fenced as ```python no-run: it must still be valid Python, and no page
may consist of such blocks alone. A block with a title, ```python title="train.py", is a file: it is
there for the blocks after it, and a study file must be right.
"""

import os
import pydoc
import re
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.formats.study_file import read_study_file
from scrimp.gp.budget_priors import RESOURCE_KERNELS
from scrimp.methods.own_methods import OWN

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


OUTPUT = re.compile(
    r"<!-- output(?P<loose> roughly)?(?: of (?P<command>[^\n]+?))? -->\n+```\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
"""A printed output: of the block before, of the page's file (`python digits.py`), or of a command. With
``roughly``, numbers and chosen values may differ, as they do with several workers or other machines."""

WRITE = "SCRIMP_WRITE_OUTPUTS"
"""The variable with which the tests put today's outputs into the pages (`make outputs`)."""


class Printed(NamedTuple):
    """The output of the blocks of a page, by the line they begin on and by title."""

    by_line: dict[int, str]
    by_title: dict[str, str]

    def of(self, command: str | None, line: int) -> str:
        if command is None:
            return self.by_line[max(begun for begun in self.by_line if begun < line)]
        program, *words = command.split()
        if program == "python":
            return self.by_title[words[0]]
        assert program == "scrimp", command
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "100")
            return aligned(CliRunner().invoke(app, words, catch_exceptions=False).stdout)


def aligned(text: str) -> str:
    """Put the columns of a table below each other, as a terminal shows them."""
    rows = [line.split("\t") for line in text.splitlines() if "\t" in line]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(line.split("\t"), widths, strict=True))
        if "\t" in line
        else line
        for line in text.splitlines()
    ]
    return "\n".join(lines)


def openings(text: str) -> list[list[str]]:
    """The first two words of every line, without numbers and chosen values. Whether a choice had a
    runner-up depends on those."""
    plain = re.sub(r"=\S+|'\w+'|-?\d[\d.e+-]*", " ", text)
    lines = [line.lower() for line in plain.splitlines() if not line.startswith("Runner-up: ")]
    return [re.findall(r"[a-z]+", line)[:2] for line in lines]


def check_outputs(page: Path, printed: Printed) -> None:
    """Compare every printed output of a page with today's, or put it into the page."""
    text = page.read_text(encoding="utf-8")
    changed, wrong = text, []
    for found in OUTPUT.finditer(text):
        now = printed.of(found["command"], text.count("\n", 0, found.start()))
        now = "".join(f"{line.rstrip()}\n" for line in now.splitlines())
        same = now.split() == found["text"].split()
        if found["loose"]:
            same = openings(now) == openings(found["text"])
        if not same:
            wrong.append(f"{found['command']} prints now:\n{now}and on the page:\n{found['text']}")
        changed = changed.replace(found[0], found[0].replace(found["text"], now))
    if os.environ.get(WRITE):
        page.write_text(changed, encoding="utf-8")
    else:
        assert not wrong, "\n".join([*wrong, "make outputs puts today's outputs into the pages"])


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=name_of)
def test_blocks_run(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
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
    printed = Printed({}, {})
    for block in run:
        capsys.readouterr()
        exec(compiled(page, block), namespace)
        printed.by_line[block.line] = printed.by_title[str(block.title)] = capsys.readouterr().out
    check_outputs(page, printed)
    for block in files(page):
        if "[space]" in block.code:
            read_study_file(tmp_path / str(block.title))


def test_outputs_that_differ_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(WRITE, raising=False)
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- output roughly -->\n```\nerror 0.5 with {'a': 3}\n```\n", encoding="utf-8"
    )
    today = "error 0.25 with {'a': 4, 'b': 'x'}\n"
    check_outputs(page, Printed({-1: today}, {}))
    check_outputs(page, Printed({-1: f"{today}Runner-up: a=3.\n"}, {}))
    with pytest.raises(AssertionError, match=r"prints now:\s+loss 0\.5"):
        check_outputs(page, Printed({-1: "loss 0.5 with {'a': 3}\n"}, {}))
    page.write_text("<!-- output -->\n```\nerror 0.5\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="make outputs"):
        check_outputs(page, Printed({-1: "error 0.25\n"}, {}))


SEARCHED = {
    "early stopping": "multi-fidelity.md",
    "pruning": "multi-fidelity.md",
    "multi-fidelity": "multi-fidelity.md",
    "bayesian optimization": "methods.md",
    "warm start": "transfer.md",
    "resume": "studies.md",
    "hyperparameter tuning": "index.md",
}
"""Words that people search for, and the page that a search must find: they stand in a heading, which
counts most."""


@pytest.mark.parametrize("words", SEARCHED)
def test_a_search_finds_the_right_page(words: str) -> None:
    text = (ROOT / "docs" / SEARCHED[words]).read_text(encoding="utf-8").lower()
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert words in "\n".join(headings)


def test_guides_come_before_the_reference_in_a_search() -> None:
    for page in (ROOT / "docs" / "api").glob("*.md"):
        assert page.read_text(encoding="utf-8").startswith("---\nsearch:\n  boost: 0.3\n---\n"), (
            page
        )


def test_the_readme_is_short_and_names_every_door() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") <= 90, "cut the README: details belong into docs/"
    for door in ("scrimp dashboard", "scrimp serve", "scrimp mcp", "study.advise", "scrimp import"):
        assert door in text, door


def test_every_method_and_resource_kernel_is_described() -> None:
    docs = ROOT / "docs"
    usual = (docs / "methods.md").read_text(encoding="utf-8").split("## Where we depart")[0]
    others = [docs / page for page in ("multi-fidelity.md", "transfer.md")]
    text = usual + "".join(page.read_text(encoding="utf-8") for page in others)
    missing = [name for name in OWN if not re.search(f"`{name}[`:]", text)]
    assert not missing, f"{missing}: add a row to methods.md, multi-fidelity.md or transfer.md"
    kernels = (docs / "curve-models.md").read_text(encoding="utf-8")
    kernels = kernels.split("## Resource kernels")[1].split("\n\n`exp-decay-sum` adds")[0]
    missing = [name for name in RESOURCE_KERNELS if f"`{name}`" not in kernels]
    assert not missing, f"{missing}: add the formula to 'Resource kernels' of curve-models.md"


PICTURES = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["PICTURES"]


def test_every_picture_is_drawn_by_a_function() -> None:
    """`make pictures` draws all of them; none is shown that it does not draw, or drawn for nothing."""
    shown = {
        name
        for page in PAGES
        for name in re.findall(r"pictures/([\w-]+\.\w+)", page.read_text(encoding="utf-8"))
    }
    drawn = {path.name for path in (ROOT / "docs" / "pictures").iterdir()}
    assert shown == set(PICTURES) == drawn


def drawn_places(svg: str) -> list[tuple[float, float]]:
    """The places of dots, and of the corners of lines and bars, in the panel they belong to."""
    number = r"(-?\d+(?:\.\d+)?)"
    places = re.findall(rf'class="point[^>]*?translate\({number},{number}\)', svg)
    for path in re.findall(r'class="js-line"[^>]*? d="([^"]+)"', svg):
        places += re.findall(rf"[ML]{number},{number}", path)
    places += re.findall(rf'<g class="point"><path d="M{number},{number}', svg)
    return [(float(x), float(y)) for x, y in places]


@pytest.mark.parametrize("name", sorted(name for name in PICTURES if name.endswith(".svg")))
def test_pictures_show_their_points(name: str) -> None:
    """A range that does not fit its axis leaves a picture blank: most points lie within it."""
    svg = (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8")
    if "main-svg" not in svg:  # the terminal
        assert svg.count("<text") > 5
        return
    width, height = map(float, re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
    found = drawn_places(svg)
    within = [(x, y) for x, y in found if -5 <= x <= width and -5 <= y <= height]
    assert found and len(within) >= 0.8 * len(found)


def test_the_reference_names_what_exists() -> None:
    """Every object of the reference can be found, and every figure is on its page."""
    named = {
        name: page.name
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    missing = {name: page for name, page in named.items() if pydoc.locate(name) is None}
    assert named and missing == {}
    assert {f"scrimp.plots.{name}" for name in scrimp.plots.__all__} <= named.keys()


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
