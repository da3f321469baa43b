"""The main program of a worker process: ``python -m scrimp.executors.worker_process CONNECTION
LIFELINE``.

It receives the objective once, then one assignment after another, over an inherited connection.
Each report waits for an answer, so it is durable and the objective learns at once whether to
continue. The lifeline is a pipe that only the parent holds open: when the parent is gone, for
whatever reason, the whole process group ends, so that no orphan keeps training.
"""

import os
import pickle
import signal
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from scrimp.executors.live_trial import Task
from scrimp.executors.worker_slots import run_assignment
from scrimp.study_log.events import Event


def main() -> None:
    """Serve assignments until the connection closes."""
    connection = Connection(int(sys.argv[1]))
    threading.Thread(target=_end_with_parent, args=(int(sys.argv[2]),), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    sys.path[:] = connection.recv()
    task: Task | None = None
    broken = ""
    try:
        # The bytes come from the parent that started this process.
        task = pickle.loads(connection.recv_bytes())
    except Exception as error:
        why = f"{error!r}\n{traceback.format_exc(limit=3)}"
        broken = f"the objective cannot be loaded in a worker process: {why}"
    while True:
        try:
            assignment = connection.recv()
        except (EOFError, OSError):
            return

        def emit(events: list[Event]) -> bool:
            connection.send(("report", events))
            return bool(connection.recv())

        if task is None:
            connection.send(("done", [assignment.ended("failed", broken)]))
        else:
            connection.send(run_assignment(task, assignment, emit))


def _end_with_parent(lifeline: int) -> None:
    """Block until the parent is gone, then end this process and all it started."""
    os.read(lifeline, 1)
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
