"""The workflows call make targets that exist, and test every integration that the Makefile lists."""

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import scrimp

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_matrix_has_every_integration_of_the_makefile() -> None:
    text = (ROOT / ".github" / "workflows" / "integrations.yml").read_text(encoding="utf-8")
    block = text.split("        name:\n")[1].split("    runs-on:")[0]
    listed = re.findall(r"^INTEGRATIONS \+?:?= (.*)$", MAKEFILE, flags=re.MULTILINE)
    assert re.findall(r"- (\S+)", block) == " ".join(listed).split()


def test_every_target_exists() -> None:
    called = {
        target
        for path in WORKFLOWS
        for target in re.findall(r"run: make ([\w-]+)", path.read_text(encoding="utf-8"))
    }
    defined = set(re.findall(r"^([\w-]+)%?:", MAKEFILE, flags=re.MULTILINE))
    assert called and called <= defined


def test_actions_run_on_a_supported_node() -> None:
    """The first major versions that run on Node 24; older ones need Node 20, which is gone."""
    least = {"checkout": 5, "setup-python": 6, "upload-artifact": 6, "download-artifact": 7}
    used = [
        (name, int(version))
        for path in WORKFLOWS
        for name, version in re.findall(r"actions/([\w-]+)@v(\d+)", path.read_text("utf-8"))
    ]
    assert used and [name for name, version in used if version < least[name]] == []


def test_every_system_runs_what_works_there() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    job = text.split("  single-process:\n")[1].split("\n  lowest:")[0]
    assert "os: [ubuntu-latest, macos-latest, windows-latest]" in job
    assert "run: make test-single-process" in job
    folders = re.search(r"^SINGLE_PROCESS := (.*)$", MAKEFILE, re.MULTILINE)[1].split()  # type: ignore[index]
    assert [name for name in folders if not (ROOT / "tests" / name).is_dir()] == []


def release() -> Any:
    return runpy.run_path(str(ROOT / ".github" / "release.py"))


def test_a_tag_must_agree_with_the_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert release()["problems"](f"v{version}") == [] and scrimp.__version__ == version
    wrong = release()["problems"]("v99.0")
    assert len(wrong) == 2 and wrong[0] == f"pyproject.toml has version {version}, the tag is v99.0"
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert text.index("make check-tag") < text.index("make dist")


def test_links_of_the_package_page_are_absolute() -> None:
    text = release()["absolute"]((ROOT / "README.md").read_text("utf-8"), "o/scrimp", "v1")
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text)
    assert links and all(url.startswith("https://") for _, url in links)
    pictures = [url for mark, url in links if mark]
    assert pictures and all("raw.githubusercontent.com/o/scrimp/v1/docs" in url for url in pictures)
    project = release()["with_urls"]((ROOT / "pyproject.toml").read_text("utf-8"), "o/scrimp")
    assert (
        tomllib.loads(project)["project"]["urls"]["Issues"] == "https://github.com/o/scrimp/issues"
    )


def test_files_named_in_the_makefile_exist() -> None:
    named = re.findall(r"tests/[\w/]+\.py", MAKEFILE)
    assert named and [name for name in named if not (ROOT / name).is_file()] == []


def test_the_oldest_dependencies_are_tested_on_several_pythons() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    job = text.split("  lowest:\n")[1].split("\n  coverage:")[0]
    assert 'python: ["3.11", "3.12", "3.13"]' in job and "run: make test-lowest" in job
    assert 'python-version: "${{ matrix.python }}"' in job
