"""The page of methods: every text in the table of departures builds its method, every published
method has its row and its preset, every setting of a paper is explained."""

import re
from pathlib import Path

import pytest

import scrimp
from scrimp.acquisition.named_acquisitions import acquisition_settings
from scrimp.checkpoint_selection.methods import METHODS, find_method
from scrimp.checkpoint_selection.methods import PUBLISHED as PUBLISHED_SELECTIONS
from scrimp.methods.named_methods import build_policy, method_names, parse_method, read_method
from scrimp.methods.own_methods import OWN, PUBLISHED
from scrimp.methods.policy import Scheduled
from scrimp.plugins.settings import is_visible, settings_of
from scrimp.study_log.problem import Budget, Problem

PAGE = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
PROBLEM = Problem(
    scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Int(1, 9)), budget=Budget("epoch", 1, 27)
)
WITHOUT_A_PAPER = {"auto", "random", "grid", "sobol"}


def rows() -> list[list[str]]:
    return table("Where we depart from the papers")


def table(heading: str, page: Path = PAGE) -> list[list[str]]:
    """The rows of the tables below a heading of the page."""
    section = page.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip()[1:-1].split("|")] for line in lines]


TEXTS = [text for row in rows() for text in re.findall(r"`([^`]+)`", row[-1])]


@pytest.mark.parametrize("text", TEXTS)
def test_every_text_builds_its_method(text: str) -> None:
    method = read_method(text)
    if method.name in METHODS and method.name not in method_names():
        assert find_method(method.name, method.settings) != METHODS[method.name]
    else:
        build_policy(PROBLEM, parse_method(text))


def test_rows_are_whole_and_every_method_has_one() -> None:
    assert len(TEXTS) > 25 and all(len(row) == 5 for row in rows())
    named = {name for row in rows() for name in re.findall(r"`([^`]+)`", row[0])}
    # Pages and other tests register methods of their own in this process.
    missing = set(OWN) - WITHOUT_A_PAPER - named
    assert not missing, (
        f"{sorted(missing)}: add a row to 'Where we depart from the papers' of docs/methods.md, or the"
        " name to WITHOUT_A_PAPER of this file"
    )


def test_what_a_row_brings_back_belongs_to_its_method() -> None:
    for row in rows():
        names = set(re.findall(r"`([^`]+)`", row[0]))
        for text in re.findall(r"`([^`]+)`", row[-1]):
            assert read_method(text).name in names or names == {"freeze-thaw"}


def test_every_row_has_the_preset_of_its_methods() -> None:
    published = {name for name, found in PUBLISHED.items() if isinstance(found, dict)}
    published |= set(PUBLISHED_SELECTIONS)
    for row in rows():
        for name in re.findall(r"`([^`]+)`", row[0]):
            assert (f"`{name}:published`" in row[-1]) == (name in published), name


def settings_of_papers() -> dict[str, set[str]]:
    """Settings that lists leave out, with their defaults as text."""
    found: dict[str, set[str]] = {}
    for name in OWN:
        policy = build_policy(PROBLEM, parse_method(name))
        parts = [policy.scheduler, policy.suggester] if isinstance(policy, Scheduled) else [policy]
        for part in parts:
            for key, item in settings_of(type(part)).items():
                if not is_visible(item):
                    found.setdefault(key, set()).add(str(item.default).lower())
    return found


def test_every_setting_of_a_paper_is_explained_with_its_default() -> None:
    explained: dict[str, set[str]] = {}
    for names, defaults, *_ in table("Settings that restore papers"):
        for name, default in zip(names.split(","), defaults.split(","), strict=True):
            words = re.findall(r"[\w.-]+(?: draws)?", default)
            explained.setdefault(name.strip("` "), set()).update(words)
    wanted = settings_of_papers()
    hidden = set(acquisition_settings("ucb")) - set(acquisition_settings("ucb", visible=True))
    assert set(explained) == set(wanted) | hidden
    for name, defaults in wanted.items():
        for default in defaults - {"none"}:
            said = explained[name] | {f"{word}.0" for word in explained[name]}
            assert default in said or default.replace("1e-06", "1e-6") in said, (name, default)


def described(name: str) -> set[str]:
    """The settings of a method that the tables of the pages describe."""
    learning = PAGE.with_name("transfer.md")
    if name == "task-prior":
        steps = learning.read_text(encoding="utf-8").split("## The default, step by step\n")[1]
        said = re.findall(r"`([^`]+)`", steps.split("\n## ")[0])
        return set(re.findall(r"\w+", " ".join(said)))
    if name.startswith(("mobster", "sync-mobster", "hypertune", "dyhpo")):
        rows = table("Settings", PAGE.with_name("curve-models.md"))
    elif name in METHODS_OF_PAST:
        rows = table("Published methods", learning)
    elif name.startswith(("gp", "parego")):
        rows = table("Settings of the Gaussian-process methods")
    else:
        rows = [row for row in table("Settings of the other methods") if f"`{name}`" in row[2]]
    return {word for row in rows for word in re.findall(r"`(\w+)`", row[0])}


METHODS_OF_PAST = {name for name in OWN if "combine" in OWN[name].presets}


@pytest.mark.parametrize("name", sorted(set(OWN) - {"random", "sobol"}))
def test_every_setting_is_described(name: str) -> None:
    policy = build_policy(PROBLEM, parse_method(name))
    parts = [policy.scheduler, policy.suggester] if isinstance(policy, Scheduled) else [policy]
    shown = {
        key for part in parts for key, item in settings_of(type(part)).items() if is_visible(item)
    }
    if name == "asha-stopping":
        shown.remove("type")
    missing = shown - described(name)
    assert not missing, f"{name}: describe {sorted(missing)} in the tables of docs/methods.md"
