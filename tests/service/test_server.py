"""The server as a whole: pages of a token's studies, workers with few rights, restarts, TLS."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import pytest

import scrimp
from scrimp.errors import StorageError, StudyError
from scrimp.explain.replay import replay
from scrimp.service.tokens import TokenFile
from scrimp.storage.http import HttpStorage
from tests.tools.served import Served, make_certificate
from tests.waiting import PATIENCE

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def make(server: Served, name: str) -> scrimp.Study:
    storage = HttpStorage(server.url, server.token("own"))
    return scrimp.create_study(name, SPACE, storage=storage, method="random", seed=0)


def test_pages_show_the_studies_of_the_token(server: Served) -> None:
    make(server, "team/a")
    make(server, "secret")
    limited = server.token("read", "team/")
    status, page = server.ask("/", limited)
    assert status == 200 and "team/a" in page and "secret" not in page
    assert server.ask("/study?name=team/a", limited)[0] == 200
    status, page = server.ask("/study?name=secret", limited)
    assert status == 404 and "has 1 study:" in page
    assert "secret" in server.ask("/", server.token("read"))[1]


def test_the_page_of_a_study_in_a_folder_names_it_in_full(server: Served) -> None:
    storage = HttpStorage(f"{server.url}/team", server.token("own"))
    study = scrimp.create_study("digits", SPACE, storage=storage, method="random", seed=0)
    study.tell(study.ask(), 0.5)
    make(server, "digits")
    token = server.token("read")
    page = server.ask("/study?name=team/digits", token)[1]
    assert "<title>team/digits" in page
    names = re.findall(r"(?:study|name)=([^&\"#]*)&", page) + re.findall(
        r'name="study" value="([^"]*)"', page
    )
    assert {unquote(name) for name in names if "digits" in name} == {"team/digits"}
    listed = server.ask("/trial?study=team/digits&number=0", token)[1]
    assert "of team/digits" in listed
    addresses = re.findall(r'data-(?:src|figure|fragment)="(/[^"]+)"', page)
    assert len(addresses) > 4
    for address in addresses:
        assert server.ask(unescape(address), token)[0] in (200, 202), address


def test_a_slow_study_leaves_threads_to_others(server: Served) -> None:
    token, waiting = server.token("own"), 50
    for name in ("slow", "quick"):
        make(server, name)
    studies = server.service.api.state.studies  # type: ignore[attr-defined]
    with ThreadPoolExecutor(waiting) as pool:
        with studies.using("slow", server.tokens.all()[0], uuid4()):
            asked = [
                pool.submit(server.ask, "/api/ask", token, {"study": "slow"})
                for _ in range(waiting)
            ]
            while len(studies.turn("slow")._waiters or ()) < waiting - 1:
                time.sleep(0.01)
            assert server.ask("/api/ask", token, {"study": "quick"})[0] == 200
        assert [one.result()[0] for one in asked] == [200] * waiting
    assert len(scrimp.load_study("slow", storage=HttpStorage(server.url, token)).trials) == waiting


def test_a_whole_study_through_the_server(server: Served) -> None:
    study = make(server, "digits")
    study.optimize(lambda trial: trial.params["x"] ** 2, n_trials=8)
    again = scrimp.load_study("digits", storage=HttpStorage(server.url, server.token("read")))
    assert len(again.trials) == 8 and again.best_value == study.best_value
    assert all(step.same for step in replay(again.history.events))


def test_a_worker_needs_no_more_than_a_token_to_work(server: Served) -> None:
    study = make(server, "team/digits")
    study.enqueue({"x": 0.25})
    worker = scrimp.load_study(
        "digits", storage=HttpStorage(f"{server.url}/team", server.token("work", "team/"))
    )
    trial = worker.ask()
    assert trial.params == {"x": 0.25}
    worker.tell(trial, 0.5)
    assert study.best_value == 0.5 and study.trials[0].status == "completed"
    for forbidden in (worker.pause, worker.stop, lambda: worker.enqueue({"x": 0.3})):
        with pytest.raises(StorageError, match="refused"):
            forbidden()
    with pytest.raises(StorageError, match="refused"):
        scrimp.delete_study(
            "digits", storage=HttpStorage(f"{server.url}/team", server.token("work", "team/"))
        )


def test_a_reader_changes_nothing(server: Served) -> None:
    make(server, "digits")
    reader = scrimp.load_study("digits", storage=HttpStorage(server.url, server.token("read")))
    for forbidden in (reader.ask, reader.pause, lambda: reader.tell(0, 1.0)):
        with pytest.raises((StorageError, scrimp.errors.ReportError)):
            forbidden()
    assert reader.history.length == 1


def test_other_studies_are_out_of_reach(server: Served) -> None:
    make(server, "secret")
    storage = HttpStorage(server.url, server.token("own", "team/"))
    assert storage.names() == []
    for action in (storage.open, storage.delete):
        with pytest.raises(StorageError, match="whose names begin with 'team/'"):
            action("secret")
    with pytest.raises(StorageError, match="refused"):
        scrimp.create_study("other", SPACE, storage=storage)
    scrimp.create_study(
        "mine", SPACE, storage=HttpStorage(f"{server.url}/team", storage._server._token)
    )
    assert storage.names() == ["team/mine"]


def test_errors_do_not_tell_where_the_storage_is(server: Served, tmp_path: Path) -> None:
    storage = HttpStorage(server.url, server.token("own"))
    with pytest.raises(StudyError, match="no study 'x'") as caught:
        storage.open("x")
    assert str(tmp_path) not in str(caught.value) and server.url in str(caught.value)


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    """Start ``scrimp serve`` on a free port, with tokens and storage in ``folder``."""
    command = [sys.executable, "-c", "from scrimp.cli.main import main; main()", "serve"]
    command += ["--storage", f"sqlite:///{folder}/s.db", "--tokens", str(folder / "tokens.json")]
    command += options
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def address(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("serving "):
            return line.partition(" at ")[2].partition(";")[0]
    raise AssertionError("the server did not start")


def test_a_killed_server_is_waited_for_and_nothing_is_stored_twice(
    server: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    token = TokenFile(folder / "tokens.json").make("own")[0]
    process = start(folder, "--port", "0")
    url = address(process)
    study = scrimp.create_study(
        "s", SPACE, storage=HttpStorage(url, token), method="random", seed=0
    )
    study.tell(study.ask(), 0.5)
    process.kill()
    process.communicate()
    again = start(folder, "--port", url.rpartition(":")[2])
    try:
        study.tell(study.ask(), 0.25)
        assert [trial.value for trial in study.trials] == [0.5, 0.25]
    finally:
        again.send_signal(signal.SIGTERM)
        again.communicate(timeout=PATIENCE)


def test_tls_with_a_certificate_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = make_certificate(tmp_path)
    token = TokenFile(tmp_path / "tokens.json").make("own")[0]
    process = start(tmp_path, "--port", "0", "--certificate", str(certificate), "--key", str(key))
    try:
        url = address(process)
        assert url.startswith("https://")
        storage = HttpStorage(url, token)
        with pytest.raises(StorageError, match="certificate that is not trusted"):
            storage.names()
        monkeypatch.setenv("SCRIMP_CA_FILE", str(certificate))
        study = scrimp.create_study("s", SPACE, storage=HttpStorage(url, token), method="random")
        study.tell(study.ask(), 0.5)
        assert study.best_value == 0.5
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert os.path.exists(tmp_path / "s.db")
