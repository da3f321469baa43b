"""How much each past study counted, decision after decision.

scrimp.plots.source_weights(study)
"""

from typing import TYPE_CHECKING

from scrimp.errors import StudyError
from scrimp.history.events import Noted
from scrimp.history.history import History
from scrimp.plots.style import SERIES, figure, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["recorded_weights", "source_weights"]


def source_weights(study: Study) -> "Figure":
    """One line per source over the decisions that recorded weights."""
    from plotly.graph_objects import Figure, Scatter

    recorded = recorded_weights(study.history)
    if not recorded:
        raise StudyError(
            f"study {study.name!r} recorded no weights of sources; create it with learn_from=[...]"
            " and a transfer method"
        )
    names = list(dict.fromkeys(name for _, weights in recorded for name in weights))
    picture = Figure()
    for place, name in enumerate(names):
        line = {
            "color": SERIES[place % len(SERIES)],
            "dash": "solid" if place < len(SERIES) else "dot",
        }
        xs, ys = (
            [decision for decision, _ in recorded],
            [weights.get(name, 0.0) for _, weights in recorded],
        )
        picture.add_trace(Scatter(x=xs, y=ys, mode="lines+markers", line=line, name=unmarked(name)))
    picture.update_xaxes(title_text="decision")
    picture.update_yaxes(title_text="weight (share)", rangemode="tozero")
    last = ", ".join(f"{unmarked(name)} {recorded[-1][1].get(name, 0.0):.2f}" for name in names)
    words = (
        f"How much each past study counted in {len(recorded)} decisions; in the last one {last}."
    )
    return figure(picture, "What it learned from", words)


def recorded_weights(history: History) -> list[tuple[int, dict[str, float]]]:
    """(decision, weights by name of the source) for each decision that noted some."""
    return [
        (event.decision, dict(event.notes.sources.weights))
        for event in history.events
        if isinstance(event, Noted)
        and event.notes.sources is not None
        and event.notes.sources.weights
    ]
