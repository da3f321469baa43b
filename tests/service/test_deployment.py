"""The files for deployment work: both proxies carry a study, and systemd accepts the unit."""

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import scrimp
from scrimp.storage.http import HttpStorage
from tests.tools.served import Served, make_certificate
from tests.waiting import PATIENCE

DEPLOY = Path(__file__).parents[2] / "deploy"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@contextmanager
def running(words: list[str], port: int) -> Iterator[None]:
    """A proxy that accepts connections."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                break
            except OSError:
                assert process.poll() is None, process.communicate()[0]
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def drive(url: str, server: Served) -> None:
    """Run a study through a proxy, and look at a page; the session of a browser is for TLS only."""
    storage = HttpStorage(url, server.token("own"))
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, storage=storage, method="random", seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    assert len(study.trials) == 3
    storage.close()


def test_nginx(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed here")
    certificate, key = make_certificate(tmp_path)
    monkeypatch.setenv("SCRIMP_CA_FILE", str(certificate))
    port = free_port()
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    text = text.replace("http://127.0.0.1:8400", server.url)
    text = re.sub(r"(ssl_certificate) .*;", rf"\1 {certificate};", text)
    text = re.sub(r"(ssl_certificate_key) .*;", rf"\1 {key};", text)
    paths = "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("proxy", "client_body", "fastcgi")
    )
    paths += f"uwsgi_temp_path {tmp_path}/uwsgi; scgi_temp_path {tmp_path}/scgi;"
    whole = tmp_path / "nginx.conf"
    whole.write_text(
        f"daemon off; pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {paths}\n{text}\n}}\n"
    )
    with running([program, "-c", str(whole), "-e", "stderr"], port):
        drive(f"https://127.0.0.1:{port}", server)
        text_of_token = server.token("read")
        told = subprocess.run(
            ["curl", "-sik", f"https://127.0.0.1:{port}/?token={text_of_token}"],
            capture_output=True,
            text=True,
        ).stdout
        assert " 303 " in told and "; secure" in told.lower()


def test_caddy(server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shutil.which("caddy")
    if program is None:
        pytest.skip("caddy is not installed here")
    port = free_port()
    text = (DEPLOY / "Caddyfile").read_text()
    text = text.replace("tune.example.org", f"http://127.0.0.1:{port}")
    text = text.replace("127.0.0.1:8400", server.url.removeprefix("http://"))
    whole = tmp_path / "Caddyfile"
    whole.write_text("{\n\tadmin off\n}\n" + text)
    monkeypatch.setenv("HOME", str(tmp_path))
    with running([program, "run", "--config", str(whole)], port):
        drive(f"http://127.0.0.1:{port}", server)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed here")
    text = (DEPLOY / "scrimp.service").read_text().replace("/opt/scrimp/bin/scrimp", "/bin/true")
    (tmp_path / "scrimp.service").write_text(text.replace("User=scrimp", "User=root"))
    done = subprocess.run(
        [program, "verify", str(tmp_path / "scrimp.service")], capture_output=True, text=True
    )
    assert "scrimp.service" not in done.stderr, done.stderr


def test_the_container_copies_what_exists() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        assert all((DEPLOY.parent / name).exists() for name in line.split())
    assert "[serve,postgres]" in text
