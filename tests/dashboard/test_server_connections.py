"""Half requests end, and keep nobody else out. Real sockets; nothing here waits for a clock of
seconds."""

import asyncio
import errno
import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest
import uvicorn

from scrimp.dashboard import server
from scrimp.dashboard.server import max_connections
from scrimp.storage.open import open_storage


@pytest.fixture
def port(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    made: list[uvicorn.Server] = []

    class Watched(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            made.append(self)

    monkeypatch.setattr(server.uvicorn, "Server", Watched)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    thread = threading.Thread(target=server.serve, args=(open_storage(url), listening), daemon=True)
    thread.start()
    yield listening.getsockname()[1]
    made[0].should_exit = True
    thread.join(20)


def half_request(port: int) -> socket.socket:
    opened = socket.create_connection(("127.0.0.1", port), timeout=30)
    opened.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX:")
    return opened


def page(port: int) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/static/style.css", timeout=30) as answer:
        return int(answer.status)


def ended(opened: socket.socket) -> bool:
    try:
        return opened.recv(10) == b""
    except ConnectionResetError:
        return True


def test_half_requests_end(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page(port) == 200
    monkeypatch.setattr(server, "REQUEST_HEAD_SECONDS", 0.2)
    with half_request(port) as first:
        assert ended(first), "it is ended by the server, after its patience"
    assert page(port) == 200


def test_a_request_that_comes_slowly_but_whole_is_answered_and_its_connection_waits_anew(
    port: int,
) -> None:
    opened = half_request(port)
    opened.sendall(b"1\r\n\r\n")
    assert opened.recv(12) == b"HTTP/1.1 200"
    opened.close()


def test_an_answer_that_is_not_read_ends(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "REQUEST_HEAD_SECONDS", 0.2)
    monkeypatch.setattr(server, "UNREAD_SECONDS", 0.3)
    gone, lost = threading.Event(), server.PatientProtocol.connection_lost

    def watched(self: server.PatientProtocol, error: Exception | None) -> None:
        lost(self, error)
        gone.set()

    monkeypatch.setattr(server.PatientProtocol, "connection_lost", watched)
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.connect(("127.0.0.1", port))
        opened.sendall(b"GET /static/plotly.min.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert gone.wait(30), "it is ended by the server, after its patience"
    assert page(port) == 200


def test_the_body_of_an_answer_does_not_wait_for_its_head(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, made = [], server.PatientProtocol.connection_made

    def watched(self: server.PatientProtocol, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        connection = transport.get_extra_info("socket")
        seen.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(server.PatientProtocol, "connection_made", watched)
    assert page(port) == 200
    assert seen == [1]


def test_too_many_half_requests_keep_nobody_out(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "MAX_CONNECTIONS", 8)
    monkeypatch.setattr(server, "REQUEST_HEAD_SECONDS", 600.0)
    held = [half_request(port) for _ in range(60)]
    assert page(port) == 200
    assert all(ended(opened) for opened in held[:50]), "the oldest ones made room"
    for opened in held:
        opened.close()


def test_files_set_the_limit() -> None:
    assert (
        max_connections(256) == 128
        and max_connections(10**6) == server.MAX_CONNECTIONS
        and max_connections(4) == 8
    )


def test_without_free_files_one_line_is_printed(
    url: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse() -> None:
        app = server.create_app(open_storage(url))
        async with app.router.lifespan_context(app):
            loop = asyncio.get_running_loop()
            full = OSError(errno.EMFILE, "Too many open files")
            for _ in range(2000):
                loop.call_exception_handler({"message": "accept()", "exception": full})
            loop.call_exception_handler({"message": "other", "exception": ValueError("odd")})

    asyncio.run(refuse())
    assert capsys.readouterr().err.count("ulimit -n") == 1
    assert [record.message.split("\n")[0] for record in caplog.records] == ["other"]
