"""The look all figures share: readable in light and dark, titles and axis names always there, a
text alternative.

Text is of middle brightness, at least 4:1 against white and against near-black, on a transparent
ground; lines and markers are at least 3:1. `SCALE` is for coloured lines and dots and keeps to that all along, from blue to
gold, which everybody can tell apart; `AREA` is for coloured ground, even to the eye from end to
end. Names that come from users pass through `unmarked`, because
Plotly reads some HTML in texts.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, TypeVar

from scrimp.json_values import Scalar

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = [
    "ACCENT",
    "AREA",
    "BAND",
    "FAILED",
    "LINE",
    "MUTED",
    "SCALE",
    "SERIES",
    "STATUS",
    "TEXT",
    "config_lines",
    "figure",
    "rgba",
    "short_value",
    "thinned_items",
    "unmarked",
]

LINE = "#3b78c2"  # what a model believes
BAND = "rgba(59, 120, 194, 0.22)"  # how sure it is
ACCENT = "#d0761f"  # what was chosen
MUTED = "#8a94a3"  # what was seen
FAILED = "#c94a3b"
TEXT = "#6f7886"
SCALE = ((0.0, "#2b62b4"), (0.25, "#5277ad"), (0.5, "#7d8391"), (0.75, "#a0835f"), (1.0, "#c2811c"))
AREA = "Viridis"
SERIES = (LINE, ACCENT, "#2f8f63", "#9a5bb5", FAILED, "#1f8a99", "#a07a1f", "#c2558f")
STATUS = {
    "running": LINE,
    "paused": MUTED,
    "completed": "#2f8f63",
    "stopped": ACCENT,
    "failed": FAILED,
    "stale": "#9a5bb5",
}

T = TypeVar("T")


def rgba(colour: str, alpha: float) -> str:
    """A ``#rrggbb`` colour with transparency.

    >>> rgba("#ff0000", 0.5)
    'rgba(255, 0, 0, 0.5)'
    """
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {alpha:g})"


def unmarked(text: object, most: int = 60) -> str:
    """Text that Plotly shows as it is: nothing of it is read as markup, and it has an end.

    >>> unmarked("<b>loud</b>")
    '&lt;b&gt;loud&lt;/b&gt;'
    """
    shown = "".join(character if character.isprintable() else "�" for character in str(text))
    return escape(shown if len(shown) <= most else f"{shown[: most - 1]}…", quote=False)


def short_value(value: object) -> str:
    """A value of a parameter or a metric, short; plain."""
    return f"{value:.4g}" if isinstance(value, float) else unmarked("-" if value is None else value)


def config_lines(config: Mapping[str, Scalar]) -> str:
    """A configuration for a hover text, one parameter per line."""
    return "<br>".join(f"{unmarked(name)} = {short_value(value)}" for name, value in config.items())


def thinned_items(items: Sequence[T], most: int) -> list[T]:
    """At most ``most`` items, evenly spaced, the last always among them: a picture needs no more.

    >>> thinned_items([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    if len(items) <= most:
        return list(items)
    last = len(items) - 1
    return [items[round(place * last / (most - 1))] for place in range(most)]


def figure(figure: "Figure", title: str, alternative: str) -> "Figure":
    """Give a Plotly figure its title, its look, and a text that says what it shows."""
    figure.update_layout(
        title={"text": title, "x": 0.02, "xanchor": "left", "y": 0.98, "yanchor": "top"},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": TEXT, "size": 13},
        margin={"l": 70, "r": 24, "t": 88, "b": 56},
        legend={"orientation": "h", "y": 1.01, "yanchor": "bottom", "x": 0.0, "xanchor": "left"},
        hoverlabel={"namelength": -1},
        meta={"alternative": alternative},
    )
    apart = {"ticks": "outside", "ticklen": 6, "tickcolor": "rgba(0,0,0,0)"}  # from numbers beside
    figure.update_xaxes(**apart)
    figure.update_xaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    figure.update_yaxes(gridcolor=rgba(MUTED, 0.25), zeroline=False, linecolor=MUTED)
    return figure
