"""Numbers and durations for people."""

import pytest

from scrimp.dashboard.render import _duration, _number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456789, "0.123457"),
        (None, "–"),
        (3, "3"),
        (True, "True"),
        ("<b>", "<b>"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers(value: object, text: str) -> None:
    assert _number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "–"), (3.26, "3.3 s"), (61, "1 min 1 s"), (7300, "2 h 1 min")]
)
def test_durations(seconds: float | None, text: str) -> None:
    assert _duration(seconds) == text
