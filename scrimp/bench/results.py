"""Results of a comparison: one JSON object per finished run, one per line, so that an interrupted
comparison resumes.

{"suite": "functions", "table": "functions", "task": "branin", "method": "gp", "seed": 0, ...,
"regret": [...]}
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NotRequired, TypedDict

from scrimp.errors import TableError
from scrimp.json_values import Config, Json, JsonObject

__all__ = ["Cell", "RunHead", "RunRecord", "append_result", "read_runs", "result_cell"]


class RunHead(TypedDict):
    """Which run it was: what every suite writes first."""

    suite: str
    table: str
    task: str
    method: str
    seed: int
    size: int
    workers: NotRequired[int]
    sources: NotRequired[str]


class RunRecord(RunHead, total=False):
    """One finished run of a comparison: its head, and what its suite measures.

    functions, tables: ``regret`` after each trial. curves: ``regret`` and ``value`` at the shares
    ``spent``, and ``trace``, pairs of share and regret. checkpoints: lists with an entry per
    ``share``. transfer: lists with an entry per count ``at``; traces: ``tried``, pairs of
    configuration and value. speed: seconds with ``n`` observations.
    """

    decision_seconds: float
    decisions: int
    regret: list[float | None]
    spent: list[float]
    value: list[float]
    trials: int
    trace: list[list[float]]
    share: list[float]
    smoothed_regret: list[float]
    underlying_regret: list[float]
    answer_smoothed_regret: list[float]
    probability_best: list[float]
    expected_loss: list[float]
    cells: list[int]
    at: list[int]
    solved: list[bool]
    grid_rank: list[float]
    tried: list[tuple[Config, float | None]]
    n: int
    ask_seconds: float
    ask_seconds_median: float
    between_refits_seconds: float | None
    acquisition: float | None
    repeats: int
    proposals: list[Config]


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

    def head(self) -> dict[str, Json]:
        """What every result begins with."""
        record: dict[str, Json] = asdict(self)
        del record["source"], record["folder"], record["keep"]
        if not self.sources:
            del record["sources"]
        return record


def result_cell(record: RunHead) -> Cell:
    """The run that a result belongs to, wherever its table lies today."""
    return Cell(
        record["suite"],
        record["table"],
        record["task"],
        record["method"],
        record["seed"],
        record["size"],
        workers=record.get("workers", 1),
        sources=record.get("sources", ""),
    )


def read_runs(path: Path) -> list[RunRecord]:
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


def append_result(path: Path, record: JsonObject) -> None:
    """Add a finished run. A torn last line is cut off first, so that what follows can be read."""
    with path.open("ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(json.dumps(record).encode() + b"\n")
