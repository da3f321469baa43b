"""Conversion of reported values to events; numbers are checked here and nowhere else.

A metric that is not a number is refused. One that is not finite is recorded as None; if it is a
metric of the study, the trial fails with a message that includes the value.
"""

import math
import numbers
from collections.abc import Mapping
from decimal import Decimal
from typing import SupportsFloat

import numpy as np
from msgspec.structs import replace

from scrimp.checks import did_you_mean, nearest_name
from scrimp.errors import ReportError
from scrimp.study_log.events import Event, Reported, ended_event
from scrimp.study_log.messages import is_unicode

MAX_METRIC_NAME_CHARACTERS = 200
"""Length of a metric's name."""

MAX_METRICS_PER_REPORT = 1000
"""Number of metrics in one report."""

Stderr = SupportsFloat | Mapping[str, SupportsFloat] | None
"""A standard error as users give it: a number, for the study's metric or the first of several, or
numbers by metric."""


def as_metrics(result: object, names: tuple[str, ...], stepped: bool = False) -> dict[str, float]:
    """Return metrics by name, from a number (with one metric) or a mapping of names to numbers.
    ``names``: the study's metrics, all required; ``stepped``: reported step by step.

    >>> as_metrics(0.5, ("loss",)), as_metrics({"loss": 1, "seconds": 2.0}, ("loss",))
    ({'loss': 0.5}, {'loss': 1.0, 'seconds': 2.0})
    """
    if not isinstance(result, Mapping) and len(names) > 1:
        raise ReportError(
            f"got {result!r}, but the study has {len(names)} metrics; report them by name,"
            f" for example {{{', '.join(f'{name!r}: 0.5' for name in names)}}}"
        )
    named = result if isinstance(result, Mapping) else {names[0]: result}
    metrics = {}
    for name, value in named.items():
        if not isinstance(name, str) or not name:
            raise ReportError(
                f"metric name {name!r} is not a string; report metrics by name, such as val_error=0.3"
            )
        if not is_unicode(name):
            raise ReportError(f"metric name {name!r} is not valid Unicode; use another name")
        if len(name) > MAX_METRIC_NAME_CHARACTERS:
            raise ReportError(
                f"metric name {name[:50]!r}… has {len(name)} characters; at most {MAX_METRIC_NAME_CHARACTERS} are"
                " kept"
            )
        metrics[name] = _as_float(name, value)
    if len(metrics) > MAX_METRICS_PER_REPORT:
        raise ReportError(
            f"{len(metrics)} metrics in one report; at most {MAX_METRICS_PER_REPORT} are kept: save the rest"
            " in a file"
        )
    for name in names:
        if name not in metrics:
            known = ", ".join(sorted(metrics)) or "none"
            near = nearest_name(name, [other for other in metrics if other not in names])
            hint = "; report it" + " with every step" * stepped
            if near is not None:
                hint = (
                    f"; report {name!r}, or if {near!r} is the right name, delete the study or"
                    f" choose another name for it and create it with {near!r}"
                )
            raise ReportError(f"the metric {name!r} was not reported (reported: {known}){hint}")
    return metrics


def _as_float(name: str, value: object) -> float:
    number = value
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        return math.nan  # whatever is below the mask
    if not isinstance(value, numbers.Real | Decimal):
        try:
            # Scalars of NumPy and torch have ``item``.
            number = getattr(value, "item", lambda: None)()
        except (AttributeError, ValueError, RuntimeError, TypeError):
            number = None
    if isinstance(number, bool) or not isinstance(number, numbers.Real | Decimal):
        several = (
            '; report several by name, as {"error": 0.1, "seconds": 3.0}'
            if isinstance(value, tuple | list)
            else ""
        )
        raise ReportError(
            f"metric {name!r} is {value!r} of type {type(value).__name__}; it must be a"
            f" number{several}"
        )
    if isinstance(number, Decimal) and number.is_nan():
        return math.nan
    try:
        return float(number)
    except OverflowError:
        # An integer beyond the largest float.
        return math.inf


def as_standard_errors(value: object, names: tuple[str, ...]) -> dict[str, float]:
    """Return standard errors by metric, from a number (for the study's metric, or the first of
    several) or a mapping; refuse negative numbers and those that are not finite.

    >>> as_standard_errors(0.1, ("error", "seconds"))
    {'error': 0.1}
    """
    named = value if isinstance(value, Mapping) else {names[0]: value}
    found = {}
    for name, error in named.items():
        if name not in names:
            raise ReportError(
                f"stderr has {name!r}, which is not a metric of the study; it may have"
                f" {', '.join(names)}{did_you_mean(str(name), list(names))}"
            )
        if error is None:
            continue
        label = "stderr" if len(names) == 1 else f"stderr of {name!r}"
        found[name] = _as_float(label, error)
        if not 0.0 <= found[name] < math.inf:
            raise ReportError(f"{label} is {error!r}; it must be a finite number of at least 0")
    return found


def report_events(report: Reported, names: tuple[str, ...]) -> list[Event]:
    """Return the report with only finite metrics and cost, and the failure of its trial if one of
    the study's metrics is not finite."""
    finite = {
        name: number if number is not None and math.isfinite(number) else None
        for name, number in report.metrics.items()
    }
    cost = report.cost if report.cost is not None and math.isfinite(report.cost) else None
    clean = replace(report, metrics=finite, cost=cost)
    lacking = next((name for name in names if finite.get(name) is None), None)
    if lacking is None:
        return [clean]
    value = report.metrics.get(lacking)
    message = f"{lacking} is {value} at step {report.step:g}: not a finite number"
    failed = ended_event(report.trial, report.attempt, "failed", message, report.time)
    return [clean, failed]
