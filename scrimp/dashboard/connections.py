"""Connections that wait for a request do not wait for ever, and never keep others out.

A connection has `PATIENCE` seconds to send the head of a request. There may be as many as the limit
of open files allows for; one more takes the place of the one that has been silent for longest.
"""

import asyncio
from typing import cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["MOST", "PATIENCE", "PatientProtocol", "most_connections"]

PATIENCE = 10.0
"""Seconds from the beginning of a connection, or from the last answer, to the whole head of a
request."""

MOST = 512
"""Connections at most."""


def most_connections(files: int) -> int:
    """How many connections there may be where ``files`` may be open: the storage, logs and figures
    need some too.

    >>> most_connections(256), most_connections(100_000)
    (128, 512)
    """
    return max(8, min(MOST, files // 2))


class PatientProtocol(H11Protocol):
    """One connection of the dashboard's server."""

    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait; when there are too many, the one that has been silent for longest goes."""
        super().connection_made(cast("asyncio.Transport", transport))
        self._since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE, self._look)
        most = most_connections(_files())
        if len(self.connections) > most:
            ours = (other for other in self.connections if isinstance(other, PatientProtocol))
            alive = [
                other for other in ours if not other.transport.is_closing()
            ]  # many may come before one has gone
            silent = sorted(
                (other for other in alive if other.silent), key=lambda other: other._since
            )
            for other in silent[: max(len(alive) - most, 0)]:
                other.transport.abort()

    @property
    def silent(self) -> bool:
        """Whether no request is under way: its head has not come."""
        return self.conn.their_state is h11.IDLE and (
            self.cycle is None or self.cycle.response_complete
        )

    def on_response_complete(self) -> None:
        """Begin to wait anew."""
        super().on_response_complete()
        self._since = self.loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        if self.silent and self.loop.time() - self._since >= PATIENCE - 0.1:
            self.transport.abort()
            return
        self._timer = self.loop.call_later(PATIENCE / 2, self._look)


def _files() -> int:
    """How many files this process may have open."""
    try:
        import resource
    except ImportError:  # another system
        return 2 * MOST
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
