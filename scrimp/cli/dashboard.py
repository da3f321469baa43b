"""``scrimp dashboard``: serve the pages."""

import ipaddress
import secrets
import socket
from typing import Annotated

import typer

from scrimp.cli.plugins import PluginOption
from scrimp.cli.show import StorageOption
from scrimp.errors import StudyError
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["dashboard_command", "is_loopback"]


def dashboard_command(
    storage: StorageOption = DEFAULT_URL,
    host: Annotated[
        str, typer.Option(help="Address to listen on; anything but this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8080,
    token: Annotated[
        str | None,
        typer.Option(envvar="SCRIMP_TOKEN", help="Secret that readers must give; made up when one is needed."),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Serve the pages that show the studies of a storage, live. They make no request to any other machine.

    Example: scrimp dashboard --storage sqlite:///scrimp.db --port 8080
    """
    try:
        from scrimp.dashboard.server import serve
    except ImportError as error:
        raise StudyError(
            f"the dashboard needs {error.name}, which is not installed; pip install 'scrimp[dashboard]'"
        ) from None
    place = storage_at(storage)
    place.names()  # a storage that cannot be reached is said at once
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(18)
    listening = _bound(host, port)
    shown = listening.getsockname()[1]
    address = f"http://{'[' + host + ']' if ':' in host else host}:{shown}/"
    typer.echo(f"{place.url} at {address}{'?token=' + token if token else ''}  (Ctrl-C ends it)")
    serve(place, listening, token)


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
            "give an address of this machine" if isinstance(error, socket.gaierror) else "choose another with --port 0"
        )
        raise StudyError(f"cannot listen on {host} port {port}: {error.strerror}; {remedy}") from None
    return listening
