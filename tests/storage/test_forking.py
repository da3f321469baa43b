"""Connections are closed before a fork, and neither side is left with a lock nobody holds."""

import os
import threading

from scrimp.storage.forking import Connected, outer_lock


class Line(Connected):
    def __init__(self) -> None:
        super().__init__()
        self.closed = 0

    def close(self) -> None:
        with self.lock:
            self.closed += 1


def test_closed_in_both_and_usable_in_both() -> None:
    line = Line()
    child = os.fork()
    if child == 0:  # leaves without running anything of the test framework
        free = line.lock.acquire(timeout=5)
        os._exit(0 if free and line.closed == 1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    free = []

    def use() -> None:
        with line.lock:
            free.append(line.closed)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(timeout=5)
    assert free == [1]


def test_a_fork_waits_for_work_in_another_thread() -> None:
    line = Line()
    inside, finish, order = threading.Event(), threading.Event(), []

    def work() -> None:
        with line.lock:
            inside.set()
            finish.wait(0.2)
            order.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if order == ["worked"] and line.lock.acquire(timeout=5) else 1)
    order.append("forked")
    assert os.waitpid(child, 0)[1] == 0 and order == ["worked", "forked"]
    thread.join()


def test_what_is_gone_is_forgotten() -> None:
    line = Line()
    del line
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_fork_waits_for_the_locks_around_connections() -> None:
    outer, line = outer_lock(), Line()
    inside, order = threading.Event(), []

    def work() -> None:
        with outer:
            inside.set()
            threading.Event().wait(0.2)
            # Taken second, as everywhere: a fork that took it first would wait for ever.
            with line.lock:
                order.append("worked")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        free = outer.acquire(timeout=5) and line.lock.acquire(timeout=5)
        os._exit(0 if free and order == ["worked"] else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert outer.acquire(timeout=5)
