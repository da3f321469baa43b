"""scrimp explain, for people and for programs."""

import json
from collections.abc import Callable
from typing import Any


def test_words_and_json(small: str, run: Callable[..., Any]) -> None:
    short = run("explain", "small", "1", "--storage", small).stdout
    assert "It was drawn at random." in short and "(1 decision about it: --details tells" in short
    assert "rested on" not in short
    text = run("explain", "small", "1", "--details", "--storage", small).stdout
    assert (
        text.startswith("Trial 1: completed, error 0.2; rank 1 of 3\n")
        and "It rested on 1 report of 1 trial;" in text
    )
    record = json.loads(run("explain", "small", "1", "--storage", small, "--json").stdout)
    assert (
        record["trial"] == 1
        and record["decisions"][0]["reports_seen"] == 1
        and record["method"] == "random"
    )
