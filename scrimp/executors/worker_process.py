"""The inside of a worker process: ``python -m scrimp.executors.worker_process CONNECTION
LIFELINE``.

It receives the objective once and then one assignment after the other over an inherited connection.
Reports wait for an answer, so that they are durable and the objective learns at once whether to go
on. The lifeline is a pipe that only the parent holds open: when the parent is gone, however it
went, the whole process group ends, so no orphan keeps training.
"""

import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from scrimp.errors import CheckpointError
from scrimp.executors.clock import wall_clock
from scrimp.executors.run_context import RunContext, run_objective
from scrimp.history.events import Ended, Event

__all__ = ["main"]


def main() -> None:
    """Serve assignments until the connection closes."""
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with_parent, args=(int(sys.argv[2]),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    sys.path[:] = connection.recv()
    try:
        objective, metric, cost = pickle.loads(
            connection.recv_bytes()
        )  # from the parent that started this process
        broken = ""
    except Exception as error:
        objective, metric, cost = None, "", None
        broken = (
            "the objective cannot be loaded in a worker process:"
            f" {error!r}\n{traceback.format_exc(limit=3)}"
        )
    while True:
        try:
            assignment = connection.recv()
        except (EOFError, OSError):
            return

        def emit(events: list[Event]) -> bool:
            return bool(_answer(connection, events))

        last: list[Event]
        if broken:
            last = [
                Ended(
                    trial=assignment.trial,
                    status="failed",
                    message=broken,
                    attempt=assignment.attempt,
                )
            ]
        else:
            try:
                context = RunContext(assignment, metric, cost, emit, wall_clock)
                last = run_objective(objective, context, wall_clock)
            except CheckpointError as error:
                connection.send(("trouble", [str(error)]))
                continue
        connection.send(("done", last))


def _answer(connection: Connection, events: list[Event]) -> Any:
    connection.send(("report", events))
    return connection.recv()


def _end_with_parent(lifeline: int) -> None:
    """Block until the parent is gone, then end this process and all it started."""
    os.read(lifeline, 1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
