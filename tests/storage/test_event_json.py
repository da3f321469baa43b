"""Events as lines of JSON: nothing changes on the way, formats may be mixed, broken lines are
named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.errors import StorageError
from scrimp.history.events import Ended, Enqueued, Lost, Reported, StudyChanged, TrialAdded
from scrimp.history.limits import Placement, Totals
from scrimp.storage.event_json import StoredLine, decode, decode_text, encode
from scrimp.testing.every_event import EVERY_KIND
from scrimp.testing.storages import first_event

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), plain, max_size=4), st.floats(allow_nan=False, allow_infinity=False)
)
def test_round_trip(config: dict[str, Any], time: float) -> None:
    event = TrialAdded(trial=0, config=config, tag=config, time=time)
    (line,) = encode([event])
    assert decode([line], "s") == [event] == decode([line.encode()], "s")
    assert "\n" not in line
    assert json.loads(line[2:])["config"] == config


def test_lines_are_plain_and_short() -> None:
    assert encode([Lost(trial=3)]) == ['2 {"event":"lost","trial":3}']
    assert encode([]) == [] == decode([], "s")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '{"event":"unheard_of"}',
        '{"event":"lost"}',
        '{"event":"lost","trial":"x"}',
        "x {}",
        "\x00" * 40,
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    good = encode([Lost(trial=3)])
    with pytest.raises(StorageError, match="event 12 of study 'digits' cannot be read"):
        decode([*good, *good, line, *good], "digits", start=10)


def test_a_line_of_a_newer_format_is_recognised() -> None:
    with pytest.raises(StorageError, match="event format 7, this scrimp reads 1 to 2"):
        decode(['7 {"event":"lost","trial":3}'], "digits")


def _renamed(record: dict[str, Any]) -> dict[str, Any]:
    """Format 1 called Ended.status 'state'."""
    return {("status" if key == "state" else key): value for key, value in record.items()}


def _loud(record: dict[str, Any]) -> dict[str, Any]:
    """Format 2 had small messages."""
    return {**record, "message": record["message"].upper()} if "message" in record else record


def test_old_formats_are_upgraded_and_may_be_mixed() -> None:
    upgrades = (_renamed, _loud)
    lines = [
        '{"event":"ended","trial":0,"state":"failed","message":"a"}',
        '2 {"event":"ended","trial":1,"status":"failed","message":"b"}',
        *encode([Ended(trial=2, status="failed", message="c")], upgrades),
    ]
    assert lines[2].startswith('3 {"event"')
    assert decode(lines, "s", 0, upgrades) == [
        Ended(trial=0, status="failed", message="A"),
        Ended(trial=1, status="failed", message="B"),
        Ended(trial=2, status="failed", message="c"),
    ]
    with pytest.raises(StorageError, match=r"event 0 .* event format 3, this scrimp reads 1 to 2"):
        decode(lines[2:], "s", 0, upgrades[:1])


def test_a_failing_upgrade_names_the_line() -> None:
    def broken(record: dict[str, Any]) -> dict[str, Any]:
        return {"event": record["gone"]}

    with pytest.raises(StorageError, match="event 5 of study 's'"):
        decode(['{"event":"lost","trial":3}'], "s", 5, (broken,))


def test_extra_fields_of_a_later_minor_change_are_ignored() -> None:
    assert decode(['{"event":"lost","trial":3,"why":"new field"}'], "s") == [Lost(trial=3)]


def test_defaults_are_left_out_and_come_back() -> None:
    for event in [first_event("x"), *EVERY_KIND]:
        (line,) = encode([event])
        assert decode([line], "s") == [event]
        if event.time == 0:
            assert '"time"' not in line


def test_deep_nesting_is_refused_not_crashing() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(StorageError, match="cannot be stored"):
        encode([Enqueued(config={"x": deep})])
    deep = []


def test_metrics_that_are_not_finite_are_null() -> None:
    (line,) = encode([Reported(trial=0, step=1, metrics={"a": float("nan"), "b": float("inf")})])
    assert json.loads(line[2:])["metrics"] == {"a": None, "b": None}


def test_lines_that_come_as_one_text() -> None:
    events = [Lost(trial=number) for number in range(3)]
    lines = encode(events)
    assert (
        decode_text("\n".join(lines), "s")
        == events
        == decode_text("\n".join(lines[:2]), "s") + events[2:]
    )
    for broken in ("", "7 {}", '{"event":"lost"', lines[0] + lines[0]):
        with pytest.raises(StorageError, match="event 6 of study 's' cannot be read"):
            decode_text("\n".join([lines[0], broken, lines[1]]), "s", 5)


@pytest.mark.parametrize(
    "changes",
    [
        '"totals":{"n_trials":"; rm -rf /"}',
        '"totals":{"n_trials":-1}',
        '"totals":{"n_trials":true}',
        '"totals":{"budget":0}',
        '"totals":{"budget":1e400}',
        '"totals":{"timeout":[1]}',
        '"totals":[1]',
        '"halt":"owned"',
        '"placement":{"checkpoints":{"a":1}}',
        '"placement":{"durable":"never"}',
        '"stop":{"share":"all"}',
        '"lifted":["everything"]',
    ],
)
def test_limits_of_another_type_are_named_where_they_are_read(changes: str) -> None:
    with pytest.raises(StorageError, match="event 7 of study 's' cannot be read"):
        decode([f'2 {{"event":"study_changed",{changes}}}'], "s", start=7)


@pytest.mark.parametrize(
    "notes", ['{"fit":{"loss":5}}', '{"reason":"first design"}', '{"curves":{"theta":3}}', "[1]"]
)
def test_notes_of_another_type_are_named_where_they_are_read(notes: str) -> None:
    with pytest.raises(StorageError, match="event 7 of study 's' cannot be read"):
        decode([f'2 {{"event":"noted","decision":0,"seen":1,"notes":{notes}}}'], "s", start=7)


def test_limits_of_another_type_are_not_written() -> None:
    wrong: Any = "; rm -rf /"
    for event in (
        StudyChanged(totals=Totals(n_trials=wrong)),
        StudyChanged(totals=Totals(budget=-1.0)),
        StudyChanged(halt=wrong),
        StudyChanged(placement=Placement(durable=wrong)),
    ):
        with pytest.raises(StorageError, match="the event StudyChanged cannot be stored"):
            encode([event])


def test_stored_lines_are_copied_as_they_are() -> None:
    lines = [StoredLine('{"event":"lost","trial":3}'), StoredLine('2 {"event":"lost","trial":4}')]
    assert encode(lines) == lines
