"""Tables for notebooks: plain HTML without scripts, in which every text of a user is escaped.

html_table(["parameter", "range"], [["lr", "1e-05 to 0.1"]])
"""

from collections.abc import Iterable, Sequence
from html import escape

from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter

__all__ = ["html_table", "space_rows", "words"]

CELL = "text-align:left;padding:2px 12px 2px 0;border:0"
MOST_ROWS = 200
"""Rows that a table shows; a notebook keeps every output."""


def words(value: object, most: int = 200) -> str:
    """A value as escaped text; floats with five digits that count.

    >>> words("<b>"), words(0.123456789), words(None)
    ('&lt;b&gt;', '0.12346', '–')
    """
    text = "–" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> str:
    """A table of escaped cells under a header; an empty header gives none."""
    listed = list(rows)
    top = "".join(
        f'<th style="{CELL};opacity:.7;font-weight:600">{words(name)}</th>' for name in header
    )
    body = "".join(
        "<tr>" + "".join(f'<td style="{CELL}">{words(cell)}</td>' for cell in row) + "</tr>"
        for row in listed[:MOST_ROWS]
    )
    more = f"<p>and {len(listed) - MOST_ROWS} more</p>" if len(listed) > MOST_ROWS else ""
    said = f'<div style="font-weight:600;margin:4px 0">{words(caption)}</div>' if caption else ""
    head = f"<thead><tr>{top}</tr></thead>" if header else ""
    return f'{said}<table style="border-collapse:collapse;margin:0">{head}<tbody>{body}</tbody></table>{more}'


def space_rows(parameters: Iterable[tuple[str, Parameter]]) -> list[list[str]]:
    """Name, kind, range and remarks of each parameter."""
    return [[name, type(item).__name__, _range(item), _remarks(item)] for name, item in parameters]


def _range(parameter: Parameter) -> str:
    match parameter:
        case Float() | Int():
            return f"{parameter.low:g} to {parameter.high:g}"
        case Ordinal():
            return ", ".join(map(str, parameter.values))
        case Categorical():
            return ", ".join(map(str, parameter.choices))
        case Constant():
            return str(parameter.value)
    return str(parameter)


def _remarks(parameter: Parameter) -> str:
    found = []
    if isinstance(parameter, Float | Int):
        found += ["log"] * parameter.log
        found += [f"step {parameter.step:g}"] if parameter.step is not None else []
    if parameter.when:
        parents = (
            f"{name} is {' or '.join(map(str, values))}" for name, values in parameter.needs.items()
        )
        found.append(f"when {' and '.join(parents)}")
    if parameter.default is not None:
        found.append(f"default {parameter.default}")
    if parameter.prior is not None:
        found.append(f"prior {parameter.prior[0]}")
    return ", ".join(found)
