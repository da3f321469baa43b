"""``scrimp serve`` and ``scrimp token``: a server of studies for workers, notebooks and programs, and
who may use it."""

import json
import logging
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from scrimp.cli.dashboard import address_of, bound, is_loopback, need_server
from scrimp.cli.options import HostOption, JsonOption, PortOption
from scrimp.cli.printing import echo
from scrimp.errors import StudyError
from scrimp.service.tokens import TokenFile, default_path
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.storage.open import open_storage
from scrimp.study.studies import DEFAULT_URL, create_study, storage_at

SHARED_CONNECTIONS = 8
"""Connections to a database; each study keeps to one of them."""

TokensOption = Annotated[
    Path | None,
    typer.Option(
        "--tokens",
        metavar="FILE",
        help="File with the tokens.  [env var: SCRIMP_TOKENS; default: ~/.config/scrimp/tokens.json]",
    ),
]


def serve_command(  # noqa: PLR0913 - each is an option of the command
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help=f"URL of the storage.  [env var: SCRIMP_STORAGE; default: {DEFAULT_URL}]",
        ),
    ] = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8400,
    tokens: TokensOption = None,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain, for TLS.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key of the certificate.")
    ] = None,
    audit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File for the audit log; standard error by default."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a small study in a temporary SQLite file.")
    ] = False,
) -> None:
    """Serve studies over HTTP: the pages, and an interface for workers, notebooks and programs in
    any language. Everyone needs a token, which `scrimp token new` makes.

    Example: scrimp serve --storage sqlite:///scrimp.db --port 8400
    """
    need_server("serving", "serve")
    if (certificate is None) != (key is None):
        raise StudyError("TLS needs both --certificate and --key; give the other one too")
    url = storage_at(storage).url if storage is None else storage
    listening = bound(host, port)
    scheme = "http" if certificate is None else "https"
    address = f"{scheme}://{address_of(listening, host)}"
    with tempfile.TemporaryDirectory(prefix="scrimp-demo-") as folder:
        file = _token_file(tokens)
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
        _write_audit(audit)
        from scrimp.service.server import create_service, serve_studies

        serve_studies(create_service(places, file), listening, certificate, key)


def _token_file(path: Path | None) -> TokenFile:
    return TokenFile(default_path() if path is None else path.absolute())


def _begin_demo(url: str) -> None:
    """Make a small study with a few results."""
    space = Space({"x": Float(-5, 10), "y": Float(0, 15)})
    study = create_study("demo", space, method="gp", storage=url, seed=0)
    for _ in range(12):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, (y - 0.129 * x**2 + 1.592 * x - 6) ** 2 + abs(x))


def _write_audit(path: Path | None) -> None:
    """Send the audit log to a file, or to standard error."""
    log = logging.getLogger("scrimp.audit")
    log.addHandler(logging.StreamHandler() if path is None else logging.FileHandler(path))
    log.setLevel(logging.INFO)
    log.propagate = False


token_app = typer.Typer(help="Make, list and revoke tokens of a server.", no_args_is_help=True)


@token_app.command("new")
def new_command(
    role: Annotated[
        Literal["read", "work", "own"],
        typer.Option(help="Rights: see studies, take part in them, or also change them."),
    ],
    study: Annotated[
        str, typer.Option(metavar="PREFIX", help="Only studies whose names begin with this.")
    ] = "",
    name: Annotated[str, typer.Option(help="Name of its holder, for logs.")] = "",
    tokens: TokensOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it; it is stored as a hash, so it is shown only once.

    Example: scrimp token new --role work --study team/ --name cluster
    """
    file = _token_file(tokens)
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
    found = _token_file(tokens).all()
    if as_json:
        fields = ("id", "role", "study", "name", "created")
        echo(json.dumps([{key: getattr(token, key) for key in fields} for token in found]))
        return
    for token in found:
        date = datetime.fromtimestamp(token.created, UTC).strftime("%Y-%m-%d %H:%M")
        echo(f"{token.id}  {token.role:<4}  {date}  {token.study + '*':<20}  {token.name}")


@token_app.command("revoke")
def revoke_command(
    number: Annotated[str, typer.Argument(metavar="ID", help="Id of the token.")],
    tokens: TokensOption = None,
) -> None:
    """Revoke a token: servers refuse it at once.

    Example: scrimp token revoke 3f9a01bc
    """
    token = _token_file(tokens).revoke(number)
    echo(f"token {token.id} ({token.role}) is revoked")
