"""A command with all it starts: signalled, ended, and found though its keeper was killed."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.executors import keeper
from scrimp.executors.process_tree import (
    PASS_VARIABLE,
    SECRETS,
    ProcessTree,
    hidden_secrets,
    inherited,
)
from tests.waiting import eventually

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells who is whose child"
)

AWAY = "setsid env -i sleep 600 & sleep 600 & echo ready; wait"

Make = Callable[..., ProcessTree]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[ProcessTree] = []

    def tree(code: str, **options: Any) -> ProcessTree:
        made.append(
            ProcessTree(["sh", "-c", code], secrets.token_hex(8), stdout=subprocess.PIPE, **options)
        )
        return made[-1]

    yield tree
    for one in made:
        one.end()
        assert one.process.stdout is not None
        one.process.stdout.close()


def members(tree: ProcessTree) -> list[int]:
    """All processes of a tree that runs AWAY, once they are there."""
    assert tree.process.stdout is not None and tree.process.stdout.readline() == b"ready\n"
    eventually(lambda: len(keeper.descendants(tree.process.pid)) == 3)
    return keeper.descendants(tree.process.pid)


def test_a_command_that_ends_by_itself(make: Make) -> None:
    told: list[int] = []
    tree = make("exit 3", known=told.append)
    assert tree.process.wait(30) == 3 and told == [tree.process.pid]


def test_signals_reach_all_of_it(make: Make) -> None:
    tree = make(AWAY)
    everyone = members(tree)
    tree.signal(signal.SIGTERM)
    assert tree.process.wait(30) == -signal.SIGTERM
    assert all(keeper.start_time(pid) is None for pid in everyone)


def test_ending_leaves_nobody_and_twice_is_fine(make: Make) -> None:
    tree = make("trap '' TERM; " + AWAY)
    everyone = members(tree)
    tree.end()
    tree.end()
    assert (
        all(keeper.start_time(pid) is None for pid in everyone)
        and tree.process.returncode == -signal.SIGKILL
    )


def test_a_stopped_command_is_ended(make: Make) -> None:
    tree = make(AWAY)
    everyone = members(tree)
    tree.signal(signal.SIGSTOP)
    tree.end()
    assert all(keeper.start_time(pid) is None for pid in everyone)


def test_who_was_below_a_keeper_that_was_killed_is_remembered(make: Make) -> None:
    """Also who has neither its session nor its environment."""
    tree = make(AWAY)
    everyone = members(tree)
    eventually(lambda: looked(tree) == set(everyone))
    os.kill(tree.process.pid, signal.SIGKILL)
    tree.process.wait()
    tree.end()
    eventually(lambda: all(keeper.start_time(pid) is None for pid in everyone))


def looked(tree: ProcessTree) -> set[int]:
    tree.look()
    return set(tree._members)


def test_a_folder_that_is_not_there_is_an_error_and_leaks_nothing(make: Make) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(FileNotFoundError):
        make("exit 0", cwd="/nowhere")
    assert len(os.listdir("/proc/self/fd")) == before


SECRET = "hunter2secret"


def test_secrets_stay_here() -> None:
    given = {
        **dict.fromkeys(SECRETS, SECRET),
        "PATH": "/bin",
        "SCRIMP_PUBLIC_KEY": "k.pub",
        "PGHOST": "db",
    }
    assert inherited(given) == {"PATH": "/bin", "SCRIMP_PUBLIC_KEY": "k.pub", "PGHOST": "db"}
    passed = inherited({**given, PASS_VARIABLE: "PGPASSWORD, OTHER"})
    assert passed["PGPASSWORD"] == SECRET and "SCRIMP_PRIVATE_KEY" not in passed


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("sqlite:///s.db", True),
        ("postgresql://ann@db/hpo?sslmode=require", True),
        (f"postgresql://ann:{SECRET}@db/hpo", False),
        (f"postgresql://ann@db/hpo?password={SECRET}", False),
        (f"postgresql://ann@db/hpo?%70assword={SECRET}", False),
    ],
)
def test_a_storage_with_a_password_is_a_secret(url: str, kept: bool) -> None:
    assert ("SCRIMP_STORAGE" in inherited({"SCRIMP_STORAGE": url})) is kept


def seen(trial: Any) -> float:
    import os

    assert not [name for name, value in os.environ.items() if "hunter2secret" in value]
    return 1.0


def test_they_are_hidden_while_foreign_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", SECRET)
    monkeypatch.setenv("SCRIMP_STORAGE", f"postgresql://ann:{SECRET}@db/hpo")
    monkeypatch.setenv("SCRIMP_DASHBOARD_TOKEN", SECRET)
    monkeypatch.setenv(PASS_VARIABLE, "PGPASSWORD")
    monkeypatch.setenv("THEIRS", "stays")
    with hidden_secrets():
        assert [name for name, value in os.environ.items() if SECRET in value] == ["PGPASSWORD"]
        assert os.environ["THEIRS"] == "stays"
    assert os.environ["SCRIMP_DASHBOARD_TOKEN"] == SECRET


@pytest.mark.parametrize("kind", ["script", "function"])
def test_neither_scripts_nor_worker_processes_see_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS - {"SCRIMP_PRIVATE_KEY", "SCRIMP_TOKEN"}:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("SCRIMP_STORAGE", f"postgresql://ann:{SECRET}@db/hpo")
    monkeypatch.setenv("THEIRS", "is passed on")
    script = tmp_path / "look.sh"
    script.write_text(f"env > {tmp_path}/seen; echo 'scrimp: {{\"value\": 1}}'")
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "s", space, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    if kind == "script":
        study.optimize(scrimp.Command(["sh", str(script)]), n_trials=1)
        text = (tmp_path / "seen").read_text()
        assert SECRET not in text and "THEIRS=is passed on" in text
    else:
        study.optimize(seen, n_trials=1, workers=2)
    assert study.best_value == 1.0
