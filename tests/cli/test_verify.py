"""Damage is named, copies are made, and one bad study hides no other."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.history.events import Enqueued, TrialAdded


@pytest.fixture
def three(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/three.db"
    for name in ("a", "b", "c"):
        study = scrimp.create_study(
            name, scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
        )
        study.optimize(lambda trial: trial.params["x"], n_trials=2)
    return url


def damage(url: str, event: str = "'{'") -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(f"UPDATE events SET event = {event} WHERE study = 2 AND position = 3")
    connection.close()


def test_whole_logs(three: str, run: Callable[..., Any]) -> None:
    done = run("verify", "--storage", three)
    assert (
        done.exit_code == 0 and "3 of 3 studies" in done.stdout and "2 trials, whole" in done.stdout
    )
    rows = json.loads(run("verify", "a", "--storage", three, "--json").stdout)
    assert [row["name"] for row in rows] == ["a"] and rows[0]["trials"] == 2


@pytest.mark.parametrize("event", ["'{'", "replace(event, '0', '1')"])
def test_one_bad_study_hides_no_other(three: str, run: Callable[..., Any], event: str) -> None:
    damage(three, event)
    listed = run("studies", "--storage", three)
    assert listed.exit_code == 1 and "event 3 of study 'b'" in listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["a", "c"]
    assert [
        row["name"] for row in json.loads(run("studies", "--storage", three, "--json").stdout)
    ] == ["a", "c"]
    verified = run("verify", "--storage", three)
    assert (
        verified.exit_code == 1
        and "b: DAMAGED: event 3" in verified.stdout
        and "2 of 3" in verified.stdout
    )
    assert run("show", "a", "--storage", three).exit_code == 0


def test_verifying_lists_what_does_not_count(three: str, run: Callable[..., Any]) -> None:
    study = scrimp.load_study("b", storage=three)
    study._ledger.append(
        [Enqueued(config={"x": "0; id\x1b[2J"}), TrialAdded(trial=2, config={}, tag={"slot": 1})]
    )
    done = run("verify", "b", "--storage", three)
    assert done.exit_code == 0 and "whole" in done.stdout and "\x1b" not in done.stdout
    assert "does not fit the space" in done.stdout and "has a slot and no bracket" in done.stdout
    (row,) = json.loads(run("verify", "b", "--storage", three, "--json").stdout)
    assert len(row["ignored"]) == 2 and not row["damage"]


def test_backup_and_restore(three: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    target = f"journal:///{tmp_path}/copies"
    events = len(scrimp.load_study("a", storage=three).history.events)
    assert f"a: {events} events added" in run("backup", target, "--storage", three).stdout
    study = scrimp.load_study("a", storage=three)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    again = run("backup", target, "a", "b", "--storage", three).stdout
    assert "b: 0 events added" in again and "a: 0" not in again
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert run("backup", restored, "--storage", target).exit_code == 0
    copy = scrimp.load_study("a", storage=restored)
    assert copy.best_value == study.best_value and list(copy.history.events) == list(
        study.history.events
    )
    copy.optimize(lambda trial: trial.params["x"], n_trials=5)
    assert len(copy.trials) == 5


def test_a_backup_says_what_it_could_not_copy(
    three: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    damage(three)
    done = run("backup", f"sqlite:///{tmp_path}/copy.db", "--storage", three)
    assert done.exit_code == 1 and "b: event 3" in done.stderr
    assert scrimp.studies(f"sqlite:///{tmp_path}/copy.db") == ["a", "c"]
