"""The command ``scrimp mcp``: studies as tools for agents."""

from typing import Annotated

import typer

from scrimp.cli.options import StorageOption
from scrimp.errors import StudyError
from scrimp.study.studies import DEFAULT_URL


def mcp_command(
    storage: StorageOption = DEFAULT_URL,
    write: Annotated[
        bool, typer.Option("--write", help="Let agents create studies, ask, tell and propose.")
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Serve over HTTP at 127.0.0.1:PORT/mcp instead of standard input.",
        ),
    ] = None,
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
