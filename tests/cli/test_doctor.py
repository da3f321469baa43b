"""The doctor says what is there, what is not, and what is wrong."""

import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest


def test_versions_and_storage(small: str, run: Callable[..., Any]) -> None:
    result = run("doctor", "--storage", small, "--json")
    found = {item["name"]: item for item in json.loads(result.stdout)}
    assert result.exit_code == 0 and found["numpy"] == {
        "name": "numpy",
        "state": "ok",
        "detail": version("numpy"),
    }
    assert (
        found["storage"]["detail"].endswith("with 1 study")
        and "blas" in found
        and "threads" in found
    )
    assert "ok      numpy" in run("doctor", "--storage", small).stdout


def test_a_storage_out_of_reach_is_wrong_and_secrets_stay_secret(run: Callable[..., Any]) -> None:
    result = run("doctor", "--storage", "mysql://ann:secret@host/db", "--json")
    found = {item["name"]: item for item in json.loads(result.stdout)}
    assert (
        result.exit_code == 1
        and found["storage"]["state"] == "wrong"
        and "secret" not in result.stdout
    )


def test_plugins_are_tried(
    run: Callable[..., Any], small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIMP_PLUGINS", "no_such_plugin,json")
    result = run("doctor", "--storage", small, "--json")
    found = {item["name"]: item for item in json.loads(result.stdout)}
    assert result.exit_code == 1 and found["plugin json"]["state"] == "ok"
    assert (
        found["plugin no_such_plugin"]["state"] == "wrong"
        and "install it" in found["plugin no_such_plugin"]["detail"]
    )


def test_what_computes_and_with_how_many_threads(run: Callable[..., Any], small: str) -> None:
    found = json.loads(run("doctor", "--storage", small, "--json").stdout)
    libraries = [item["detail"] for item in found if item["name"] == "blas"]
    (threads,) = [item["detail"] for item in found if item["name"] == "threads"]
    assert libraries and all("thread" in detail for detail in libraries)
    assert threads.startswith("1 thread for decisions, ")
