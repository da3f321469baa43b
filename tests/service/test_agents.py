"""Agents use studies by the package's own client: over stdio, over HTTP, and in this process."""

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'scrimp[mcp]'")

from mcp import Client
from mcp.client.stdio import StdioServerParameters

import scrimp
from scrimp.service import agents
from scrimp.service.agents import MAX_ANSWER_CHARACTERS, READ_TOOLS, WRITE_TOOLS, agent_server

SPACE = {
    "lr": {"type": "float", "low": 1e-5, "high": 1.0, "log": True},
    "layers": {"type": "int", "low": 1, "high": 6},
    "kind": {"type": "categorical", "choices": ["a", "b"]},
}


def loss(params: dict[str, Any]) -> float:
    import math

    return (math.log10(params["lr"]) + 3) ** 2 + 0.1 * (params["layers"] - 3) ** 2


def using(server: Any, talk: Callable[[Any], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        async with Client(server) as client:
            return await talk(client)

    return asyncio.run(asyncio.wait_for(session(), 120))


async def call(client: Any, tool: str, **arguments: Any) -> Any:
    found = await client.call_tool(tool, arguments)
    text = found.content[0].text
    if found.is_error:
        raise RuntimeError(text)
    return json.loads(text)


async def tune(client: Any, trials: int) -> dict[str, Any]:
    """A scripted agent: it creates a study, tunes until little is left, and explains the answer."""
    await call(client, "create_study", study="agent", space=SPACE, metric="loss", method="gp")
    await call(
        client,
        "propose",
        study="agent",
        params=[{"lr": 0.01, "layers": 2, "kind": "a"}],
        why="usual",
    )
    stopped: dict[str, Any] = {}
    for _ in range(trials):
        asked = await call(client, "ask", study="agent")
        value = loss(asked["params"])
        await call(client, "tell", study="agent", trial=asked["trial"], value=value)
        stopped = await call(client, "should_stop", study="agent", gain=0.05)
        if stopped["stop"]:
            break
    summary = await call(client, "summarize", study="agent")
    explained = await call(client, "explain", study="agent")
    unsure = await call(client, "uncertain", study="agent")
    return {"stop": stopped, "summary": summary, "explained": explained, "unsure": unsure}


def check_tuned(found: dict[str, Any], url: str) -> None:
    study = scrimp.load_study("agent", storage=url)
    assert found["summary"]["best"]["value"] == pytest.approx(study.best_value)
    assert found["summary"]["trials_in_all"] == len(study.trials)
    tried = [trial.id for trial in study.trials if trial.params["lr"] == 0.01]
    assert 'agent proposed it, with the reason "usual"' in study.explain(tried[0]).details
    assert found["summary"]["advisers"][0]["tried"] == 1
    assert found["explained"]["details"] == study.explain().details
    assert found["unsure"]["verdict"].startswith("Best: trial")
    assert "gain_left" in found["stop"]


def test_an_agent_tunes_from_scratch_over_stdio(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"
    arguments = ["-m", "scrimp", "mcp", "--storage", url, "--write"]
    server = StdioServerParameters(command=sys.executable, args=arguments)
    check_tuned(using(server, lambda client: tune(client, 12)), url)


def status_over_http(port: int, **headers: str) -> int:
    """The status of a request of the protocol with these headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", b"{}", kinds | headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_over_http_it_answers_this_machine_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"
    using(agent_server(url, write=True), lambda client: tune(client, 8))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "scrimp", "mcp", "--storage", url, "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            listed = using(
                f"http://127.0.0.1:{port}/mcp", lambda client: call(client, "list_studies")
            )
            foreign = [
                status_over_http(port, **{name: value})
                for name, value in (("Host", "evil.example"), ("Origin", "http://evil.example"))
            ]
        finally:
            process.terminate()
    # A name that leads here, and a page of another site in this user's browser.
    assert foreign == [421, 403]
    (row,) = listed["studies"]
    assert (row["name"], row["metric"], listed["in_all"]) == ("agent", "loss", 1)
    assert row["best"] == pytest.approx(scrimp.load_study("agent", storage=url).best_value)


def test_a_study_that_was_deleted_and_made_again_is_read_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"

    async def talk(client: Any) -> None:
        for trials in (2, 0):
            await call(client, "create_study", study="s", space=SPACE, method="random")
            assert (await call(client, "summarize", study="s"))["trials_in_all"] == 0
            for _ in range(trials):
                await call(client, "ask", study="s")
            scrimp.delete_study("s", storage=url)

    using(agent_server(url, write=True), talk)


def test_errors_are_bounded(tmp_path: Path) -> None:
    async def talk(client: Any) -> None:
        with pytest.raises(RuntimeError) as error:
            await call(client, "summarize", study="x" * 100_000)
        assert len(str(error.value)) < MAX_ANSWER_CHARACTERS + 100

    using(agent_server(f"sqlite:///{tmp_path}/agents.db"), talk)


def test_nothing_can_be_changed_without_write(tmp_path: Path) -> None:
    async def talk(client: Any) -> None:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(READ_TOOLS)
        assert all(tool.annotations.read_only_hint for tool in tools)
        for name in WRITE_TOOLS:
            with pytest.raises(Exception, match=name):
                await call(client, name, study="agent")

    using(agent_server(f"sqlite:///{tmp_path}/agents.db"), talk)


def test_errors_name_the_value_and_the_remedy(tmp_path: Path) -> None:
    async def talk(client: Any) -> None:
        for tool, arguments, words in (
            ("summarize", {"study": "none"}, "'none'"),
            ("create_study", {"study": "s", "space": {"x": {"type": "flat"}}}, "type 'flat'"),
            (
                "create_study",
                {"study": "s", "space": SPACE, "direction": "up"},
                "'minimize' or 'maximize'",
            ),
            (
                "create_study",
                {"study": "s", "space": SPACE, "budget": [1.0]},
                "budget",
            ),
            ("should_stop", {"study": "small", "gain": 0.0}, "gain is 0"),
            ("predict", {"study": "small", "configs": []}, "0 configurations"),
            ("tell", {"study": "small", "trial": 0}, "a value or metrics"),
            ("propose", {"study": "small", "params": [{"lr": 7.0}], "why": ""}, "7"),
        ):
            with pytest.raises(RuntimeError, match=words):
                await call(client, tool, **arguments)

    url = f"sqlite:///{tmp_path}/agents.db"
    space = scrimp.Space(lr=scrimp.Float(1e-5, 1.0, log=True))
    scrimp.create_study("small", space, method="random", storage=url).ask()
    using(agent_server(url, write=True), talk)


def test_answers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"
    study = scrimp.create_study(
        "long", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    for _ in range(60):
        study.tell(study.ask(), 1.0)

    async def talk(client: Any) -> tuple[Any, Any]:
        whole = await call(client, "summarize", study="long", trials=1000)
        monkeypatch.setattr(agents, "MAX_ANSWER_CHARACTERS", 500)
        return whole, await call(client, "summarize", study="long")

    whole, cut = using(agent_server(url), talk)
    assert len(whole["trials"]) == 50 and len(json.dumps(whole)) <= MAX_ANSWER_CHARACTERS
    assert cut["cut"] and len(cut["beginning"]) == 500


def test_a_method_without_a_model_says_so(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/agents.db"
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("plain", space, method="random", storage=url)
    study.tell(study.ask(), 1.0)
    found = using(
        agent_server(url), lambda client: call(client, "should_stop", study="plain", gain=0.1)
    )
    assert found["stop"] is None and "no model" in found["reason"]
