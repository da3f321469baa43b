"""SIGTERM is remembered once; then it is what it was before."""

import os
import signal
import threading

from scrimp.tuning.sigterm import ends_on_request


def test_a_request_is_remembered_and_a_second_one_is_not_caught() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with ends_on_request() as ending:
        assert not ending() and signal.getsignal(signal.SIGTERM) is not before
        os.kill(os.getpid(), signal.SIGTERM)
        assert ending() and signal.getsignal(signal.SIGTERM) is before
    assert signal.getsignal(signal.SIGTERM) is before


def test_other_threads_have_no_signals() -> None:
    answers: list[bool] = []

    def ask() -> None:
        with ends_on_request() as ending:
            answers.append(ending())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert answers == [False]
