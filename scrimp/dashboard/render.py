"""Templates: every text is escaped unless it is a template's own."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from scrimp.history.reports import headline

__all__ = ["message_page", "page"]

DONE = {
    "enqueued": "The configuration was put into the queue; it is tried next while the study runs.",
    "enqueued-full": (
        "The configuration was put into the queue; the study has all its trials: raise n_trials to"
        " try it."
    ),
    "known": (
        "Nothing was put into the queue: this configuration was tried already, or waits there."
    ),
    "told": "The result was recorded.",
    "pause": "The study is paused: what runs goes on to the end of its grant.",
    "stop": (
        "The study is stopped: what runs goes on to the end of its grant, then its workers end."
    ),
    "resume": "The study goes on.",
}
"""What a page says after an action."""


def _number(value: Any) -> str:
    """A value of a parameter or a metric.

    >>> _number(0.12345678), _number(None), _number(True)
    ('0.123457', '–', 'True')
    """
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _duration(seconds: float | None) -> str:
    """
    >>> _duration(75.2), _duration(7300)
    ('1 min 15 s', '2 h 1 min')
    """
    if seconds is None:
        return "–"
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    return (
        f"{whole // 60} min {whole % 60} s"
        if whole < 3600
        else f"{whole // 3600} h {whole % 3600 // 60} min"
    )


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
        "duration": _duration,
        "headline": headline,
        "q": lambda text: quote(str(text), safe=""),
    }
    return environment


_TEMPLATES = _environment()


def page(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """A template filled in."""
    done = DONE.get(request.query_params.get("done", ""), "")
    version = request.app.state.plotly_version
    text = _TEMPLATES.get_template(template).render(
        done=done,
        plotly_version=version,
        may_change=request.scope.get("may_change", True),
        **values,
    )
    return HTMLResponse(text, status_code=status, headers={"cache-control": "no-store"})


def message_page(
    request: Request, title: str, text: str, status: int = 200, again: float | None = None
) -> HTMLResponse:
    """A page that says something; ``again``: seconds after which it is loaded again."""
    answer = page(request, "message.html", status, title=title, text=text)
    if again is not None:
        answer.headers["refresh"] = f"{again:g}"
    return answer
