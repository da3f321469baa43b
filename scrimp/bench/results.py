"""Results of a comparison: one JSON object per finished run and line, so that an interrupted
comparison resumes. Each suite has its own fields after those of `RunHead`:

    {"suite": "functions", "table": "functions", "task": "branin", "method": "gp", "seed": 0, ...}
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from scipy.stats import rankdata

from scrimp.errors import TableError
from scrimp.json_values import Json, JsonObject

Run: TypeAlias = dict[str, Any]
"""A result: the fields of `Cell.head`, those of `Cell.result`, and those of its suite."""


@dataclass(frozen=True)
class Cell:
    """One run of a comparison.

    ``size`` is its length: trials, full trainings for curves, observations for speed. ``sources`` is
    the kind of past studies. ``source`` is the file of its table, ``folder`` caches what is computed
    once, ``keep`` is the storage that saves the run as a study; these three are not part of a
    result, and cells that differ in them alone are the same run.
    """

    suite: str
    table: str
    task: str
    method: str = ""
    seed: int = 0
    size: int = 0
    workers: int = 1
    sources: str = ""
    source: str = field(default="", compare=False)
    folder: str = field(default="", compare=False)
    keep: str = field(default="", compare=False)

    def head(self) -> dict[str, Json]:
        """Return the fields that every result starts with."""
        record: dict[str, Json] = asdict(self)
        del record["source"], record["folder"], record["keep"]
        if not self.sources:
            del record["sources"]
        return record

    def result(self, seconds: float, decisions: int, **found: Json) -> dict[str, Json]:
        """Return the result of the run, with the CPU seconds and number of its decisions."""
        return {**self.head(), "decision_seconds": seconds, "decisions": decisions, **found}


def task_of_shares(shares: Sequence[float], example: str) -> str:
    """Return the task of a run at these shares, such as "0.05,0.1"; `TableError` for a bad one."""
    for share in shares:
        if not 0.0 < share <= 1.0:
            raise TableError(
                f"share {share:g} is not between 0 and 1; give shares such as {example}"
            )
    return ",".join(f"{share:g}" for share in shares)


def comparison(tasks: Sequence[Cell], methods: Sequence[str], seeds: int) -> list[Cell]:
    """Return the runs of methods on tasks, seeds outermost, so that a prefix of them is balanced."""
    return [
        replace(task, method=method, seed=seed)
        for seed in range(seeds)
        for task in tasks
        for method in methods
    ]


def result_cell(record: Run) -> Cell:
    """Return the run that a result belongs to, without the place of its table."""
    names = ("suite", "table", "task", "method", "seed", "size")
    needed = {name: record[name] for name in names}
    return Cell(**needed, workers=record.get("workers", 1), sources=record.get("sources", ""))


def read_runs(path: Path) -> list[Run]:
    """Return the results in a file, if it exists; an incomplete last line is left out."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
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
    """Append a finished run, in place of an incomplete last line."""
    with path.open("ab+") as file:
        file.seek(0)
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)
        file.write(json.dumps(record).encode() + b"\n")


RunKey = tuple[str, str, int]
"""Table, task, seed."""

Regrets = Mapping[str, Mapping[RunKey, float | None]]
"""The regrets of each method."""


def ranks(losses: Sequence[float | None]) -> NDArray[np.float64]:
    """Return the rank of each loss, 1 for the lowest; equal ones share their average, and None
    (nothing found) is worse than any number.

    >>> ranks([0.5, 0.1, 0.5, None]).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    return np.asarray(rankdata([math.inf if loss is None else loss for loss in losses]))


def by_method(records: Sequence[Run]) -> dict[str, list[Run]]:
    """Return the runs of each method."""
    found: dict[str, list[Run]] = {}
    for record in records:
        found.setdefault(record["method"], []).append(record)
    return found


def milliseconds_per_decision(records: Sequence[Run]) -> float:
    """Return the mean CPU time of a decision over these runs."""
    seconds = sum(record["decision_seconds"] for record in records)
    return float(1e3 * seconds / max(sum(record["decisions"] for record in records), 1))


def final_regrets(records: Sequence[Run]) -> dict[str, dict[RunKey, float | None]]:
    """Return the last regret of every run: method -> (table, task, seed) -> regret."""
    return {
        method: {(run["table"], run["task"], run["seed"]): run["regret"][-1] for run in runs}
        for method, runs in by_method(records).items()
    }


def ranks_by_run(regrets: Regrets) -> dict[RunKey, NDArray[np.float64]]:
    """Return the ranks of the methods (methods,) on each run that all of them have."""
    shared = set.intersection(*map(set, regrets.values())) if regrets else set()
    return {run: ranks([own[run] for own in regrets.values()]) for run in sorted(shared)}


def average_ranks(regrets: Regrets) -> dict[str, float]:
    """Return each method's average rank over the runs that all of them have."""
    found = list(ranks_by_run(regrets).values())
    return dict(zip(regrets, np.mean(found, axis=0).tolist(), strict=True)) if found else {}


def mean_regret(regrets: Sequence[float | None]) -> float:
    """Return the mean; infinite if a run found nothing, NaN without runs."""
    found = [math.inf if regret is None else regret for regret in regrets]
    return float(np.mean(found)) if found else math.nan


def paired_interval(
    first: ArrayLike, second: ArrayLike, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of first - second over pairs, with its Student t interval at ``level``: (mean,
    low, high).

    mean ± t(n - 1) s / sqrt(n); with one pair the interval is everything.

    >>> [round(number, 3) for number in paired_interval([2.0, 3.0, 4.0], [1.0, 1.0, 1.0])]
    [2.0, -0.484, 4.484]
    """
    difference = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    mean, count = float(difference.mean()), len(difference)
    if count < 2:
        return mean, -math.inf, math.inf
    width = float(stdtrit(count - 1, (1 + level) / 2) * difference.std(ddof=1) / math.sqrt(count))
    return mean, mean - width, mean + width


def with_interval(mean: float, low: float, high: float, form: str) -> str:
    """Return a mean with its interval as text; of a single pair, which has none, the mean.

    >>> with_interval(1.0, 0.5, 1.5, ".1f"), with_interval(1.0, -math.inf, math.inf, ".1f")
    ('1.0 [0.5, 1.5]', '1.0 (one pair)')
    """
    if math.isinf(low) and math.isinf(high) and math.isfinite(mean):
        return f"{mean:{form}} (one pair)"
    return f"{mean:{form}} [{low:{form}}, {high:{form}}]"


Summary = tuple[list[str], list[list[str]]]
"""Header and rows."""


def regret_summary(records: Sequence[Run], ranked: bool = True) -> Summary:
    """Summarize tasks by methods: mean final regret, then the average rank and its distance to the
    best method if ``ranked``, and milliseconds per decision."""
    runs, regrets = by_method(records), final_regrets(records)
    rows = []
    for task in dict.fromkeys(record["task"] for record in records):
        own = [[loss for run, loss in of.items() if run[1] == task] for of in regrets.values()]
        rows.append([task, *(f"{mean_regret(losses):.4g}" if losses else "-" for losses in own)])
    if ranked and (found := list(ranks_by_run(regrets).values())):
        places = dict(zip(regrets, np.transpose(found), strict=True))
        rows += rank_rows(places, list(regrets), ("average rank", "behind the best"))
    costs = [milliseconds_per_decision(own) for own in runs.values()]
    rows.append(["ms per decision", *(f"{cost:.1f}" for cost in costs)])
    return ["mean final regret", *regrets], rows


def rank_rows(
    places: Mapping[str, ArrayLike], methods: Sequence[str], labels: tuple[str, str]
) -> list[list[str]]:
    """Return a row of average ranks, and one of how many ranks each method is behind the best, with a
    95% interval over its ranks; a method without ranks has empty cells."""
    averages = {method: float(np.asarray(own).mean()) for method, own in places.items()}
    best = min(averages, key=lambda method: averages[method])
    behind = {
        method: with_interval(*paired_interval(own, places[best]), ".2f")
        for method, own in places.items()
    }
    behind[best] = "-"
    return [
        [labels[0], *(f"{averages[name]:.2f}" if name in averages else "" for name in methods)],
        [labels[1], *(behind.get(name, "") for name in methods)],
    ]
