"""Operations on logs: pages, repeated batches, and hostile requests."""

from typing import Any

import pytest

from scrimp.service import storage_operations
from scrimp.storage.event_json import encode
from scrimp.testing.storages import first_event, report_of
from tests.tools.served import Served


@pytest.fixture
def log(server: Served) -> dict[str, Any]:
    made = {"study": "digits", "events": encode([first_event("digits")])}
    status, said = server.ask("/api/storage/create", server.token("own"), made)
    assert status == 200
    return {"study": "digits", "identity": said["identity"]}


def test_a_batch_counts_once_by_its_key_and_token(server: Served, log: dict[str, Any]) -> None:
    own, body = server.token("own"), {**log, "events": encode([report_of(0)])}
    for _ in range(3):
        said = server.ask("/api/storage/append", own, body, **{"idempotency-key": "one"})
        assert said == (200, {"length": 2, "events": [], "turn": ""})
    assert server.ask("/api/storage/append", own, body)[1]["length"] == 3
    other = server.token("own")
    said = server.ask("/api/storage/append", other, body, **{"idempotency-key": "one"})
    assert said[1]["length"] == 4


def test_a_long_log_comes_page_by_page(
    server: Served, log: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = server.token("own")
    events = encode([report_of(number) for number in range(6000)])
    assert server.ask("/api/storage/append", own, {**log, "events": events})[0] == 200
    query = f"/api/storage/read?study=digits&identity={log['identity']}&start="
    _, first = server.ask(query + "0", own)
    _, second = server.ask(query + "5000", own)
    assert (len(first["events"]), len(second["events"])) == (5000, 1001)
    assert first["length"] == second["length"] == 6001
    assert [*first["events"], *second["events"]][1:] == events
    assert server.ask(query + "9999", own)[1] == {"length": 6001, "events": [], "turn": ""}
    assert server.ask(query + "-1", own)[0] == 503
    monkeypatch.setattr(storage_operations, "MAX_BATCH_EVENTS", 100)
    status, said = server.ask("/api/storage/append", own, {**log, "events": events})
    assert status == 503 and "at most 100" in said["message"]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "rubbish",
        "2 {}",
        '1 {"event":"lost"}',
        '1 {"event":"lost","trial":"0"}',
        '1 {"event":"reported","trial":0,"step":NaN,"metrics":{}}',
        '1 {"event":"lost","trial":0}\n1 {"event":"lost","trial":0}',
    ],
)
def test_lines_that_are_no_events_are_refused(
    server: Served, log: dict[str, Any], line: str
) -> None:
    own = server.token("own")
    status, _ = server.ask("/api/storage/append", own, {**log, "events": [line]})
    assert status == 503
    query = f"/api/storage/read?study=digits&identity={log['identity']}"
    assert server.ask(query, own)[1]["length"] == 1


def test_a_line_is_stored_as_scrimp_writes_it(server: Served, log: dict[str, Any]) -> None:
    """A line break inside of a line would look like two lines to a store."""
    own, line = server.token("own"), '1 {"event":\n"lost",  "trial":0, "unknown": 1}'
    assert server.ask("/api/storage/append", own, {**log, "events": [line]})[0] == 200
    query = f"/api/storage/read?study=digits&identity={log['identity']}&start=1"
    assert server.ask(query, own)[1]["events"] == ['1 {"event":"lost","trial":0}']


def test_forged_ids_reach_nothing(server: Served, log: dict[str, Any]) -> None:
    own = server.token("own")
    for forged in ({"identity": "2"}, {"identity": "1 OR 1=1"}, {"identity": ""}, {"study": "x"}):
        status, said = server.ask("/api/storage/append", own, {**log, **forged, "events": []})
        assert status == 400 and "was deleted" in said["message"]


def test_a_study_begins_as_one(server: Served) -> None:
    body = {"study": "s", "events": encode([report_of(0)])}
    assert server.ask("/api/storage/create", server.token("own"), body)[0] == 503
