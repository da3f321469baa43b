"""The walkthroughs of ARCHITECTURE.md are true: each journey runs, its calls are traced, and the
listed functions are called in the listed order.

A journey is a list of `file.py` `function` under a bold title. A class stands for any of its
methods. Calls are recorded in this process (all threads) and, for a report from a worker, in the
worker process too: within each process the order must hold.
"""

import inspect
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import scrimp
from scrimp.cli.main import main
from tests.syntax_trees import PACKAGE, ROOT

HOP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.<>]+)`", re.M)
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))

Call = tuple[str, str]
"""A file below the package and the qualified name of a function in it."""


def journeys() -> dict[str, list[Call]]:
    """The listed hops of each walkthrough, by its title."""
    section = TEXT.split("## Walkthroughs")[1].split("\n## ")[0]
    parts = re.split(r"^\*\*(.+?)\*\*", section, flags=re.M)
    return {
        title: [(file, name) for file, name in HOP.findall(body)]
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


class Trace:
    """Every call of a function of the package, in order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._root = str(PACKAGE) + "/"

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        function = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # not the body of a class
        if event == "call" and function and name.startswith(self._root):
            self.calls.append((name[len(self._root) :], frame.f_code.co_qualname))


@contextmanager
def traced() -> Iterator[list[Call]]:
    """Record the calls of all threads."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace.calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def missing_hops(hops: Sequence[Call], calls: Sequence[Call]) -> list[str]:
    """The hops that are not called after the one before, in order."""
    place, missing = 0, []
    for file, name in hops:
        found = next(
            (
                number
                for number in range(place, len(calls))
                if calls[number][0] == file
                and (calls[number][1] == name or calls[number][1].startswith(f"{name}."))
            ),
            None,
        )
        if found is None:
            missing.append(f"{file} {name}")
        else:
            place = found + 1
    return missing


def asked(folder: Path) -> list[Call]:
    study = scrimp.create_study("s", SPACE, method="gp", storage=f"sqlite:///{folder}/s.db", seed=0)
    for number in range(14):
        study.tell(study.ask(), float(number % 5))
    with traced() as calls:
        study.ask()
    return calls


def report_in_worker(folder: Path) -> list[Call]:
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage=f"sqlite:///{folder}/s.db",
    )
    target = str(folder / "calls.txt")

    def objective(trial: scrimp.LiveTrial) -> None:
        from tests.test_walkthroughs import traced

        for step in trial.steps():
            (trial.checkpoint_dir / "state").write_text(str(step))
            with traced() as calls:
                trial.report(value=trial.params["lr"])
            with open(target, "a") as file:
                file.writelines(f"{where} {name}\n" for where, name in calls)

    with traced() as calls:
        study.optimize(objective, n_trials=2, workers=2, progress=False)
    inside = [tuple(line.split()) for line in Path(target).read_text().splitlines()]
    return [*inside, *calls]  # type: ignore[list-item]


def freeze_thaw(folder: Path) -> list[Call]:
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", 1, 9),
        method="freeze-thaw",
        storage="memory://",
        seed=0,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(value=abs(trial.params["lr"] - 0.1) + 1.0 / step)

    study.optimize(objective, n_trials=8, progress=False)
    hops, found = journeys()["A freeze-thaw decision"], list[Call]()
    for _ in range(60):
        with traced() as calls:
            trial = study.ask()
        found = min(found, calls, key=lambda seen: len(missing_hops(hops, seen)))
        study.report(trial, step=trial.budget + 1, value=0.3)
    return found


def select_next(folder: Path) -> list[Call]:
    rows = [f"{step},{task},{0.5 + step / 1000}" for step in (100, 200, 300) for task in "ab"]
    scores = folder / "scores.csv"
    scores.write_text(
        "checkpoint,task,score\n" + "\n".join([*rows, "400,a,", "400,b,", "500,a,"]) + "\n"
    )
    with traced() as calls, pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(sys, "argv", ["scrimp", "select", "next", str(scores)])
        main()
    return calls


def page(folder: Path) -> list[Call]:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import create_app
    from scrimp.storage.open import open_storage

    url = f"sqlite:///{folder}/s.db"
    study = scrimp.create_study("s", SPACE, method="random", storage=url)
    for number in range(5):
        study.tell(study.ask(), float(number))
    client = TestClient(create_app(open_storage(url)), base_url="http://127.0.0.1")
    with traced() as calls:
        assert client.get("/study", params={"name": "s"}).status_code == 200
        assert client.get("/figure", params={"study": "s", "name": "history"}).status_code == 200
    return calls


def learned(folder: Path) -> list[Call]:
    url = f"sqlite:///{folder}/s.db"
    for name in ("one", "two", "three", "four"):
        past = scrimp.create_study(name, SPACE, method="sobol", storage=url)
        for _ in range(20):
            trial = past.ask()
            past.tell(trial, abs(float(trial.params["lr"]) - 0.1))
    study = scrimp.create_study("now", SPACE, storage=url, learn_from="all", seed=0)
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, abs(float(trial.params["lr"]) - 0.1))
    loaded = scrimp.load_study("now", storage=url)
    with traced() as calls:
        loaded.ask()
    return calls


PLAYED: dict[str, Callable[[Path], list[Call]]] = {
    "`study.ask()`": asked,
    "`trial.report(...)`": report_in_worker,
    "A freeze-thaw decision": freeze_thaw,
    "`scrimp select next scores.csv`": select_next,
    "A page of the dashboard": page,
    "A decision that learns from past studies": learned,
}


@pytest.mark.parametrize("title", PLAYED)
def test_the_listed_functions_are_called_in_this_order(title: str, tmp_path: Path) -> None:
    hops = journeys()[title]
    assert len(hops) >= 6
    assert missing_hops(hops, PLAYED[title](tmp_path)) == []


def test_every_walkthrough_is_played() -> None:
    assert set(journeys()) == set(PLAYED)


def test_a_wrong_order_is_noticed() -> None:
    calls = [("a.py", "first"), ("a.py", "Second.call")]
    assert missing_hops([("a.py", "first"), ("a.py", "Second")], calls) == []
    assert missing_hops([("a.py", "Second"), ("a.py", "first")], calls) == ["a.py first"]


def test_one_ask_stays_small(tmp_path: Path) -> None:
    calls = asked(tmp_path)
    assert len({file for file, _ in calls}) <= MAX_FILES_OF_AN_ASK
    assert len(set(calls)) <= MAX_FUNCTIONS_OF_AN_ASK


MAX_FILES_OF_AN_ASK = 45
MAX_FUNCTIONS_OF_AN_ASK = 300
"""What one decision of `gp` on SQLite may touch: a newcomer has to be able to follow it."""
