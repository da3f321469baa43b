"""The live display in a real terminal, 80 and 200 columns wide, and Ctrl-C: a clean stop with the
command that resumes it."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import scrimp
from tests.waiting import eventually

TMUX = shutil.which("tmux")
pytestmark = pytest.mark.skipif(
    TMUX is None, reason="tmux is not installed: the live display is not tried in a terminal"
)

SCRIMP = str(Path(sys.executable).with_name("scrimp"))

STUDY = """\
name = "live"
objective = "slow:train"
metric = "val_error"
method = "asha"
storage = "sqlite:///live.db"
seed = 1

[space]
x = {type = "float", low = 0, high = 1}

[budget]
name = "epoch"
minimum = 1
maximum = 9

[run]
n_trials = 500
"""

TRAIN = """\
import time

def train(trial):
    for epoch in trial.steps():
        time.sleep(0.03)
        trial.report(val_error=trial.params["x"] + 1 / epoch)
"""


class Terminal:
    """A window of tmux on a server of its own."""

    def __init__(self, folder: Path, columns: int) -> None:
        self._tmux = ["tmux", "-L", f"scrimp-{os.getpid()}-{columns}", "-f", "/dev/null"]
        size = ["-x", str(columns), "-y", "40"]
        self._call("new-session", "-d", *size, "-c", str(folder), "sh")

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, timeout=30, check=True
        )
        return done.stdout

    def type(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    @property
    def screen(self) -> str:
        return self._call("capture-pane", "-p")

    def wait(self, ready: Callable[[str], bool]) -> str:
        """The screen once ``ready`` holds of it."""
        eventually(lambda: ready(self.screen), pause=0.1)
        return self.screen

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, timeout=30, check=False)


@pytest.fixture(params=[80, 200])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "slow.py").write_text(TRAIN)
    opened = Terminal(tmp_path, request.param)
    yield opened
    opened.close()


def test_the_display_and_ctrl_c(terminal: Terminal, tmp_path: Path) -> None:
    terminal.type(f"clear; {shlex.quote(SCRIMP)} run study.toml", "Enter")
    screen = terminal.wait(lambda text: "running  trial " in text and " left" in text)
    titles = [line for line in screen.splitlines() if line.startswith("live  minimize val_error")]
    assert len(titles) == 1 and titles[0].endswith(" left")  # drawn in place; nothing is cut off
    assert "━" in screen and " of 500 configurations begun" in screen and "spent    " in screen
    assert "best     " in screen and "         x=" in screen
    terminal.type("C-c")
    screen = terminal.wait(lambda text: "Resume with" in text)
    assert "Traceback" not in screen
    assert "run study.toml" in screen.replace("\n", "")
    history = scrimp.load_study("live", storage=f"sqlite:///{tmp_path}/live.db").history
    assert (
        history.counts["running"] == 0
        and history.counts["failed"] == 0
        and history.best is not None
    )
    told = history.length
    terminal.type("clear", "Enter")
    terminal.wait(lambda text: "Resume with" not in text)
    terminal.type(f"{shlex.quote(SCRIMP)} run study.toml", "Enter")
    terminal.wait(lambda text: "resumes with" in text and "trials   " in text)
    terminal.type("C-c")
    terminal.wait(lambda text: "Resume with" in text)
    assert scrimp.load_study("live", storage=f"sqlite:///{tmp_path}/live.db").history.length > told
