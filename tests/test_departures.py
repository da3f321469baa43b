"""The table of departures: every text in it is a method that can be built, and every published
method has its row."""

import re
from pathlib import Path

import pytest

import scrimp
from scrimp.history.problem import Budget, Problem
from scrimp.selection.methods import METHODS, find_method
from scrimp.tuning.catalog import build_policy, method_names, parse_method, read_method

PAGE = Path(__file__).resolve().parents[1] / "docs" / "methods.md"
PROBLEM = Problem(
    scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Int(1, 9)), budget=Budget("epoch", 1, 27)
)
WITHOUT_A_PAPER = {"auto", "random", "grid", "sobol"}


def rows() -> list[list[str]]:
    section = PAGE.read_text(encoding="utf-8").split("## Where we depart from the papers", 1)[1]
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
    assert set(method_names()) - WITHOUT_A_PAPER <= named


def test_what_a_row_brings_back_belongs_to_its_method() -> None:
    for row in rows():
        names = set(re.findall(r"`([^`]+)`", row[0]))
        for text in re.findall(r"`([^`]+)`", row[-1]):
            assert read_method(text).name in names or names & {"gp", "freeze-thaw"}
