"""The workflows call make targets that exist, and test every integration that the Makefile lists."""

import re
from pathlib import Path

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


def test_files_named_in_the_makefile_exist() -> None:
    named = re.findall(r"tests/[\w/]+\.py", MAKEFILE)
    assert named and [name for name in named if not (ROOT / name).is_file()] == []


def test_the_oldest_dependencies_are_tested_on_several_pythons() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    job = text.split("  lowest:\n")[1].split("\n  coverage:")[0]
    assert 'python: ["3.11", "3.12", "3.13"]' in job and "run: make test-lowest" in job
    assert 'python-version: "${{ matrix.python }}"' in job
