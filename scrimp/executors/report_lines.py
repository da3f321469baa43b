"""What a script prints: reports among its output.

A report is a line with the marker and a JSON object: metrics by name, beside them ``step`` (without
it, the next one), ``stderr`` (a standard error, or one for each metric by name) and ``answer``
(true when the script waits to be told whether to go on).

    scrimp: {"val_error": 0.31, "step": 4}
"""

import json
from dataclasses import dataclass, field
from typing import Any

from scrimp.errors import ReportError
from scrimp.script import MARKER

__all__ = ["LONGEST_LINE", "Lines", "ScriptReport", "parse_report"]

LONGEST_LINE = 1 << 16
"""Longer lines are cut into pieces; no report is that long."""


@dataclass(frozen=True)
class ScriptReport:
    """One report as the script wrote it; whether its numbers are any good is judged later."""

    metrics: dict[str, Any]
    step: Any = None
    stderr: Any = None
    answer: bool = False


def parse_report(line: str) -> ScriptReport | None:
    """The report in a line of output, None when it is none, `ReportError` when it is one that
    cannot be read.

    >>> parse_report('scrimp: {"loss": 0.5, "step": 3}')
    ScriptReport(metrics={'loss': 0.5}, step=3, stderr=None, answer=False)
    """
    place = line.find(MARKER + "{")
    if place < 0:
        return None
    text = line[place + len(MARKER) :].strip()
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"cannot read the report {text[:200]!r}: {error}") from None
    if not isinstance(record, dict):
        raise ReportError(f"the report {text[:200]!r} is no JSON object")
    step, stderr, answer = (record.pop(key, None) for key in ("step", "stderr", "answer"))
    return ScriptReport(record, step, stderr, answer is True)


@dataclass
class Lines:
    """Bytes in, whole lines out."""

    _rest: bytes = field(default=b"")

    def add(self, data: bytes) -> list[str]:
        """The lines that ``data`` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST_LINE:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace") for line in lines]

    def end(self) -> list[str]:
        """The last line, when it has no end of its own."""
        return self.add(b"\n") if self._rest else []
