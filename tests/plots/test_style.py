"""What all figures share."""

from plotly.graph_objects import Figure

from scrimp.plots.style import figure, rgba


def test_every_figure_has_a_title_and_a_text_alternative() -> None:
    picture = figure(Figure(), "Losses", "Losses over trials.")
    assert picture.layout.title.text == "Losses" and picture.layout.meta["alternative"] == "Losses over trials."
    assert picture.layout.paper_bgcolor == "rgba(0,0,0,0)"  # readable on light and dark pages


def test_colours_take_transparency() -> None:
    assert rgba("#0080ff", 0.25) == "rgba(0, 128, 255, 0.25)"
