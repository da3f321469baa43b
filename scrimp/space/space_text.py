"""Parameters as text, as on a command line, and the same in a study file.

    lr=float(1e-5,1e-1,log)                       {"type": "float", "low": 1e-5, "high": 0.1, "log":
                                                  True}
    layers=int(1,8)                               step and default follow:
                                                  int(8,256,step=8,default=64)
    width=ordinal(64,128,256)                     numbers in order
    optimizer=categorical(adamw,sgd)              or choice(...)
    momentum=float(0,0.99,when=optimizer:sgd)     exists only there; when=optimizer:sgd|rmsprop for
                                                  several
    batch=32                                      a constant

Several parameters are separated by blanks or semicolons. Texts that look like numbers need quotes.
"""

import re
from collections.abc import Sequence

from scrimp.errors import SpaceError
from scrimp.json_values import Json, Scalar

_NAME = r"[A-Za-z_][\w.-]*"
_PARAMETER = re.compile(
    rf"""\s*(?P<name>{_NAME})\s*=\s*(?:(?P<kind>[A-Za-z]\w*)\((?P<inside>[^()]*)\)|(?P<constant>[^\s;()]+))\s*(?:;|$|(?=\s))"""
)
_KINDS = ("float", "int", "ordinal", "categorical", "choice", "constant")
_LISTS = {"ordinal": "values", "categorical": "choices"}
_EXAMPLE = 'write "lr=float(1e-5,1e-1,log)" or "optimizer=categorical(adamw,sgd)"'


def read_space_text(texts: Sequence[str]) -> dict[str, Json]:
    """Return the parameters by name, as in a study file; raise `SpaceError` for text that cannot be read.

    >>> read_space_text(["lr=float(1e-5,1e-1,log)", "batch=32"])
    {'lr': {'type': 'float', 'log': True, 'low': 1e-05, 'high': 0.1}, 'batch': 32}
    """
    found: dict[str, Json] = {}
    for text in texts:
        place = 0
        while text[place:].strip(" ;\t\n"):
            match = _PARAMETER.match(text, place)
            if match is None:
                raise SpaceError(f"cannot read {text[place:].strip()!r} as a parameter; {_EXAMPLE}")
            name = match["name"]
            if name in found:
                raise SpaceError(f"parameter {name!r} is given twice; give it once")
            constant = match["constant"]
            found[name] = _record(match) if constant is None else read_scalar(constant)
            place = match.end()
    return found


def _record(match: re.Match[str]) -> dict[str, Json]:
    """Return the record of one parameter with its kind and settings."""
    name, kind = match["name"], match["kind"].lower()
    if kind not in _KINDS:
        raise SpaceError(
            f"parameter {name!r} is a {match['kind']!r}; it must be one of {', '.join(_KINDS)}"
        )
    kind = "categorical" if kind == "choice" else kind
    record: dict[str, Json] = {"type": kind}
    values = []
    # Split at commas outside quotes.
    parts = re.findall(r"""(?:[^,"']|"[^"]*"|'[^']*')+""", match["inside"])
    for part in filter(None, map(str.strip, parts)):
        key, equals, value = part.partition("=")
        if part == "log":
            record["log"] = True
        elif equals and key.strip() == "when":
            record["when"] = _condition(name, value)
        elif equals and key.strip().isidentifier():
            record[key.strip()] = read_scalar(value.strip())
        else:
            values.append(read_scalar(part))
    if kind in _LISTS:
        return {**record, _LISTS[kind]: values}
    places = ("value",) if kind == "constant" else ("low", "high")
    if len(values) > len(places):
        raise SpaceError(
            f"parameter {name!r} has {len(values)} values; {kind} takes {' and '.join(places)}"
        )
    return {**record, **dict(zip(places, values, strict=False))}


def _condition(name: str, text: str) -> dict[str, Json]:
    parent, colon, values = text.partition(":")
    if not colon or not parent.strip() or not values.strip():
        raise SpaceError(
            f"parameter {name!r} has when={text!r}; write when=optimizer:sgd, or"
            " when=optimizer:sgd|rmsprop"
        )
    several = [read_scalar(value.strip()) for value in values.split("|")]
    return {parent.strip(): several if len(several) > 1 else several[0]}


def read_scalar(text: str) -> Scalar:
    """Read True, False, None, a number or a text; anything in quotes is a text.

    >>> [read_scalar(text) for text in ("3", "1e-5", "true", "none", "'3'", "sgd")]
    [3, 1e-05, True, None, '3', 'sgd']
    """
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    if text.lower() in ("true", "false", "none", "null"):
        return {"true": True, "false": False}.get(text.lower())
    return number_or_text(text)


def number_or_text(text: str) -> int | float | str:
    """Return the number that a text spells, or the text itself.

    >>> [number_or_text(text) for text in ("3", "1e-5", "sgd")]
    [3, 1e-05, 'sgd']
    """
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text
