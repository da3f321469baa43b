"""SIGTERM is remembered once; then it is what it was before."""

import os
import signal
import threading

import pytest

from scrimp.executors.sigterm import ends_on_request


def test_a_request_is_remembered_and_a_second_one_is_not_caught() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ends_on_request() as ending:
        assert not ending() and signal.getsignal(signal.SIGTERM) is not before
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending() and signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_preemption_is_a_request_however_often_it_comes(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with ends_on_request() as ending:
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert ending()
    assert signal.getsignal(number) is before


def test_other_threads_have_no_signals() -> None:
    answers: list[bool] = []

    def ask() -> None:
        with ends_on_request() as ending:
            answers.append(ending())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert answers == [False]
