"""scrimp note: written, shown, removed; bad input is refused."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError


def test_notes_and_attributes_of_trials_and_studies(small: str, run: Callable[..., Any]) -> None:
    text = run(
        "note",
        "small",
        "1",
        "--text",
        "odd",
        "--set",
        "host=a100",
        "--set",
        "n=[1, 2]",
        "--storage",
        small,
    )
    assert text.stdout == "note: odd\nhost = a100\nn = [1, 2]\n"
    trial = scrimp.load_study("small", storage=small).trials[1]
    assert trial.note == "odd" and trial.user_attrs == {"host": "a100", "n": [1, 2]}
    run("note", "small", "--set", "by=ann", "--storage", small)
    shown = json.loads(run("note", "small", "--storage", small, "--json").stdout)
    assert shown == {"note": "", "user_attrs": {"by": "ann"}}
    removed = run("note", "small", "1", "--text", "", "--unset", "host", "--storage", small).stdout
    assert removed == "no note\nn = [1, 2]\n"


@pytest.mark.parametrize("arguments", [["--set", "host"], ["99", "--text", "x"]])
def test_bad_input(small: str, run: Callable[..., Any], arguments: list[str]) -> None:
    with pytest.raises(StudyError, match=r"name=value|no trial 99"):
        run("note", "small", *arguments, "--storage", small)
