"""Rendering of templates; values are escaped."""

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scrimp.display.figures import duration
from scrimp.display.study_words import adviser_lines
from scrimp.study_log.messages import headline
from scrimp.study_log.trial import Trial

DONE = {
    "enqueued": "The configuration is queued; it runs next while the study runs.",
    "enqueued-full": (
        "The configuration is queued, but the study has all its trials: raise n_trials to run it."
    ),
    "known": "Nothing was queued: this configuration was already tried or is in the queue.",
    "told": "The result was recorded.",
    "pause": "The study is paused: running trials continue to the end of their grant.",
    "stop": (
        "The study is stopped: running trials continue to the end of their grant, then the workers exit."
    ),
    "resume": "The study is resumed.",
    "retried": "The failed trials are queued ahead of new ones and run when the study runs.",
    "none-failed": "No trial has failed; there is nothing to retry.",
    "noted": "The note is saved.",
    "deleted": "The selected studies are deleted.",
    "created": "The study is created; it runs once a worker is started.",
}
"""Messages shown after an action."""


def _number(value: object, digits: int = 6) -> str:
    """Format a value of a parameter or a metric.

    >>> _number(0.12345678), _number(None), _number(True)
    ('0.123457', '–', 'True')
    """
    if value is None:
        return "–"
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _decimals(values: Iterable[object]) -> int | None:
    """Return the decimals that a column of numbers is written with: four digits of the middle one,
    and more where they are close together; None if they differ too much in size.

    >>> _decimals([0.0858, 0.104, 1.008]), _decimals([0.97112, 0.97113, 0.97115]), _decimals([1e-9, 1.0])
    (4, 5, None)
    """
    known = sorted(v for v in values if isinstance(v, float) and math.isfinite(v))
    sizes = sorted(abs(value) for value in known if value)
    if not sizes or sizes[-1] >= 1e7:
        return None
    middle, spread = sizes[len(sizes) // 2], known[3 * len(known) // 4] - known[len(known) // 4]
    digits = 3 - math.floor(math.log10(middle))
    if spread > 0.0:
        digits = max(digits, 1 - math.floor(math.log10(spread)))
    written = max(len(f"{value:.7f}".rstrip("0").partition(".")[2]) for value in known)
    digits = max(min(digits, written), 0)
    return None if digits > 7 or sizes[0] * 10.0**digits < 1.0 else digits


def _metric_decimals(trials: Iterable[Trial]) -> dict[str, int | None]:
    """Return the decimals for the last values of each metric."""
    columns: dict[str, list[float | None]] = defaultdict(list)
    for trial in trials:
        for name, value in ({} if trial.last is None else trial.last.metrics).items():
            columns[name].append(value)
    return defaultdict(lambda: None, {name: _decimals(given) for name, given in columns.items()})


def _fixed(value: object, decimals: int | None) -> str:
    """
    >>> _fixed(0.5, 4), _fixed(None, 4), _fixed(1e-9, None)
    ('0.5000', '–', '1e-09')
    """
    if decimals is None or not isinstance(value, float) or not math.isfinite(value):
        return _number(value)
    return f"{value:.{decimals}f}"


def _duration(seconds: float | None) -> str:
    """
    >>> _duration(75.2), _duration(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    if seconds is None:
        return "–"
    return f"{seconds:.1f} s" if seconds < 60 else duration(seconds)


def _age(seconds: float) -> str:
    """Format a duration in its largest unit; a dash for impossible ones, as on a simulated clock.

    >>> _age(75.2), _age(7300), _age(3e5), _age(1.8e9)
    ('1 min', '2 h', '3 days', '–')
    """
    if not -60.0 < seconds < 1e9:
        return "–"
    for size, unit in ((86400.0, "day"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        if seconds >= size:
            count = int(seconds / size)
            return f"{count} {unit}{'s' if unit == 'day' and count > 1 else ''}"
    return "0 s"


def _ago(seconds: float) -> str:
    """
    >>> _ago(0.2), _ago(75.2)
    ('now', '1 min ago')
    """
    age = _age(seconds)
    return age if age == "–" else "now" if age == "0 s" else f"{age} ago"


def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _number,
        "short": partial(_number, digits=4),
        "decimals": _decimals,
        "metric_decimals": _metric_decimals,
        "fixed": _fixed,
        "duration": _duration,
        "age": _age,
        "ago": _ago,
        "headline": headline,
        "adviser_lines": adviser_lines,
        "q": lambda text: quote(str(text), safe=""),
    }
    return environment


_TEMPLATES = _environment()


def page(request: Request, template: str, status: int = 200, /, **values: object) -> HTMLResponse:
    """Render a template. ``to`` makes addresses within the current storage, ``here`` the hidden
    field of forms that does the same."""
    done = DONE.get(request.query_params.get("done", ""), "")
    at = request.query_params.get("at", "")
    text = _TEMPLATES.get_template(template).render(
        done=done,
        plotly_version=request.app.state.plotly_version,
        may_change=request.scope.get("may_change", True),
        to=partial(_address, at),
        here=Markup('<input type="hidden" name="at" value="{}">').format(at) if at else "",
        **values,
    )
    return HTMLResponse(text, status_code=status, headers={"cache-control": "no-store"})


def _address(here: str, path: str, *, at: int | str | None = None, **given: object) -> str:
    """Return an address of this server; ``at`` is the storage, None for the current one.

    >>> _address("", "/study", name="a b"), _address("1", "/trial", study="s", number=3)
    ('/study?name=a%20b', '/trial?at=1&study=s&number=3')
    """
    place = here if at is None else str(at or "")
    parts = {"at": place, **given} if place else given
    return path + (f"?{urlencode(parts, quote_via=quote, safe='')}" if parts else "")


def message_page(request: Request, title: str, text: str, status: int) -> HTMLResponse:
    """Render a page with a message."""
    return page(request, "message.html", status, title=title, text=text)
