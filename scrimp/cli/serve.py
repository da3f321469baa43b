"""Commands that serve studies: ``scrimp dashboard``, pages for one person; ``scrimp serve``, a server
for workers, notebooks and programs, with ``scrimp token``, who may use it; ``scrimp mcp``, tools for
agents.

Tokens of the dashboard come from a file or a variable, never from an argument, and must be hard to
guess.
"""

import ipaddress
import json
import logging
import os
import secrets
import socket
import sys
import tempfile
import threading
import webbrowser
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Argument, Option

from scrimp.cli.options import HostOption, JsonOption, PortOption, StorageOption
from scrimp.cli.printing import echo
from scrimp.display.terminal import on_terminal
from scrimp.errors import StudyError
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.storage.store import Storage
from scrimp.study.studies import DEFAULT_URL, create_study, storage_at

WRITE_VARIABLE = "SCRIMP_DASHBOARD_TOKEN"
READ_VARIABLE = "SCRIMP_DASHBOARD_READ_TOKEN"
MIN_TOKEN_CHARACTERS = 16

MAX_TOKEN_FILE_BYTES = 10_000
REMEDY = "make one with `openssl rand -hex 24`, or give none to have one generated and printed"


def dashboard_command(  # noqa: PLR0913 - the options of a command
    storage: list[str] | None = Option(
        None,
        metavar="URL",
        help=f"URL of a storage; repeat for several.  \\[env var: SCRIMP_STORAGE; default: "
        f"{DEFAULT_URL}]",
    ),
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    token_file: Path | None = Option(
        None,
        metavar="FILE",
        help=f"File with the token to read and change studies.  \\[env var: {WRITE_VARIABLE}]",
    ),
    read_token_file: Path | None = Option(
        None,
        metavar="FILE",
        help=f"File with the token to read studies only.  \\[env var: {READ_VARIABLE}]",
    ),
    no_token: bool = Option(
        False, "--no-token", help="Let every user of this machine in without a token."
    ),
    no_browser: bool = Option(False, "--no-browser", help="Open no browser, only print the link."),
) -> None:
    """Serve live web pages for the studies of one or several storages. The pages make no request to
    any other machine.

    Prints a link with a random token, and opens it on a desktop; set your own token with a file or
    an environment variable.

    Example: scrimp dashboard --storage sqlite:///scrimp.db --port 8080
    """
    need_server("the dashboard", "dashboard")
    here = is_loopback(host)
    if no_token and not here:
        raise StudyError(
            f"--no-token with --host {host} would let in everyone who can reach it; leave out"
            " --no-token"
        )
    write = read = ""
    queries = ["", ""]
    if not no_token:
        own = given_token(WRITE_VARIABLE, token_file), given_token(READ_VARIABLE, read_token_file)
        write, read = (token or secrets.token_urlsafe(24) for token in own)
        # A token that the user chose is not shown.
        queries = [f"?token={'...' if own[k] else (write, read)[k]}" for k in (0, 1)]
        if write == read:
            raise StudyError(
                f"{WRITE_VARIABLE} and {READ_VARIABLE} are the same, so every reader could change"
                " studies; choose two different tokens"
            )
    listening = bound(host, port)
    address = f"http://{address_of(listening, host)}/"
    # Opening storages and loading the server can take seconds; requests wait for them.
    echo(f"{address}{queries[0]}")
    if not no_token:
        echo(f"read only: {address}{queries[1]}")
    places = _opened(storage)
    echo(f"serving {', '.join(place.url for place in places)}; Ctrl-C stops the server")
    once = None
    if here and not no_browser and on_desktop():
        # Other users of this machine can read the arguments of the browser's process.
        once = None if no_token else secrets.token_urlsafe(24)
        link = address if once is None else f"{address}?token={once}"
        threading.Thread(target=webbrowser.open, args=(link,), daemon=True).start()
    from scrimp.dashboard.server import Secrets, serve

    tokens = Secrets(None, None) if no_token else Secrets(write, read, here, once)
    serve(places, listening, tokens)


def need_server(what: str, extra: str) -> None:
    """Raise `StudyError` if a package of the server is not installed."""
    if any(find_spec(package) is None for package in ("fastapi", "jinja2", "plotly", "uvicorn")):
        raise StudyError(
            f"{what} needs the extra scrimp[{extra}], which is not installed;"
            f" pip install 'scrimp[{extra}]'"
        )


def address_of(listening: socket.socket, host: str) -> str:
    """Return host and port as they stand in a link."""
    return f"{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def on_desktop() -> bool:
    """True if this is a terminal on a desktop, where a browser can be opened."""
    if not on_terminal(sys.stdout) or "SSH_CONNECTION" in os.environ:
        return False
    shown = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return shown or sys.platform in ("darwin", "win32")


def _opened(urls: list[str] | None) -> list[Storage]:
    """Open each storage once. Warn of one without studies: its address may be wrong."""
    places = [storage_at(url) for url in dict.fromkeys(urls)] if urls else [storage_at(None)]
    for place in places:
        if not place.names():
            echo(
                f"scrimp: there is no study in {place.url} yet; studies appear on the pages once"
                " they are created there. Use --storage to name another storage",
                err=True,
            )
    return places


def is_loopback(host: str) -> bool:
    """True if only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int) -> socket.socket:
    """Listen on a port; the error names a remedy if that fails."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        unknown = isinstance(error, socket.gaierror)
        remedy = "give an address of this machine" if unknown else "choose another with --port 0"
        raise StudyError(
            f"cannot listen on {host} port {port}: {error.strerror}; {remedy}"
        ) from None
    return listening


def given_token(variable: str, file: Path | None) -> str | None:
    """Return the token in ``file``, else in the variable; None for neither. Refuse an empty or
    short one, and characters that a link or a header may change."""
    if file is not None:
        try:
            with file.open("rb") as content:
                words = content.read(MAX_TOKEN_FILE_BYTES).decode("utf-8", "replace").strip()
            return _checked(words, f"the token in {str(file)!r}")
        except OSError as error:
            raise StudyError(
                f"cannot read the token from {str(file)!r}: {error.strerror}; {REMEDY}"
            ) from None
    text = os.environ.get(variable)
    return None if text is None else _checked(text, f"the token in {variable}")


def _checked(text: str, what: str) -> str:
    if not text:
        raise StudyError(f"{what} is empty, which protects nothing; {REMEDY}")
    if not text.isascii() or not text.isprintable() or not set(text).isdisjoint(" \"'&#%+;,<>\\"):
        raise StudyError(
            f"{what} contains a character that a link or a header may change; use letters, digits"
            f" and -._~ only; {REMEDY}"
        )
    if len(text) < MIN_TOKEN_CHARACTERS:
        raise StudyError(
            f"{what} has {len(text)} characters, which can be guessed; use at least"
            f" {MIN_TOKEN_CHARACTERS}; {REMEDY}"
        )
    return text


SHARED_CONNECTIONS = 8
"""Connections to a database; each study keeps to one of them."""

TokensOption = Annotated[
    Path | None,
    Option(
        "--tokens",
        metavar="FILE",
        help="File with the tokens.  \\[env var: SCRIMP_TOKENS; default: tokens.json in ~/.config/scrimp]",
    ),
]


def serve_command(  # noqa: PLR0913 - each is an option of the command
    storage: str | None = Option(
        None,
        metavar="URL",
        help=f"URL of the storage.  \\[env var: SCRIMP_STORAGE; default: {DEFAULT_URL}]",
    ),
    host: HostOption = "127.0.0.1",
    port: PortOption = 8400,
    tokens: TokensOption = None,
    certificate: Path | None = Option(None, metavar="FILE", help="Certificate chain, for TLS."),
    key: Path | None = Option(None, metavar="FILE", help="Private key of the certificate."),
    audit: Path | None = Option(
        None, metavar="FILE", help="File for the audit log; standard error by default."
    ),
    demo: bool = Option(False, "--demo", help="Serve a small study in a temporary SQLite file."),
) -> None:
    """Serve studies over HTTP: the pages, and an interface for workers, notebooks and programs in
    any language. Everyone needs a token, which `scrimp token new` makes.

    Example: scrimp serve --storage sqlite:///scrimp.db --port 8400
    """
    need_server("serving", "serve")
    if (certificate is None) != (key is None):
        raise StudyError("TLS needs both --certificate and --key; give the other one too")
    from scrimp.service.tokens import TokenFile

    url = storage_at(storage).url if storage is None else storage
    listening = bound(host, port)
    scheme = "http" if certificate is None else "https"
    address = f"{scheme}://{address_of(listening, host)}"
    with tempfile.TemporaryDirectory(prefix="scrimp-demo-") as folder:
        file = TokenFile(tokens)
        if demo:
            url, file = f"sqlite:///{folder}/demo.db", TokenFile(Path(folder) / "tokens.json")
            _begin_demo(url)
            text, _ = file.make("own", name="demo")
            echo(f"open {address}/?token={text}")
            echo(f"or   SCRIMP_TOKEN={text} scrimp show demo --storage {address}")
        elif not file.all():
            echo(f"no tokens in {file.path} yet: `scrimp token new --role own` makes one")
        places = [
            open_storage(url) for _ in range(1 if url.startswith("sqlite") else SHARED_CONNECTIONS)
        ]
        echo(f"serving {places[0].url} at {address}; Ctrl-C stops the server")
        if scheme == "http" and not is_loopback(host):
            echo("tokens travel unencrypted: use --certificate and --key, or a proxy", err=True)
        log = logging.getLogger("scrimp.audit")
        log.addHandler(logging.StreamHandler() if audit is None else logging.FileHandler(audit))
        log.setLevel(logging.INFO)
        log.propagate = False
        from scrimp.dashboard.server import patient_server
        from scrimp.service.server import create_service

        service = create_service(places, file)
        patient_server(service, certificate, key).run(sockets=[listening])


def _begin_demo(url: str) -> None:
    """Make a small study with a few results."""
    space = Space({"x": Float(-5, 10), "y": Float(0, 15)})
    study = create_study("demo", space, method="gp", storage=url, seed=0)
    for _ in range(12):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, (y - 0.129 * x**2 + 1.592 * x - 6) ** 2 + abs(x))


token_app = typer.Typer(help="Make, list and revoke tokens of a server.", no_args_is_help=True)


@token_app.command("new")
def new_command(
    role: Literal["read", "work", "own"] = Option(
        help="Rights: see studies, take part in them, or also change them."
    ),
    study: str = Option("", metavar="PREFIX", help="Only studies whose names begin with this."),
    name: str = Option("", help="Name of its holder, for logs."),
    tokens: TokensOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it; it is stored as a hash, so it is shown only once.

    Example: scrimp token new --role work --study team/ --name cluster
    """
    from scrimp.service.tokens import TokenFile

    file = TokenFile(tokens)
    text, token = file.make(role, study, name)
    if as_json:
        echo(json.dumps({"id": token.id, "role": role, "study": study, "token": text}))
        return
    echo(text)
    where = f"studies that begin with {study!r}" if study else "all studies"
    echo(f"id {token.id}: {role}, {where}; kept as a hash in {file.path}", err=True)


@token_app.command("list")
def list_command(tokens: TokensOption = None, as_json: JsonOption = False) -> None:
    """List all tokens: id, role, studies, name and date.

    Example: scrimp token list
    """
    from scrimp.service.tokens import TokenFile

    found = TokenFile(tokens).all()
    if as_json:
        fields = ("id", "role", "study", "name", "created")
        echo(json.dumps([{key: getattr(token, key) for key in fields} for token in found]))
        return
    for token in found:
        date = datetime.fromtimestamp(token.created, UTC).strftime("%Y-%m-%d %H:%M")
        echo(f"{token.id}  {token.role:<4}  {date}  {token.study + '*':<20}  {token.name}")


@token_app.command("revoke")
def revoke_command(
    number: str = Argument(metavar="ID", help="Id of the token."), tokens: TokensOption = None
) -> None:
    """Revoke a token: servers refuse it at once.

    Example: scrimp token revoke 3f9a01bc
    """
    from scrimp.service.tokens import TokenFile

    token = TokenFile(tokens).revoke(number)
    echo(f"token {token.id} ({token.role}) is revoked")


def mcp_command(
    storage: StorageOption = DEFAULT_URL,
    write: bool = Option(
        False, "--write", help="Let agents create studies, ask, tell and propose."
    ),
    port: int | None = Option(
        None,
        min=1,
        max=65535,
        help="Serve over HTTP at 127.0.0.1:PORT/mcp instead of standard input.",
    ),
) -> None:
    """Serve studies to agents over the Model Context Protocol; read-only without --write.

    Example: scrimp mcp --storage sqlite:///scrimp.db
    """
    try:
        import mcp  # noqa: F401
    except ModuleNotFoundError:
        raise StudyError(
            "scrimp mcp needs the package mcp, which is not installed; pip install 'scrimp[mcp]'"
        ) from None
    from scrimp.service.agents import agent_server

    server = agent_server(storage, write)
    if port is None:
        server.run("stdio")
    else:
        server.run("streamable-http", host="127.0.0.1", port=port)
