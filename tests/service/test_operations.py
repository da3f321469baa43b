"""Operations: shapes are checked, rights too, and the description says what there is."""

import json
import logging
import re
from typing import Any

import pytest

import scrimp
from scrimp.storage.http import HttpStorage
from tests.tools.served import Served

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_the_description_is_openapi(server: Served) -> None:
    status, page = server.ask("/api/openapi.json")
    assert status == 200 and page["openapi"].startswith("3.1")
    append = page["paths"]["/api/storage/append"]["post"]
    assert {part["name"] for part in append["parameters"]} == {"Idempotency-Key"}
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(page)))
    assert "Append" in named and named <= set(page["components"]["schemas"])
    read = page["paths"]["/api/storage/read"]["get"]["parameters"]
    assert {part["name"]: part["required"] for part in read} == {
        "study": True,
        "identity": True,
        "start": False,
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b'{"study": 3}',
        b'{"study": "s", "identity": "1", "events": [1]}',
        b'{"study": "s", "identity": "1", "events": [], "more": 1}',
        b'{"study": "s", "identity": "1", "events": [], "decision": 1e400}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_other_shapes_are_refused(server: Served, body: bytes) -> None:
    status, said = server.ask("/api/storage/append", server.token("own"), body or b"{}")
    assert status == 422 and said["error"] == "StudyError"


def test_a_body_that_is_nested_too_deeply_is_refused(server: Served) -> None:
    deep = b'{"study": "s", "params": {"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    status, said = server.ask("/api/enqueue", server.token("own"), deep)
    assert status == 422 and "recursion" in said["message"]


def test_changes_are_written_to_the_audit_log(
    server: Served, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="scrimp.audit")
    own = server.tokens.make("own", name="ann")[0]
    scrimp.create_study("s", SPACE, storage=HttpStorage(server.url, own))
    server.ask("/api/storage/names", "scrimp_00000000_x")
    worker = scrimp.load_study("s", storage=HttpStorage(server.url, server.token("work")))
    with pytest.raises(scrimp.errors.StorageError):
        worker.pause()
    entries: list[dict[str, Any]] = [json.loads(record.getMessage()) for record in caplog.records]
    seen = [(entry.get("action"), entry["result"][:11]) for entry in entries]
    assert seen == [("create", "done"), (None, "wrong token"), ("append", "a token wit")]
    assert entries[0]["name"] == "ann" and entries[0]["study"] == "s"
    assert entries[0]["address"] == "127.0.0.1" and own not in caplog.text
