"""What all figures share."""

import pytest
from plotly.graph_objects import Figure

import scrimp
from scrimp.plots.style import (
    ACCENT,
    SERIES,
    STATUS,
    TEXT,
    config_lines,
    figure,
    rgba,
    sampled_trials,
    short_value,
    thinned_items,
    unmarked,
)


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours after WCAG 2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [
            part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        ]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_every_figure_has_a_title_and_a_text_alternative() -> None:
    picture = figure(Figure(), "Losses", "Losses over trials.")
    assert (
        picture.layout.title.text == "Losses"
        and picture.layout.meta["alternative"] == "Losses over trials."
    )
    assert picture.layout.paper_bgcolor == "rgba(0,0,0,0)"  # readable on light and dark pages


def test_colours_take_transparency() -> None:
    assert rgba("#0080ff", 0.25) == "rgba(0, 128, 255, 0.25)"


@pytest.mark.parametrize("ground", ["#ffffff", "#14171c"])
def test_colours_can_be_read_on_light_and_dark(ground: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast(TEXT, ground) >= 4.0
    for colour in (*SERIES, *STATUS.values(), ACCENT):
        assert contrast(colour, ground) >= 3.0, colour


def test_names_of_users_are_not_markup() -> None:
    assert unmarked("<a href='x'>y</a>") == "&lt;a href='x'&gt;y&lt;/a&gt;"
    assert unmarked("\x1b[2J") == "�[2J" and len(unmarked("x" * 200)) == 60
    assert config_lines({"<b>": "<i>", "lr": 0.123456}) == "&lt;b&gt; = &lt;i&gt;<br>lr = 0.1235"
    assert short_value(None) == "-" and short_value(3) == "3"


def test_thinning_keeps_both_ends() -> None:
    assert thinned_items(list(range(10)), 20) == list(range(10))
    assert thinned_items(list(range(101)), 11) == list(range(0, 101, 10))


def test_a_sample_keeps_the_best_trials_and_the_order(whole: scrimp.Study) -> None:
    history = whole.history
    shown = [trial.id for trial in sampled_trials(history, history.trials, 10)]
    feasible = [trial for trial in whole.trials if trial.best is not None]
    best = sorted(feasible, key=lambda trial: trial.loss)[:5]
    assert len(shown) == 10 and shown == sorted(shown)
    assert {trial.id for trial in best} <= set(shown)
    assert sampled_trials(history, history.trials, 48) == list(history.trials)
    light = sorted(whole.trials, key=lambda trial: trial.last.metrics["memory"])[:5]
    shown = [trial.id for trial in sampled_trials(history, history.trials, 10, "memory")]
    assert {trial.id for trial in light} <= set(shown)
