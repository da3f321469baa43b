"""Scripts as the tests of executors start them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from scrimp.executors.command import CommandExecutor, Rules
from scrimp.executors.command_line import Command
from tests.waiting import eventually

Start = Callable[..., CommandExecutor]


@pytest.fixture
def start() -> Iterator[Start]:
    """Makes executors of a piece of Python that are closed afterwards."""
    made: list[CommandExecutor] = []

    def make(
        code: str, environments: Sequence[Mapping[str, str]] = ({},), **settings: Any
    ) -> CommandExecutor:
        command = Command(
            [
                "{python}",
                "-I",
                "-S",
                "-u",
                "-c",
                code.replace("{", "{{").replace("}", "}}"),
                "{trial}",
            ]
        )
        made.append(
            CommandExecutor(Rules(command, ("loss",), **{"grace": 1.0, **settings}), environments)
        )
        return made[-1]

    yield make
    for executor in made:
        executor.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def gone(*pids: int) -> bool:
    eventually(lambda: not any(alive(pid) for pid in pids))
    return True
