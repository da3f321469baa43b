"""macOS and Windows, simulated: their modules, calls and signals are missing, and studies run in one
process, with threads, checkpoints and resumption; what cannot work there is refused by name.

The simulation removes what a system lacks before scrimp is imported. It cannot show how the system
itself behaves: the workflow `tests.yml` runs `make test-single-process` there.
"""

import subprocess
import sys
from pathlib import Path

import pytest

LACKS = {
    "darwin": """
gone = {os: ["sched_getaffinity", "posix_fadvise"], time: ["CLOCK_BOOTTIME"]}
blocked = set()
import fcntl
fcntl.F_FULLFSYNC = 51
""",
    "win32": """
gone = {
    os: [
        "fork", "forkpty", "mkfifo", "killpg", "setsid", "getpgid", "getuid", "geteuid", "pread",
        "register_at_fork", "sched_getaffinity", "O_NOFOLLOW", "O_NONBLOCK", "O_DIRECTORY",
        "O_CLOEXEC", "statvfs", "fchmod", "getloadavg", "sysconf", "uname",
    ],
    signal: ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGKILL", "SIGCHLD", "SIGPIPE", "SIGXFSZ"],
    time: ["CLOCK_BOOTTIME", "clock_gettime"],
}
blocked = {"fcntl", "resource", "termios", "tty", "pwd", "grp", "pty", "syslog"}
os.supports_fd = set()
# What shutil found out about the system when it was imported.
import shutil
shutil._use_fd_functions = False
shutil._winapi = type("Winapi", (), {"NeedCurrentDirectoryForExePath": lambda name: True})
""",
}

START = """
import asyncio, ctypes, logging, multiprocessing.connection, os, pickle, platform, random, signal
import socket, sqlite3, ssl, subprocess, sys, tempfile, threading, time, uuid
import cloudpickle, msgspec, numpy, rich.console, scipy.linalg, scipy.optimize, scipy.stats, typer
import scipy.special, scipy.spatial, threadpoolctl
threadpoolctl.sys = type("LinuxSys", (), {{**vars(sys)}})
# Older versions of it find the library of C with os.uname, once.
threadpoolctl.threadpool_info()
{lacks}
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in blocked:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
for name in blocked:
    sys.modules.pop(name, None)
for module, names in gone.items():
    for name in names:
        if name in vars(module):
            delattr(module, name)
real_open = open
def no_proc(file, *rest, **more):
    # threadpoolctl, which supports all three systems, still runs on this one
    if str(file).startswith("/proc") and str(file) != "/proc/self/maps":
        raise FileNotFoundError(2, "No such file or directory", str(file))
    return real_open(file, *rest, **more)
import builtins, io
builtins.open = io.open = no_proc
sys.platform = {platform!r}
"""

STUDY = """
import scrimp
from scrimp.cli.main import app

space = scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b"]))
assert scrimp.minimize(lambda params: params["x"], space, n_trials=8, seed=0).best_value < 0.5

def train(trial):
    state = trial.checkpoint_dir / "state.bin"
    done = int(state.read_bytes()) if trial.resumed else 0
    for epoch in trial.steps():
        done += 1
        assert done == epoch
        state.write_bytes(b"%d" % done)
        trial.report(error=trial.params["x"] + 1 / epoch)

study = scrimp.create_study(
    "s", space, metric="error", budget=scrimp.Budget("epoch", 1, 9), storage="sqlite:///a b.db", seed=0
)
study.optimize(train, n_trials=8)
loaded = scrimp.load_study("s", storage="sqlite:///a b.db")
loaded.optimize(train, n_trials=10)
print(loaded.explain())

shared = scrimp.create_study("t", space, storage="sqlite:///a b.db")
def work():
    for _ in range(3):
        trial = shared.ask()
        shared.tell(trial, trial.params["x"])
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert len(shared.trials) == 9
app(["show", "s", "--storage", "sqlite:///a b.db"], standalone_mode=False)
app(["verify", "s", "--storage", "sqlite:///a b.db"], standalone_mode=False)
"""

REFUSALS = """
for wrong in (
    lambda: shared.optimize(lambda trial: 1.0, n_trials=20, workers=2),
    lambda: shared.optimize(scrimp.Command("python train.py"), n_trials=20),
    lambda: scrimp.create_study("u", space, storage="journal:///folder"),
):
    try:
        wrong()
    except scrimp.errors.ScrimpError as error:
        print(f"refused: {error}")
"""


@pytest.mark.parametrize("name", ["darwin", "win32"])
def test_one_process_needs_nothing_of_linux(name: str, tmp_path: Path) -> None:
    script = START.format(lacks=LACKS[name], platform=name) + STUDY
    (tmp_path / "train.py").touch()
    run = subprocess.run(
        [sys.executable, "-c", script + (REFUSALS if name == "win32" else "")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "best: error" in run.stdout
    refused = [line for line in run.stdout.splitlines() if line.startswith("refused: ")]
    if name == "win32":
        workers, command, journal = refused
        assert "worker processes and commands need Linux or macOS" in workers
        assert workers == command and "journal folders need Linux or macOS" in journal
