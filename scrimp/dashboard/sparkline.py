"""The best value so far as a line of a few pixels, for lists of studies."""

from collections.abc import Sequence

from scrimp.history.best_path import BEST_PATH
from scrimp.history.history import History

__all__ = ["SIZE", "svg_sparkline"]

SIZE = (96, 22)
"""Width and height in pixels."""


def svg_sparkline(history: History) -> str:
    """The points of an SVG polyline over what was spent, from the first value to the best, which
    fill the height; empty without a best trial, two improvements or a second report."""
    path = history.derive(BEST_PATH)
    if history.best is None or path.spent <= path.points[0][0]:
        return ""
    steps = [(spent, path.sign * value) for spent, _, value in path.points]
    return _corners([*steps, (path.spent, steps[-1][1])], path.sign < 0)


def _corners(steps: Sequence[tuple[float, float]], up: bool) -> str:
    """Corners from the left, a step at each improvement: upwards where high values are good."""
    width, height = SIZE
    high, low = steps[0][1], steps[-1][1]
    scale = (height - 4) / (high - low) if high > low else 0.0
    corners: list[str] = []
    before = high
    for spent, loss in steps:
        x = 1 + (width - 2) * spent / steps[-1][0]
        for level in dict.fromkeys((before, loss)):
            down = 2 + (high - level) * scale
            corners.append(f"{x:.1f},{height - down if up else down:.1f}")
        before = loss
    return " ".join(corners)
