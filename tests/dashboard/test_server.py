"""The application: files from the package, errors as pages, 100,000 trials."""

import socket
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import plotly
import pytest
import uvicorn
from fastapi.testclient import TestClient

import scrimp
from scrimp.dashboard import server
from scrimp.dashboard.server import create_app, serve
from scrimp.errors import StorageError
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.open import open_storage
from scrimp.study_log.decision_record import DecisionRecord, InBracket
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.problem import Budget, Problem
from tests.waiting import eventually


def test_scripts_and_styles_come_from_the_packages(client: Any) -> None:
    script = client.get("/static/plotly.min.js")
    assert (
        script.content
        == (Path(plotly.__file__).parent / "package_data" / "plotly.min.js").read_bytes()
    )
    for name in ("app.js", "figures.js", "marks.js", "style.css", "icon.svg"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/../server.py").status_code == 404
    assert client.get("/docs").status_code == client.get("/openapi.json").status_code == 404


def test_nothing_on_a_page_points_elsewhere(client: Any) -> None:
    for path in (
        "/",
        "/study?name=staged",
        "/trial?study=staged&number=1",
        "/compare?study=staged",
        "/delete?study=staged",
        "/trials?study=staged&number=1",
        "/static/app.js",
        "/static/figures.js",
    ):
        text = client.get(path).text.replace("http://www.w3.org/", "")
        assert "http://" not in text and "https://" not in text and 'src="//' not in text


def test_errors_are_pages_without_tracebacks(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = client.get("/study?name=stagd")
    assert (
        missing.status_code == 404 and "staged" in missing.text and "Traceback" not in missing.text
    )

    def away() -> list[str]:
        raise StorageError("the database <b>cannot</b> be reached")

    monkeypatch.setattr(client.app.state.shelf.books[0].storage, "names", away)
    broken = client.get("/")
    assert broken.status_code == 503 and "&lt;b&gt;cannot&lt;/b&gt;" in broken.text


def long_log(count: int) -> list[Event]:
    """A study of halving with ``count`` trials, written down without running it."""
    space = scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True), kind=scrimp.Categorical(["a", "b"]))
    problem = Problem(space, metrics={"error": "minimize"}, budget=Budget("epoch", 1, 81), seed=0)
    log: list[Event] = [
        StudyCreated(name="big", problem=problem.to_json(), method={"name": "asha", "settings": {}})
    ]
    values = np.random.default_rng(0).random(count).tolist()
    for trial, value in enumerate(values):
        config = {"lr": 1e-5 + 0.09 * value, "kind": "ab"[trial % 2]}
        log.append(
            Decided(
                decision=trial,
                seen=len(log),
                record=DecisionRecord(grant=InBracket(0)),
                time=float(trial),
            )
        )
        log.append(TrialAdded(trial=trial, config=config, time=float(trial)))
        log.append(
            BudgetGranted(trial=trial, budget=1.0, worker=f"node:{trial % 8}", time=float(trial))
        )
        log.append(Reported(trial=trial, step=1.0, metrics={"error": value}, time=trial + 0.5))
    return log


def test_a_hundred_thousand_trials_are_quick() -> None:
    """The first page of the study and of the table, in CPU seconds of this process, the log being
    read."""
    storage = MemoryStorage()
    storage.create("big", long_log(100_000))
    with TestClient(create_app(storage), base_url="http://127.0.0.1") as client:
        eventually(lambda: "reading the log" not in client.get("/").text, pause=0.2)
        for path in (
            "/",
            "/study?name=big",
            "/study?name=big&sort=lr&order=up&text=kind%3Db&page=900",
            "/summary?name=big",
        ):
            began = time.process_time()
            text = client.get(path).text
            assert time.process_time() - began < 10.0, path
            assert "100000" in text
        assert 'id="pages">1000<' in client.get("/study?name=big&text=kind%3Db").text
        assert client.get("/figure?study=big&name=history").status_code == 200


def test_it_serves_on_a_socket_and_ends(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    made: list[uvicorn.Server] = []

    class Watched(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            made.append(self)

    monkeypatch.setattr(server.uvicorn, "Server", Watched)
    thread = threading.Thread(target=serve, args=(open_storage(url), listening), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}"
    with urllib.request.urlopen(f"{address}/live?name=staged", timeout=20) as stream:
        assert b"event: change\n" in iter(stream.readline, b"")
        made[0].should_exit = True  # an open stream does not keep the server from ending
        thread.join(10)
    assert not thread.is_alive()
