"""A server of studies for tests: in a thread of this process, or in a process that may be killed.

with served("sqlite:///s.db", folder) as server:
    storage = HttpStorage(server.url, server.token("own"))
"""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scrimp.dashboard.server import patient_server
from scrimp.service.gate import LIMITS, Gate, RequestLimits
from scrimp.service.server import create_service
from scrimp.service.tokens import Role, TokenFile
from scrimp.storage.open import open_storage


@dataclass(frozen=True)
class Served:
    """The address of a server, its tokens and its application."""

    url: str
    tokens: TokenFile
    service: Gate

    def token(self, role: Role, study: str = "") -> str:
        """Make a token and return its text."""
        return self.tokens.make(role, study)[0]

    def ask(
        self, path: str, token: str = "", body: object = None, **headers: str
    ) -> tuple[int, Any]:
        """Send a request; return status and answer, which is decoded if it is JSON."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body)
        request = urllib.request.Request(
            self.url + path,
            data=data.encode() if isinstance(data, str) else data,
            headers={**({"authorization": f"Bearer {token}"} if token else {}), **headers},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                status, content = response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                status, content = error.code, error.read()
        try:
            return status, json.loads(content)
        except ValueError:
            return status, content.decode()


@contextmanager
def served(url: str, folder: Path, limits: RequestLimits = LIMITS) -> Iterator[Served]:
    """Serve the storage at ``url`` on a free port; tokens are in ``folder``."""
    storage, tokens = open_storage(url), TokenFile(folder / "tokens.json")
    service = create_service([storage], tokens, limits)
    server = patient_server(service)
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield Served(f"http://127.0.0.1:{listening.getsockname()[1]}", tokens, service)
    finally:
        server.should_exit = True
        thread.join(timeout=10)
        storage.close()
        listening.close()


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate of this machine's own address, signed by itself; return it and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    words = [*command.split(), "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run(words, capture_output=True, check=True)
    return certificate, key


class WebServer:
    """``scrimp serve`` of the storage at ``url``, over TLS, on a port that stays the same.

    SCRIMP_TOKEN of this process has a token to own, SCRIMP_CA_FILE the certificate.
    """

    def __init__(self, url: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.url = f"https://127.0.0.1:{port}"
        self.tokens = TokenFile(folder / "tokens.json")
        self._log = folder / "server-log"
        self._command = [sys.executable, "-c", "from scrimp.cli.main import main; main()", "serve"]
        self._command += ["--storage", url, "--tokens", str(self.tokens.path), "--port", str(port)]
        self._certificate, key = make_certificate(folder)
        self._command += ["--certificate", str(self._certificate), "--key", str(key)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "WebServer":
        os.environ["SCRIMP_TOKEN"] = self.tokens.make("own")[0]
        os.environ["SCRIMP_CA_FILE"] = str(self._certificate)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        for name in ("SCRIMP_TOKEN", "SCRIMP_CA_FILE"):
            os.environ.pop(name, None)
        self.kill()

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        context = ssl.create_default_context(cafile=self._certificate)
        while True:
            try:
                urllib.request.urlopen(f"{self.url}/api/health", timeout=5, context=context).close()
                return
            except OSError:
                if self._process.poll() is not None:
                    raise RuntimeError(self._log.read_text()[-2000:]) from None
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
