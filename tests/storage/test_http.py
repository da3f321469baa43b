"""Studies on a server keep the contract of storages, and a lost answer stores nothing twice."""

import pickle
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import scrimp
from scrimp.errors import AddressError, StorageError, StudyError, Unreachable
from scrimp.storage.http import HttpStorage
from scrimp.storage.open import open_storage
from scrimp.storage.store import Storage
from scrimp.testing.storages import DurableStorageBattery, first_event
from tests.tools.served import Served, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(f"sqlite:///{tmp_path}/served.db", tmp_path) as server:
        yield server


class TestHttpStorage(DurableStorageBattery):
    @pytest.fixture
    def storage(self, server: Served) -> Iterator[Storage]:
        storage = HttpStorage(server.url, server.token("own"))
        yield storage
        storage.close()


class Line:
    """A line to the server that loses answers: of every request that changes something, the first
    answers are cut off after ``passed`` bytes, ``losses`` times in all."""

    def __init__(self, url: str, passed: int, losses: int) -> None:
        self._target = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._passed = passed
        self.losses = losses
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.create_connection(self._target) as server, suppress(OSError):
            while data := message(client):
                server.sendall(data)
                answer = message(server)
                if data.startswith(b"POST") and self.losses > 0:
                    self.losses -= 1
                    client.sendall(answer[: self._passed])
                    return
                client.sendall(answer)


def message(line: socket.socket) -> bytes:
    """A whole request or answer; nothing at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := line.recv(2**16)):
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    size = re.search(rb"(?i)content-length: (\d+)", head)
    while size is not None and len(body) < int(size[1]):
        body += line.recv(2**16)
    return head + b"\r\n\r\n" + body


@pytest.mark.parametrize("passed", [0, 20, 60, -3])
def test_a_lost_answer_stores_nothing_twice(server: Served, passed: int) -> None:
    line = Line(server.url, passed, losses=12)
    storage = HttpStorage(line.url, server.token("own"))
    assert storage.names() == []
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, storage=storage, method="random", seed=0)
    for value in (0.5, 0.25, 0.75):
        study.tell(study.ask(), value)
    study.enqueue({"x": 0.125})
    assert line.losses == 0
    assert [trial.value for trial in study.trials] == [0.5, 0.25, 0.75]
    kinds = [type(event).__name__ for event in study.history.events]
    assert kinds.count("Reported") == kinds.count("Decided") == 3 and kinds.count("Enqueued") == 1
    assert kinds.count("StudyCreated") == 1
    line.losses = 1
    storage.delete("s")
    assert storage.names() == []
    storage.close()
    line.close()


def test_the_path_is_a_folder_of_studies(server: Served) -> None:
    token = server.token("own")
    whole, team = HttpStorage(server.url, token), HttpStorage(f"{server.url}/team/", token)
    team.create("a", [first_event("a")])
    whole.create("b", [first_event("b")])
    assert team.names() == ["a"] and whole.names() == ["team/a", "b"]
    assert team.open("a").name == "a" and team.url == f"{server.url}/team"
    with pytest.raises(StudyError, match="no study 'team/b'"):
        team.open("b")
    for storage in (whole, team):
        storage.close()


def test_the_token_is_in_the_environment(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIMP_TOKEN", server.token("own"))
    storage = open_storage(server.url)
    assert isinstance(storage, HttpStorage) and storage.names() == []
    copy = pickle.loads(pickle.dumps(storage))
    monkeypatch.delenv("SCRIMP_TOKEN")
    assert copy.names() == []
    with pytest.raises(StorageError, match="a token is needed: set SCRIMP_TOKEN"):
        open_storage(server.url).names()
    monkeypatch.setenv("SCRIMP_TOKEN", "é\n")
    with pytest.raises(StorageError, match="the value of SCRIMP_TOKEN is not a token"):
        open_storage(server.url)


def test_a_wrong_address_fails_at_once(server: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Unreachable, match="cannot be reached"):
        HttpStorage(f"http://127.0.0.1:{port}", "x").names()
    for odd in (
        "http://",
        "http://user:secret@host",
        "http://host:port",
        "http://host?token=x",
        "http://host/team#secret",
        "https://a:[secret@host",
    ):
        with pytest.raises(AddressError, match="not the address of a server") as caught:
            open_storage(odd)
        assert "secret" not in str(caught.value)


def test_another_server_is_recognised() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for body in (b"<html>", b'{"names": 3}'):
                with listener.accept()[0] as line:
                    line.recv(10_000)
                    head = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
                    line.sendall(head % len(body) + body)

        thread = threading.Thread(target=answer)
        thread.start()
        storage = HttpStorage(f"http://127.0.0.1:{listener.getsockname()[1]}", "x")
        for _ in range(2):
            with pytest.raises(StorageError, match="is not a scrimp server"):
                storage.names()
        thread.join()


def test_a_process_that_was_asked_to_end_waits_no_longer(server: Served) -> None:
    token = server.token("own")
    line = Line(server.url, 0, losses=10**6)
    storage = HttpStorage(line.url, token)
    assert storage.names() == []
    HttpStorage(server.url, token).create("s", [first_event("s")])
    store = storage.open("s")
    store.hurry_once(lambda: True)
    with pytest.raises(Unreachable):
        store.append([first_event("s")])
    storage.close()
    line.close()
