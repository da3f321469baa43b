"""Trials by rank, and the colour that says so: the better, the stronger; the best stands out."""

from collections.abc import Sequence

import numpy as np

from scrimp.errors import StudyError
from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.plots.style import ACCENT, LINE, MUTED, SERIES, rgba

__all__ = ["FEW", "chosen_trials", "line_colours", "shade", "trial_ranks"]

FEW = 7
"""So many lines have a colour of their own each."""


def trial_ranks(history: History) -> dict[int, float]:
    """Every trial with a value, from 0 for the best to 1 for the worst by its best feasible value;
    those that broke a constraint come last."""
    known = [trial for trial in history.trials if trial.loss is not None]
    sign = history.problem.sign
    order = sorted(
        known,
        key=lambda trial: (
            (1, trial.loss or 0.0, trial.id)
            if trial.best is None
            else (0, sign * trial.best, trial.id)
        ),
    )
    last = max(len(order) - 1, 1)
    return {trial.id: place / last for place, trial in enumerate(order)}


def shade(rank: float | None) -> str:
    """The colour of a rank: orange for the best, then from strong to faint; faint without one."""
    if rank == 0.0:
        return ACCENT
    if rank is None:
        return rgba(MUTED, 0.35)
    low, high = (np.array(_parts(colour)) for colour in (MUTED, LINE))
    mixed = low + (high - low) * (1.0 - rank)
    red, green, blue = (int(round(float(part))) for part in mixed)
    return rgba(f"#{red:02x}{green:02x}{blue:02x}", 0.3 + 0.65 * (1.0 - rank) ** 2)


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def line_colours(history: History, chosen: Sequence[Trial]) -> dict[int, str]:
    """A colour for each trial: by rank, or, of a few, one that tells it from the others."""
    place = trial_ranks(history)
    colours = {trial.id: shade(place.get(trial.id)) for trial in chosen}
    if len(chosen) <= FEW:  # one alone too: faint, nobody would see it
        others = [trial.id for trial in chosen if place.get(trial.id) != 0.0]
        free = [colour for colour in SERIES if colour != ACCENT]
        colours |= dict(zip(others, free, strict=False))
    return colours


def chosen_trials(history: History, trials: Sequence[int] | None, most: int) -> list[Trial]:
    """The named trials, or half of ``most`` the best and half the newest; the worst first, so that
    the best are drawn on top."""
    place = trial_ranks(history)
    if trials is not None:
        for number in trials:
            if not 0 <= number < len(history.trials):
                raise StudyError(
                    f"there is no trial {number}; the study has {len(history.trials)}, "
                    "counted from 0"
                )
        numbers = set(trials)
    else:
        known = [
            trial.id for trial in history.trials if any(p.loss is not None for p in trial.curve)
        ]
        best = sorted(place, key=lambda number: place[number])[: most // 2]
        numbers = {*best, *known[-(most // 2) :]}
    order = sorted(numbers, key=lambda number: (-place.get(number, 2.0), number))
    return [history.trials[number] for number in order]
