"""The form of every event on disk, letter by letter: logs written today must be readable for
ever."""

import ast

import msgspec
import pytest

from scrimp.study_log.decision_record import DecisionRecord, Queued
from scrimp.study_log.events import (
    Advised,
    Annotated,
    BudgetGranted,
    CheckpointsRemoved,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    Retried,
    SourceAttached,
    StudyChanged,
    StudyCreated,
    TrialAdded,
    ended_event,
)
from scrimp.study_log.limits import Totals
from tests.syntax_trees import dotted, folder, module_name, nodes, place

FORMS = [
    (
        StudyCreated(
            name="a",
            problem={"metric": "x"},
            method={"name": "gp"},
            versions={"numpy": "2"},
            time=1.5,
        ),
        '{"event":"study_created","name":"a","problem":{"metric":"x"},"method":{"name":"gp"},"versions":{"numpy":"2"},"time":1.5}',
    ),
    (StudyChanged(totals=Totals(n_trials=3)), '{"event":"study_changed","totals":{"n_trials":3}}'),
    (
        SourceAttached(study="b", length=4, digest="ff"),
        '{"event":"source_attached","study":"b","length":4,"digest":"ff"}',
    ),
    (Enqueued(config={"lr": 0.1}), '{"event":"enqueued","config":{"lr":0.1}}'),
    (
        TrialAdded(trial=1, config={}, tag={"bracket": 0}, continue_from=0, enqueued=True),
        '{"event":"trial_added","trial":1,"config":{},"tag":{"bracket":0},"continue_from":0,"enqueued":true}',
    ),
    (
        BudgetGranted(trial=0, budget=3.0, attempt=2, worker="w"),
        '{"event":"budget_granted","trial":0,"budget":3.0,"attempt":2,"worker":"w"}',
    ),
    (
        Reported(trial=0, step=1.0, metrics={"x": 0.5, "y": None}, stderr={"x": 0.1}, cost=2.0),
        '{"event":"reported","trial":0,"step":1.0,"metrics":{"x":0.5,"y":null},"stderr":{"x":0.1},"cost":2.0}',
    ),
    (
        Ended(trial=0, status="failed", message="no"),
        '{"event":"ended","trial":0,"status":"failed","message":"no"}',
    ),
    (
        Advised(configs=({"x": 1},), by="ann", why="so"),
        '{"event":"advised","configs":[{"x":1}],"by":"ann","why":"so"}',
    ),
    (
        Lost(trial=0, attempt=2, message="gone"),
        '{"event":"lost","trial":0,"attempt":2,"message":"gone"}',
    ),
    (Retried(trial=0), '{"event":"retried","trial":0}'),
    (
        CheckpointsRemoved(trial=3, size=1024),
        '{"event":"checkpoints_removed","trial":3,"size":1024}',
    ),
    (
        Decided(decision=2, seen=9, record=DecisionRecord(reason=Queued(), own={"k": 1})),
        '{"event":"decided","decision":2,"seen":9,"record":{"reason":{"why":"queued"},"own":{"k":1}}}',
    ),
    (
        Annotated(trial=0, attributes={"host": "a"}, note="x"),
        '{"event":"annotated","trial":0,"attributes":{"host":"a"},"note":"x"}',
    ),
]


@pytest.mark.parametrize(("event", "text"), FORMS, ids=lambda value: type(value).__name__)
def test_form(event: Event, text: str) -> None:
    assert msgspec.json.encode(event).decode() == text
    assert msgspec.json.decode(text, type=Event) == event


def test_every_kind_is_listed() -> None:
    assert {type(event) for event, _ in FORMS} == set(Event.__args__)


def test_events_cannot_change() -> None:
    with pytest.raises(AttributeError):
        Lost(trial=0).trial = 1  # type: ignore[misc]


def test_defaults_are_not_shared() -> None:
    one, other = TrialAdded(trial=0, config={}), TrialAdded(trial=1, config={})
    one.tag["x"] = 1
    assert other.tag == {}


def test_one_function_builds_the_end_of_a_trial() -> None:
    """Messages are cut in one place; `Ended(...)` in a match statement only reads."""
    built = [
        place(path, node)
        for path, node in nodes(ast.Call)
        if isinstance(node, ast.Call)
        and dotted(node.func) == "Ended"
        and folder(module_name(path)) != "testing"
    ]
    assert len(built) == 1 and built[0].startswith("scrimp/study_log/events.py"), built
    ended = ended_event(3, 2, "failed", "x" * 100_000, 1.0)
    assert (ended.trial, ended.attempt, ended.status) == (3, 2, "failed")
    assert len(ended.message) <= 20_000 and "characters left out" in ended.message
