"""Messages are cut to a size, printable, and have one line that says most."""

from typing import Any

import scrimp
from scrimp.study_log.messages import MAX_MESSAGE_CHARACTERS, headline, readable, shortened


def test_the_line_of_a_message_that_says_most() -> None:
    assert headline("") == "" and headline("\n one \n") == "one"
    assert headline("code 1\nTraceback\n  in x\nKeyError: 3\n\n") == "code 1: KeyError: 3"
    assert headline("KeyError: 3\nTraceback\nKeyError: 3") == "KeyError: 3"


def test_messages_have_a_largest_size() -> None:
    message = readable("tensor(" + "0.1234, " * 1_000_000 + ") out of memory")
    assert (
        len(message) <= MAX_MESSAGE_CHARACTERS
        and message.startswith("tensor(0.1234")
        and message.endswith("out of memory")
    )
    assert "characters left out]" in message and readable("short") == "short"


def test_values_in_messages_are_cut() -> None:
    assert shortened("a" * 400) == "'" + "a" * 299 + "…" and shortened(ValueError("no")) == "no"


def test_a_failing_objective_leaves_a_short_message() -> None:
    def objective(trial: Any) -> float:
        raise RuntimeError("tensor(" + "0.1234, " * 100_000 + ")")

    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    study.optimize(objective, n_trials=1, catch=(Exception,))
    assert len(study.trials[0].message) <= MAX_MESSAGE_CHARACTERS and study.trials[
        0
    ].message.startswith("RuntimeError")
    assert len(headline(study.trials[0].message)) < 1100
