"""A worker as a function, for launchers such as submitit and Dask.

    executor = submitit.AutoExecutor("logs")                   # Slurm, or this machine
    executor.submit(LaunchedWorker("digits", "postgresql://ann@db.example/hpo"))

    client = dask.distributed.Client("tcp://scheduler:8786")
    client.submit(LaunchedWorker("digits", "postgresql://ann@db.example/hpo"), pure=False)

The function starts ``scrimp worker`` as a process and waits for it. submitit calls `checkpoint` when
a job is preempted or its time is up (SIGUSR1 or SIGUSR2): the worker finishes its step, which
commits the checkpoint, hands the trial back and ends. The job returns to the queue; meanwhile any
free worker can resume the trial.

The process watches its standard input: when its parent is gone, for example with a killed Dask
worker, the pipe closes and the process ends as if asked to.
"""

import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from scrimp.errors import StorageError, StudyError

FINISHED, UNFINISHED, WRONG = 0, 1, 2
"""Exit codes of ``scrimp worker``."""


@dataclass(eq=False)
class LaunchedWorker:
    """A worker for a study in ``storage``. ``options`` are those of ``scrimp worker``, such as
    ``("--workers", "2")``; ``environment`` is added to that of the job. A worker that is asked to
    end has ``grace`` seconds to finish its step."""

    study: str
    storage: str = field(repr=False)  # its URL may hold a password
    options: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    grace: float = 60.0
    _process: "subprocess.Popen[str] | None" = field(default=None, init=False, repr=False)
    _asked: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.storage.startswith("memory:"):
            raise StudyError(
                f"storage is {self.storage!r}; workers on other machines need one that they can"
                " reach, such as postgresql:// or a shared journal:// folder"
            )

    def __getstate__(self) -> dict[str, object]:
        """Leave out the process, which cannot be pickled."""
        return {**self.__dict__, "_process": None, "_asked": False}

    def __call__(self) -> bool:
        """Work until the study is finished; return False if asked to end before that."""
        words = ["worker", self.study, *self.options]
        command = [sys.executable, "-m", "scrimp.integrations.launching", str(self.grace), *words]
        # Every user of a machine can read its command lines, so the URL is passed in the environment.
        environment = {**os.environ, **self.environment, "SCRIMP_STORAGE": self.storage}
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        try:
            code, last = self._followed(self._process)
        finally:
            self._end()
            assert self._process.stdin is not None
            self._process.stdin.close()
        if code == FINISHED:
            return True
        if self._asked or (code == UNFINISHED and "asked to end" in last):
            return False
        why = last or f"it ended with code {code}"
        raise (StudyError if code == WRONG else StorageError)(
            f"the worker for study {self.study!r} failed: {why}"
        )

    def checkpoint(self) -> object:
        """Called by submitit before it returns the job to the queue."""
        from submitit.helpers import DelayedSubmission

        self._end()
        return DelayedSubmission(self)

    def _followed(self, process: "subprocess.Popen[str]") -> tuple[int, str]:
        """Wait for the process and show its errors; return its exit code and last line."""
        last = ""
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                sys.stderr.write(line)
                last = line.strip() or last
        return process.wait(), last

    def _end(self) -> None:
        """Ask the process to finish its step; kill it if that takes too long."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        self._asked = True
        process.terminate()
        try:
            process.wait(self.grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Run ``python -m scrimp.integrations.launching GRACE worker STUDY ...`` until the command ends
    or its standard input closes."""
    grace, *words = sys.argv[1:]
    threading.Thread(target=_end_with_parent, args=(float(grace),), daemon=True).start()
    sys.argv[:] = ["scrimp", *words]
    runpy.run_module("scrimp", run_name="__main__")


def _end_with_parent(grace: float) -> None:
    """Wait until the parent is gone, then end the process and its trials."""
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(grace)
    os._exit(UNFINISHED)


if __name__ == "__main__":
    main()
