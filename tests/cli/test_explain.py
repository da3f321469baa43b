"""scrimp explain, for people and for programs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scrimp


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


def test_several_metrics_without_a_number_explain_the_knee(
    tmp_path: Path, run: Callable[..., Any]
) -> None:
    url = f"sqlite:///{tmp_path}/two.db"
    study = scrimp.create_study(
        "two",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "seconds": "minimize"},
        method="random",
        storage=url,
        seed=0,
    )
    for error, seconds in ((0.0, 1.0), (0.1, 0.1), (1.0, 0.0)):
        study.tell(study.ask(), {"error": error, "seconds": seconds})
    assert study.explain().trial == study.knee[0].id == 1
    told = run("explain", "two", "--storage", url).stdout
    assert told.startswith("Trial 1:") and "on the front, at its knee" in told
    assert "knee" not in study.explain(0).headline and "knee" in run("explain", "--help").stdout
