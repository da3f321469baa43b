"""Events as lines of JSON: nothing changes on the way, and broken lines are named."""

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.errors import StorageError
from scrimp.storage.event_json import StoredLine, check_chain, decode, decode_text, encode, link
from scrimp.study_log.events import Enqueued, Lost, Reported, StudyChanged, TrialAdded
from scrimp.study_log.limits import Placement, Totals
from scrimp.testing.storages import EVERY_KIND, first_event

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
    assert encode([Lost(trial=3)]) == ['1 {"event":"lost","trial":3}']
    assert encode([]) == [] == decode([], "s")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '{"event":"lost","trial":3}',
        '1 {"event":"unheard_of"}',
        '1 {"event":"lost"}',
        '1 {"event":"lost","trial":"x"}',
        "x {}",
        "\x00" * 40,
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    good = encode([Lost(trial=3)])
    with pytest.raises(StorageError, match="event 12 of study 'digits' cannot be read"):
        decode([*good, *good, line, *good], "digits", start=10)


def test_a_line_of_a_newer_format_is_recognised() -> None:
    with pytest.raises(StorageError, match="format 7, written by a newer scrimp; this one reads"):
        decode(['7 {"event":"lost","trial":3}'], "digits")


def test_extra_fields_of_a_later_minor_change_are_ignored() -> None:
    assert decode(['1 {"event":"lost","trial":3,"why":"new field"}'], "s") == [Lost(trial=3)]


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


@pytest.mark.parametrize("before", [[], ['1 {"event":"lost","trial":3}']])
def test_a_line_that_is_nested_too_deeply_is_named(before: list[str]) -> None:
    depth = 1_000_000
    line = f'1 {{"event":"annotated","attributes":{{"a":{"[" * depth}{"]" * depth}}}}}'
    with pytest.raises(StorageError, match=f"event {7 + len(before)} of study 's' cannot be read"):
        decode([*before, line], "s", start=7)


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
        decode([f'1 {{"event":"study_changed",{changes}}}'], "s", start=7)


@pytest.mark.parametrize(
    "record", ['{"fit":{"loss":5}}', '{"reason":"first design"}', '{"curves":{"theta":3}}', "[1]"]
)
def test_records_of_another_type_are_named_where_they_are_read(record: str) -> None:
    with pytest.raises(StorageError, match="event 7 of study 's' cannot be read"):
        decode([f'1 {{"event":"decided","decision":0,"seen":1,"record":{record}}}'], "s", start=7)


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
    lines = [StoredLine('7 {"event":"lost","trial":3}'), StoredLine('1 {"event":"lost","trial":4}')]
    assert encode(lines) == lines


def chained(texts: list[bytes]) -> list[tuple[bytes, bytes]]:
    rows: list[tuple[bytes, bytes]] = []
    before = None
    for text in texts:
        before = link(before, text)
        rows.append((text, before))
    return rows


def test_the_formula() -> None:
    first = sha256(b"a").digest()[:16]
    assert link(None, b"a") == first
    assert link(first, b"b") == sha256(first + b"b").digest()[:16]


def test_rows_as_stored_pass() -> None:
    check_chain(chained([b"a", b"b", b"c"]), "s")
    check_chain([], "s")


@pytest.mark.parametrize(
    ("damage", "position"),
    [
        (lambda rows: [rows[0], (b"x", rows[1][1]), rows[2]], 1),
        (lambda rows: [rows[0], rows[2]], 1),
        (lambda rows: [rows[1], rows[0], rows[2]], 0),
        (lambda rows: [*rows, (b"new", b"")], 3),
        (lambda rows: [rows[0], (rows[1][0], b""), rows[2]], 1),
        (lambda rows: [(b"x", b""), *rows[1:]], 0),
    ],
)
def test_damage_is_named(damage, position: int) -> None:  # type: ignore[no-untyped-def]
    rows = damage(chained([b"a", b"b", b"c"]))
    with pytest.raises(StorageError, match=f"event {position} of study 's' is not what was stored"):
        check_chain(rows, "s")
