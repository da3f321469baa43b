"""Numbers, spans of time and drawn paths, as people read them."""

import pytest

from scrimp.display.figures import config_words, duration, number, shortened_text, sparkline


def test_numbers() -> None:
    given = [0.020862312, 1e-7, 3.0, 12345.678, None, True, "adam", 7]
    assert [number(value) for value in given] == [
        "0.02086", "1e-07", "3", "1.235e+04", "-", "True", "adam", "7",
    ]  # fmt: skip
    assert config_words({"lr": 0.1, "n": 3}) == "lr=0.1, n=3"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3600, "1 h 0 min"), (90000, "1 d 1 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("most", range(1, 25))
def test_texts_are_cut_between_words(most: int) -> None:
    text = "ModuleNotFoundError: no module named torch"
    shown = shortened_text(text, most)
    assert len(shown) <= most and shown.endswith("…")
    if most > 22:
        assert text[len(shown) - 1] == " "


def test_a_text_that_fits_stays() -> None:
    assert (
        shortened_text("two words", 9) == "two words" and shortened_text("two words", 8) == "two…"
    )


def test_a_path_falls_at_its_places_and_ends_at_its_end() -> None:
    path = [(0.0, 9.0), (9.0, 1.0)]
    assert sparkline(path, 10.0, 10) == "█████████▁"
    assert sparkline(path, 10.0, 1) == "▁"  # the end is always there
    assert sparkline([(0.0, 2.0)], 5.0, 3) == "▁▁▁" and sparkline([], 5.0, 3) == ""
    late = sparkline([(0.0, 100.0), (1.0, 1.0), (2.0, 0.5), (3.0, 0.1)], 4.0, 4)
    assert late[0] == "█" and late[1] > late[3] == "▁"  # small steps after a large one still show
