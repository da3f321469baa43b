"""The look all figures share: readable in light and dark, titles and axis names always there, a text alternative."""

from typing import Any

__all__ = ["ACCENT", "BAND", "FAILED", "LINE", "MUTED", "figure", "rgba"]

LINE = "#3b78c2"  # what a model believes
BAND = "rgba(59, 120, 194, 0.22)"  # how sure it is
ACCENT = "#d9822b"  # what was chosen
MUTED = "#8a94a3"  # what was seen
FAILED = "#c0392b"


def rgba(colour: str, alpha: float) -> str:
    """A ``#rrggbb`` colour with transparency.

    >>> rgba("#ff0000", 0.5)
    'rgba(255, 0, 0, 0.5)'
    """
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


def figure(figure: Any, title: str, alternative: str) -> Any:
    """Give a Plotly figure its title, its look, and a text that says what it shows."""
    figure.update_layout(
        title={"text": title, "x": 0.02, "xanchor": "left", "y": 0.98, "yanchor": "top"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": MUTED, "size": 13},
        margin={"l": 70, "r": 24, "t": 88, "b": 56},
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0.0, "xanchor": "left"},
        hoverlabel={"namelength": -1},
        meta={"alternative": alternative},
    )
    figure.update_xaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    figure.update_yaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    return figure
