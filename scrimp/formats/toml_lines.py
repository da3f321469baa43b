"""Where a key stands in a TOML text: parsers forget lines, and people who made a mistake need them.

TomlLines(text).of(("space", "lr", "low")) the line of that key, else of the nearest one around it
"""

import re
from functools import cached_property

__all__ = ["TomlLines"]

_BARE = r"[A-Za-z0-9_-]+"
_KEY = rf"""(?:{_BARE}|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"^\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_ENTRY = re.compile(rf"^\s*({_DOTTED})\s*=")


class TomlLines:
    """The lines of the keys in ``text``."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _places(self) -> dict[tuple[str, ...], int]:
        places: dict[tuple[str, ...], int] = {}
        table: tuple[str, ...] = ()
        for number, line in enumerate(self._text.splitlines(), 1):
            if header := _HEADER.match(line):
                table = _parts(header[1])
                places.setdefault(table, number)
            elif entry := _ENTRY.match(line):
                key = (*table, *_parts(entry[1]))
                for length in range(len(table) + 1, len(key) + 1):
                    places.setdefault(key[:length], number)
        return places

    def of(self, key: tuple[str, ...]) -> int | None:
        """The line of ``key`` or of the innermost table around it; None for what is nowhere."""
        for length in range(len(key), 0, -1):
            if key[:length] in self._places:
                return self._places[key[:length]]
        return None


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
