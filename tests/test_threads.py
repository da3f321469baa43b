"""Inside a decision linear algebra has one thread, outside it the user's number, whatever happens
in between."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.linalg  # noqa: F401 - brings the second library
from threadpoolctl import ThreadpoolController, threadpool_info

import scrimp
from scrimp import threads
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.study.decisions import next_decision
from scrimp.study_log.history import History
from scrimp.threads import loaded_libraries, one_thread
from tests.waiting import PATIENCE

SPACE = scrimp.Space(x=scrimp.Float(0.0, 1.0))


def numbers() -> set[int]:
    return {
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    }


@pytest.fixture(autouse=True)
def three() -> Iterator[None]:
    """The user's number: three, on every machine."""
    with ThreadpoolController().limit(limits=3, user_api="blas"):
        if numbers() != {3}:
            pytest.skip("the BLAS of this machine does not let its threads be set")
        yield


@dataclass(frozen=True)
class Recording(Policy):
    """Notes the threads it finds; fails when told to."""

    seen: list[set[int]] = field(default_factory=list)
    fails: bool = False

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        self.seen.append(numbers())
        if self.fails:
            raise RuntimeError("no decision")
        return Decision(Start({"x": 0.5}, 1.0))


def empty() -> History:
    return scrimp.create_study("threads", SPACE, metric="loss", storage="memory://").history


def test_a_decision_has_one_thread_and_the_user_three() -> None:
    policy = Recording()
    next_decision(policy, empty())
    assert policy.seen == [{1}] and numbers() == {3}


def test_a_decision_that_fails_gives_the_threads_back() -> None:
    policy = Recording(fails=True)
    with pytest.raises(RuntimeError, match="no decision"):
        next_decision(policy, empty())
    assert policy.seen == [{1}] and numbers() == {3}


def test_limits_nest() -> None:
    with one_thread():
        with one_thread():
            assert numbers() == {1}
        assert numbers() == {1}
    assert numbers() == {3}


def test_decisions_that_overlap_in_threads_give_the_number_back() -> None:
    """Whoever ends first, and however often: the number of a decision is never taken for the
    user's."""
    barrier = threading.Barrier(4)

    def deciding(place: int) -> None:
        for turn in range(20):
            barrier.wait(60)
            with one_thread():
                if (place + turn) % 4:
                    np.linalg.norm(np.ones((30, 30)) @ np.ones((30, 30)))

    workers = [threading.Thread(target=deciding, args=(place,)) for place in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert numbers() == {3}
    with one_thread():
        assert numbers() == {1}
    assert numbers() == {3}


def test_the_one_that_came_second_may_end_last() -> None:
    inside, over = threading.Event(), threading.Event()

    def second() -> None:
        with one_thread():
            inside.set()
            over.wait(60)

    worker = threading.Thread(target=second)
    with one_thread():
        worker.start()
        inside.wait(60)
    assert numbers() == {3}
    over.set()
    worker.join()
    assert numbers() == {3}


def test_no_library_no_limit_and_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are errors here."""
    nothing = threads._Loaded()
    nothing.controller = lambda: ThreadpoolController().select(internal_api="none")  # type: ignore[method-assign]
    monkeypatch.setattr(threads, "_LOADED", nothing)
    policy = Recording()
    next_decision(policy, empty())
    assert policy.seen == [{3}] and loaded_libraries() == []


def test_libraries_are_looked_for_again_only_after_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    with one_thread():
        pass
    monkeypatch.setattr(
        "threadpoolctl.ThreadpoolController.__init__", lambda self: pytest.fail("searched again")
    )
    with one_thread():
        assert {library["num_threads"] for library in loaded_libraries()} == {1}


def test_scipy_is_there_when_the_first_decision_is_made_and_import_loads_nothing() -> None:
    """SciPy comes with the policy: a library that came with the first fit would be limited at the
    second decision only."""
    code = """
import sys, scrimp
assert not {"scipy", "threadpoolctl"} & set(sys.modules), "loaded at import"
study = scrimp.create_study("first", scrimp.Space(x=scrimp.Float(0.0, 1.0)), metric="loss", storage="memory://")
from scrimp.study import ledger
seen, whole = [], ledger.next_decision
ledger.next_decision = lambda *args: (seen.append("scipy.linalg" in sys.modules), whole(*args))[1]
study.ask()
assert seen == [True], seen
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE)
