"""What every worker did when: a bar per grant, coloured by how it ended.

scrimp.plots.timeline(study)
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrimp.history.events import BudgetGranted, Ended, Event, Lost, Reported
from scrimp.history.history import History
from scrimp.plots.style import STATUS, figure, unmarked
from scrimp.tuning.study import Study

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure

__all__ = ["Stretch", "stretches", "timeline"]

MOST = 2000
"""Stretches shown at most: the newest."""

BY_HAND = "asked by hand"


@dataclass(frozen=True)
class Stretch:
    """One grant from its beginning to its end: by whom, and in which state it left its trial."""

    trial: int
    worker: str
    begin: float
    end: float
    status: str


def timeline(study: Study) -> "Figure":
    """One lane per worker and parallel slot, one bar per grant."""
    from plotly.graph_objects import Bar, Figure

    history = study.history
    found = stretches(history)
    shown = _lanes(found[-MOST:])
    picture = Figure()
    for status, colour in STATUS.items():
        bars = [(lane, stretch) for lane, stretch in shown if stretch.status == status]
        if not bars:
            continue
        picture.add_trace(
            Bar(
                orientation="h",
                y=[lane for lane, _ in bars],
                base=[stretch.begin for _, stretch in bars],
                x=[stretch.end - stretch.begin for _, stretch in bars],
                marker={"color": colour, "line": {"width": 0.5, "color": "rgba(255,255,255,0.6)"}},
                name=status,
                meta={"trials": True},
                customdata=[[stretch.trial, stretch.end - stretch.begin] for _, stretch in bars],
                hovertemplate=(
                    f"trial %{{customdata[0]}}, {status} after %{{customdata[1]:.1f}}"
                    " s<extra></extra>"
                ),
            )
        )
    lanes = sorted({lane for lane, _ in shown}, reverse=True)
    picture.update_layout(barmode="overlay", height=max(320, 190 + 26 * len(lanes)))
    picture.update_xaxes(title_text="time since the start (seconds)")
    picture.update_yaxes(
        title_text="worker",
        type="category",
        categoryorder="array",
        categoryarray=lanes,
        automargin=True,
    )
    part = "" if len(found) <= MOST else f", the newest {MOST} shown"
    busy = sum(stretch.end - stretch.begin for stretch in found)
    whole = len(lanes) * max((stretch.end for stretch in found), default=0.0)
    share = f"; the workers were busy {busy / whole:.0%} of the time" if whole > 0 else ""
    lane_words = f"{len(lanes)} lane{'' if len(lanes) == 1 else 's'}"
    words = f"{len(found)} stretches of training in {lane_words}{part}{share}."
    return figure(picture, "What workers did", words)


def stretches(history: History) -> list[Stretch]:
    """Every grant with the time at which its trial paused, ended, was lost, or is now; seconds
    since the study began."""
    began, now = history.created.time, history.time
    open_: dict[int, BudgetGranted] = {}
    found: list[Stretch] = []
    for event in history.events:
        if isinstance(event, BudgetGranted):
            open_[event.trial] = event
        elif isinstance(event, Reported | Ended | Lost) and event.trial in open_:
            status = _outcome(event, open_[event.trial], history.problem.full_budget)
            if status:
                grant = open_.pop(event.trial)
                found.append(_stretch(grant, event.time - began, status, began))
    found += [
        _stretch(grant, now - began, history.trials[number].status, began)
        for number, grant in open_.items()
    ]
    return found


def _outcome(event: Event, grant: BudgetGranted, full: float) -> str:
    """The state in which this event leaves its trial; empty when it goes on."""
    match event:
        case Ended() if event.attempt >= grant.attempt:
            return event.status
        case Lost() if event.attempt >= grant.attempt:
            return "stale"
        case Reported() if event.attempt >= grant.attempt and event.step >= grant.budget:
            return "completed" if event.step >= full else "paused"
    return ""


def _stretch(grant: BudgetGranted, end: float, status: str, began: float) -> Stretch:
    begin = grant.time - began
    return Stretch(grant.trial, grant.worker or BY_HAND, begin, max(end, begin), status)


def _lanes(found: Iterable[Stretch]) -> list[tuple[str, Stretch]]:
    """Stretches of one worker that overlap get lanes of their own."""
    busy: dict[str, list[float]] = defaultdict(list)
    placed: list[tuple[str, Stretch]] = []
    for stretch in sorted(found, key=lambda item: (item.begin, item.trial)):
        ends = busy[stretch.worker]
        lane = next((place for place, end in enumerate(ends) if end <= stretch.begin), len(ends))
        ends[lane : lane + 1] = [stretch.end]
        placed.append((f"{unmarked(stretch.worker, 40)} · {lane + 1}", stretch))
    return placed
