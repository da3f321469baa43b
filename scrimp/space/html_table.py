"""Tables for notebooks: plain HTML without scripts, with all text escaped.

html_table(["parameter", "range"], [["lr", "1e-05 to 0.1"]])
"""

from collections.abc import Iterable, Sequence
from html import escape

from scrimp.space.parameter import Float, Int
from scrimp.space.parameter_contract import Parameter

CELL = "text-align:left;padding:2px 12px 2px 0;border:0"
MAX_ROWS_SHOWN = 200
"""Rows in a table, because notebooks keep every output."""


def words(value: object, max_length: int = 200) -> str:
    """Format a value as escaped text; floats with five significant digits.

    >>> words("<b>"), words(0.123456789), words(None)
    ('&lt;b&gt;', '0.12346', '–')
    """
    text = "–" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= max_length else text[: max_length - 1] + "…")


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """Return a table of escaped cells; an empty header is left out."""
    listed = list(rows)
    style = f"{CELL};opacity:.7;font-weight:600"
    top = "".join(f'<th style="{style}">{words(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{words(cell)}</td>' for cell in row) + "</tr>"
        for row in listed[:MAX_ROWS_SHOWN]
    )
    more = f"<p>and {len(listed) - MAX_ROWS_SHOWN} more</p>" if len(listed) > MAX_ROWS_SHOWN else ""
    said = f'<div style="font-weight:600;margin:4px 0">{words(caption)}</div>' if caption else ""
    head = f"<thead><tr>{top}</tr></thead>" if header else ""
    return f'{said}<table style="border-collapse:collapse;margin:0">{head}<tbody>{body}</tbody></table>{more}'


def space_rows(parameters: Iterable[tuple[str, Parameter]]) -> list[list[str]]:
    """Return name, kind, range and remarks of each parameter."""
    return [[name, type(item).__name__, _range(item), _remarks(item)] for name, item in parameters]


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Float | Int):
        return f"{parameter.low:g} to {parameter.high:g}"
    return ", ".join(map(str, parameter.grid or ()))


def _remarks(parameter: Parameter) -> str:
    found = []
    if isinstance(parameter, Float | Int):
        found += ["log"] * parameter.log
        found += [f"step {parameter.step:g}"] if parameter.step is not None else []
    if parameter.when:
        needs = parameter.needs.items()
        parents = (f"{name} is {' or '.join(map(str, values))}" for name, values in needs)
        found.append(f"when {' and '.join(parents)}")
    if parameter.default is not None:
        found.append(f"default {parameter.default}")
    if parameter.prior is not None:
        found.append(f"prior {parameter.prior[0]}")
    return ", ".join(found)
