"""Numbers, durations, configurations and sparklines as text."""

import math
from collections.abc import Mapping, Sequence

BARS = "▁▂▃▄▅▆▇█"


def number(value: object, digits: int = 4) -> str:
    """Format a value with ``digits`` significant digits; None is a dash.

    >>> number(0.0208623), number(None), number(128), number("adam"), number(123456.0)
    ('0.02086', '-', '128', 'adam', '123456')
    """
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value.is_integer() and abs(value) < 1e9:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def duration(seconds: float) -> str:
    """Format a duration in one or two units.

    >>> duration(8.2), duration(95), duration(7300), duration(200_000)
    ('8 s', '1 min 35 s', '2 h 1 min', '2 d 7 h')
    """
    whole = round(max(seconds, 0.0))
    if whole < 60:
        return f"{whole} s"
    for size, unit, below, part in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            return f"{whole // size} {unit} {whole % size // below} {part}"
    return f"{whole} s"


def config_words(config: Mapping[str, object]) -> str:
    """Format a configuration on one line.

    >>> config_words({"lr": 0.0012345, "layers": 3})
    'lr=0.001234, layers=3'
    """
    return ", ".join(f"{name}={number(value)}" for name, value in config.items())


def shortened_text(text: str, most: int) -> str:
    """Return at most ``most`` characters of a text, cut between words.

    >>> shortened_text("CUDA out of memory", 14), shortened_text("unbroken_name", 6)
    ('CUDA out of…', 'unbro…')
    """
    if len(text) <= most:
        return text
    if most <= 1:
        return "…"[:most]
    kept = text[: most - 1]
    if not text[most - 1].isspace() and " " in kept.strip():
        kept = kept[: kept.rstrip().rfind(" ")]
    return f"{kept.rstrip()}…"


def sparkline(points: Sequence[tuple[float, float]], end: float, width: int) -> str:
    """Draw a path of steps as ``width`` bars of eight heights, from the first point to ``end``.

    Each (place, value) holds from its place to the next. A height is the geometric mean of the
    value's relative size and of its rank: the first values are often so far off that the rest of the
    path would be flat otherwise.

    >>> sparkline([(0.0, 8.0), (1.0, 4.0), (2.0, 1.0)], 3.0, 3)
    '█▄▁'
    """
    if not points or width < 1:
        return ""
    begin = points[0][0]
    span = max(end - begin, 0.0)
    heights = _heights([value for _, value in points])
    shown, at = "", 0
    for column in range(width):
        place = begin + span * (column + 0.5) / width
        while at + 1 < len(points) and points[at + 1][0] <= place:
            at += 1
        if column == width - 1:
            at = len(points) - 1
        shown += BARS[heights[at]]
    return shown


def svg_steps(points: Sequence[tuple[float, float]], end: float, size: tuple[int, int]) -> str:
    """Return the corners of an SVG polyline of steps from 0 to ``end``, scaled to the full ``size`` in
    pixels; each (place, value) holds from its place to the next.

    >>> svg_steps([(0.0, 8.0), (1.0, 2.0)], 2.0, (22, 10))
    '1.0,2.0 11.0,2.0 11.0,8.0 21.0,8.0'
    """
    width, height = size
    low, high = min(value for _, value in points), max(value for _, value in points)
    scale = (height - 4) / (high - low) if high > low else 0.0
    corners: list[str] = []
    before = points[0][1]
    for place, value in (*points, (end, points[-1][1])):
        x = 1 + (width - 2) * place / end
        corners += [f"{x:.1f},{2 + (high - y) * scale:.1f}" for y in dict.fromkeys((before, value))]
        before = value
    return " ".join(corners)


def _heights(values: Sequence[float]) -> list[int]:
    """Return the height of each value, from 0 to 7."""
    order = sorted(set(values))
    if len(order) == 1:
        return [0] * len(values)
    low, high = order[0], order[-1]
    linear = [(value - low) / (high - low) for value in values]
    ranks = [order.index(value) / (len(order) - 1) for value in values]
    mixed = [math.sqrt(max(a * b, 0.0)) for a, b in zip(linear, ranks, strict=True)]
    return [round(part * (len(BARS) - 1)) for part in mixed]
