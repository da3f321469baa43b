"""``scrimp dashboard``: serve the pages."""

import ipaddress
import socket
from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.secret_words import READ, WRITE, given_secret, made_up
from scrimp.cli.withdrawn import DASHBOARD, TokenOption, refuse_token
from scrimp.errors import StudyError
from scrimp.storage.store import Storage
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["dashboard_command", "is_loopback"]


def dashboard_command(  # noqa: PLR0913 - the options of a command
    storage: Annotated[
        list[str] | None,
        typer.Option(
            "--storage",
            metavar="URL",
            help=f"URL of a storage; repeat for several.  [env var: SCRIMP_STORAGE; default: "
            f"{DEFAULT_URL}]",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File with the secret of those who may change things.  [env var: {WRITE}]",
        ),
    ] = None,
    read_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"File with the secret of those who may only look.  [env var: {READ}]",
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option("--no-token", help="Let everybody on this machine in, other users included."),
    ] = False,
    token: TokenOption = None,
) -> None:
    """Serve the pages that show the studies of one or several storages, live. They make no request
    to any other machine.

    It prints a link with a secret that was made up; a secret of your own comes from a file or a
    variable.

    Example: scrimp dashboard --storage sqlite:///scrimp.db --port 8080
    """
    refuse_token(token, DASHBOARD)
    try:
        from scrimp.dashboard.access import Secrets
        from scrimp.dashboard.server import serve
    except ImportError as error:
        raise StudyError(
            "the dashboard needs the extra scrimp[dashboard], which is not installed;"
            " pip install 'scrimp[dashboard]'"
        ) from error
    here = is_loopback(host)
    if no_token and not here:
        raise StudyError(
            f"--no-token with --host {host} would let everybody in who reaches it; leave it out"
        )
    write, read = (
        (None, None)
        if no_token
        else (given_secret(WRITE, token_file), given_secret(READ, read_token_file))
    )
    secret = (
        Secrets(None, None) if no_token else Secrets(write or made_up(), read or made_up(), here)
    )
    if secret.write is not None and secret.write == secret.read:
        raise StudyError(
            f"{WRITE} and {READ} are the same, so whoever may look could change things; choose two"
        )
    places = _opened(storage)
    listening = _bound(host, port)
    address = f"http://{'[' + host + ']' if ':' in host else host}:{listening.getsockname()[1]}/"
    urls = ", ".join(place.url for place in places)
    echo(f"{urls} at {address}{_query(write, secret.write)}  (Ctrl-C ends it)")
    if not no_token:
        echo(f"to look only: {address}{_query(read, secret.read)}")
    serve(places, listening, secret)


def _opened(urls: list[str] | None) -> list[Storage]:
    """The storages, each once; one that cannot be reached is said at once, and so is one without
    studies: its address may be wrong."""
    places = [storage_at(url) for url in dict.fromkeys(urls)] if urls else [storage_at(None)]
    for place in places:
        if not place.names():
            echo(
                f"scrimp: there is no study in {place.url} yet; the pages will show those that are"
                " made there. Is it somewhere else? Say where with --storage",
                err=True,
            )
    return places


def _query(given: str | None, used: str | None) -> str:
    """The secret as part of a link when it was made up; one that was given is known to those who
    need it."""
    return "" if used is None else f"?token={used}" if given is None else "?token=..."


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    """A socket on that port; the error names the remedy when somebody else listens there."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError as error:
        remedy = (
            "give an address of this machine"
            if isinstance(error, socket.gaierror)
            else "choose another with --port 0"
        )
        raise StudyError(
            f"cannot listen on {host} port {port}: {error.strerror}; {remedy}"
        ) from None
    return listening
