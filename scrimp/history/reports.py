"""From what an objective says to what the log records: one place where numbers are judged.

A metric that is not a number is refused. One that is not finite is recorded as None, and when it is
the study's own metric the trial has failed: the message keeps what it was.
"""

import math
import numbers
from collections.abc import Mapping
from typing import NamedTuple, SupportsFloat

from scrimp.checks import did_you_mean
from scrimp.errors import ReportError
from scrimp.history.events import Ended, Event, Reported

__all__ = [
    "LONGEST_MESSAGE",
    "LONGEST_NAME",
    "MOST_METRICS",
    "Names",
    "StandardErrors",
    "Stderr",
    "as_metrics",
    "as_standard_errors",
    "cut",
    "headline",
    "names_of",
    "printable",
    "readable",
    "report_events",
]


LONGEST_MESSAGE = 20_000
"""Characters of a failure message at most: the log is read whole, by everybody."""

LONGEST_HEADLINE = 1000
"""Characters of a failure that a line on the terminal shows."""

LONGEST_NAME = 200
"""Characters of a metric's name at most."""

MOST_METRICS = 1000
"""Metrics in one report at most."""


Names = str | tuple[str, ...]
"""What every report must have: the study's metric, or the names of all where there are several."""


Stderr = SupportsFloat | Mapping[str, SupportsFloat] | None
"""A standard error as users tell it: a number, of the study's metric or the first of several, or
one for each metric by name."""


class StandardErrors(NamedTuple):
    """Of one report: of the study's metric, or the first of several, and of the others by name."""

    first: float | None = None
    further: dict[str, float] | None = None


def names_of(metric: Names) -> tuple[str, ...]:
    """The same as a tuple."""
    return (metric,) if isinstance(metric, str) else metric


def as_metrics(result: object, metric: Names, stepped: bool = False) -> dict[str, float]:
    """Metrics by name, from a number (the study's metric) or a mapping of names to numbers;
    ``stepped`` where they are told step by step.

    >>> as_metrics(0.5, "loss"), as_metrics({"loss": 1, "seconds": 2.0}, "loss")
    ({'loss': 0.5}, {'loss': 1.0, 'seconds': 2.0})
    """
    names = names_of(metric)
    if not isinstance(result, Mapping) and len(names) > 1:
        raise ReportError(
            f"got {result!r}, and the study has {len(names)} metrics; tell them by name, as"
            f" {{{', '.join(f'{name!r}: 0.5' for name in names)}}}"
        )
    named = result if isinstance(result, Mapping) else {names[0]: result}
    metrics = {}
    for name, value in named.items():
        if not isinstance(name, str) or not name:
            raise ReportError(
                f"metric name {name!r} is not a text; report metrics by name, such as val_error=0.3"
            )
        if len(name) > LONGEST_NAME:
            raise ReportError(
                f"metric name {name[:50]!r}… has {len(name)} characters; at most {LONGEST_NAME} are"
                " kept"
            )
        metrics[name] = _as_float(name, value)
    if len(metrics) > MOST_METRICS:
        raise ReportError(
            f"{len(metrics)} metrics in one report; at most {MOST_METRICS} are kept: save the rest"
            " in a file"
        )
    for name in names:
        if name not in metrics:
            known = ", ".join(sorted(metrics)) or "none"
            hints = (did_you_mean(other, [name]) for other in metrics if other not in names)
            hint = next(filter(None, hints), "; report it" + " with every step" * stepped)
            raise ReportError(
                f"the study's metric {name!r} was not reported (reported: {known}){hint}"
            )
    return metrics


def _nothing() -> None:
    """What a thing without ``item`` holds."""


def _as_float(name: str, value: object) -> float:
    number = value
    if not isinstance(value, numbers.Real):
        try:
            number = getattr(value, "item", _nothing)()  # NumPy and torch scalars
        except (AttributeError, ValueError, RuntimeError, TypeError):
            number = None
    if isinstance(number, bool) or not isinstance(number, numbers.Real):
        several = (
            '; several go by name, as {"error": 0.1, "seconds": 3.0}'
            if isinstance(value, tuple | list)
            else ""
        )
        raise ReportError(
            f"metric {name!r} is {value!r} of type {type(value).__name__}; it must be a"
            f" number{several}"
        )
    try:
        return float(number)
    except OverflowError:  # an integer beyond all floats
        return math.inf


def as_standard_errors(value: object, metric: Names) -> StandardErrors:
    """Standard errors, from a number (of the study's metric, or the first of several) or a mapping
    of the names of metrics to numbers; what is negative or not finite is refused, for it would
    spoil every model.

    >>> as_standard_errors({"seconds": 2, "error": 0.1}, ("error", "seconds"))
    StandardErrors(first=0.1, further={'seconds': 2.0})
    """
    names = names_of(metric)
    named = value if isinstance(value, Mapping) else {names[0]: value}
    found = {}
    for name, error in named.items():
        if name not in names:
            raise ReportError(
                f"stderr has {name!r}, which is no metric of the study; it may have"
                f" {', '.join(names)}{did_you_mean(str(name), list(names))}"
            )
        if error is not None:
            found[name] = _as_error("stderr" if len(names) == 1 else f"stderr of {name!r}", error)
    first = found.pop(names[0], None)
    return StandardErrors(first, found or None)


def _as_error(name: str, value: object) -> float:
    number = _as_float(name, value)
    if not 0.0 <= number < math.inf:
        raise ReportError(f"{name} is {value!r}; it must be a finite number of at least 0")
    return number


def readable(text: str) -> str:
    """``text`` as it can be stored anywhere: characters that are no Unicode text are spelled out,
    and what is too long is cut."""
    return cut(text, LONGEST_MESSAGE).encode("utf-8", "backslashreplace").decode("utf-8")


def cut(text: str, most: int) -> str:
    """The beginning and the end of a text of more than ``most`` characters, with a note between
    them.

    >>> cut("a" * 50 + "b" * 950, 100)[-60:]
    'aaa\\n[940 characters left out]\\nbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb'
    """
    if len(text) <= most:
        return text
    part = (most - 40) // 2
    return f"{text[:part]}\n[{len(text) - 2 * part} characters left out]\n{text[-part:]}"


def printable(text: str) -> str:
    """``text`` as a terminal may show it: without control characters, so that nothing in it can
    drive the terminal.

    >>> printable("a name\\x1b[2J")
    'a name�[2J'
    """
    return (
        text
        if text.isprintable()
        else "".join(letter if letter.isprintable() else "�" for letter in text)
    )


def headline(message: str) -> str:
    """The one line of a message that says most: its first, and its last where a traceback or the
    end of a log follows.

    >>> headline("the script exited with code 1\\nTraceback ...\\n  x\\nModuleNotFoundError: No module named 'torch'")
    "the script exited with code 1: ModuleNotFoundError: No module named 'torch'"
    """
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    told = lines[-1] in lines[0] or lines[-1].endswith(
        lines[0]
    )  # a module may stand before the name of an error
    shown = lines[0] if told else f"{lines[0]}: {lines[-1]}"
    return shown if len(shown) <= LONGEST_HEADLINE else shown[:LONGEST_HEADLINE] + "…"


def report_events(report: Reported, metric: Names) -> list[Event]:
    """The report with finite metrics and a finite cost only, and the failure of its trial when the
    study's metric, or one of several, is not finite."""
    finite = {
        name: number if number is not None and math.isfinite(number) else None
        for name, number in report.metrics.items()
    }
    clean = Reported(
        trial=report.trial,
        step=report.step,
        metrics=finite,
        attempt=report.attempt,
        stderr=report.stderr,
        cost=report.cost if report.cost is not None and math.isfinite(report.cost) else None,
        further_stderr=report.further_stderr,
        time=report.time,
    )
    lacking = next((name for name in names_of(metric) if finite.get(name) is None), None)
    if lacking is None:
        return [clean]
    value = report.metrics.get(lacking)
    message = f"{lacking} is {value} at step {report.step:g}: not a finite number"
    failed = Ended(
        trial=report.trial,
        status="failed",
        message=message,
        attempt=report.attempt,
        time=report.time,
    )
    # A failed first report carries no information about the curve; later ones keep what came
    # before.
    return [clean, failed]
