"""Results of a comparison: one JSON object per finished run, one per line, so that an interrupted
comparison resumes.

{"suite": "functions", "table": "functions", "task": "branin", "method": "gp", "seed": 0, ...,
"regret": [...]}
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scrimp.errors import TableError

__all__ = ["Cell", "append_result", "read_runs", "result_cell"]


@dataclass(frozen=True, order=True)
class Cell:
    """One run of a comparison.

    ``size`` is its length: trials, full trainings for curves, observations for speed. ``source`` is
    the file of its table, ``folder`` where things worked out once are kept, ``keep`` the storage
    that keeps the run as a study; none is part of a result. ``sources`` says what past studies are.
    """

    suite: str
    table: str
    task: str
    method: str
    seed: int
    size: int
    workers: int = 1
    sources: str = ""
    source: str = ""
    folder: str = ""
    keep: str = ""

    def head(self) -> dict[str, Any]:
        """What every result begins with."""
        record = asdict(self)
        del record["source"], record["folder"], record["keep"]
        if not self.sources:
            del record["sources"]
        return record


def result_cell(record: Mapping[str, Any]) -> Cell:
    """The run that a result belongs to, wherever its table lies today."""
    names = ("suite", "table", "task", "method", "seed", "size")
    given = {name: record[name] for name in names}
    return Cell(**given, workers=record.get("workers", 1), sources=record.get("sources", ""))


def read_runs(path: Path) -> list[dict[str, Any]]:
    """The results in a file; none when it does not exist. A torn last line, of a run that was
    interrupted, is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[
        :-1
    ]  # what stands after the last line end is torn
    records = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line))
            result_cell(records[-1])
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise TableError(
                f"line {number} of {str(path)!r} is not a result of scrimp bench; give --out"
                " another file"
            ) from None
    return records


def append_result(path: Path, record: Mapping[str, Any]) -> None:
    """Add a finished run. A torn last line is cut off first, so that what follows can be read."""
    with path.open("ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(json.dumps(record).encode() + b"\n")
