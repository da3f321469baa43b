"""Records what small studies decide, and checks that they still decide the same.

    python benchmarks/same_decisions/record.py --write baseline.json.gz
    python benchmarks/same_decisions/record.py --check [--only PATTERN] [-j 2]

Each study has two digests: of its decisions exactly, and of the same with numbers rounded to six
digits. The second one tells a change of rounding from a change of mind.
"""

import argparse
import fnmatch
import gzip
import hashlib
import json
import logging
import math
import multiprocessing
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import drivers
import numpy
import scipy
import still_clock
from catalogue import all_plans
from spellings import scrimp

BASELINE = Path(__file__).resolve().parent / "baseline.json.gz"
DIGITS = 6
_PLAYERS = {
    drivers.Play: drivers.play,
    drivers.Simulation: drivers.simulate,
    drivers.Choosing: drivers.choose,
    drivers.Commands: drivers.command,
}


def main() -> int:
    """Read the command line and do what it says; 1 where a decision differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", metavar="FILE", help="record all studies into this file")
    parser.add_argument("--check", action="store_true", help="compare with the recorded studies")
    parser.add_argument("--list", action="store_true", help="print the names of the studies")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="the file to compare with")
    parser.add_argument("--only", metavar="PATTERN", help="studies of such names; * stands for any")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="processes to play in")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="show the N slowest")
    given = parser.parse_args()
    names = [name for name in all_plans() if given.only is None or _matches(name, given.only)]
    if given.list:
        print("\n".join(names))
        return 0
    if given.check == bool(given.write):
        parser.error("give --check, or --write FILE")
    print(f"scrimp of {scrimp.__file__}", flush=True)
    began = time.perf_counter()
    recorded = None if given.write else _read(given.baseline)
    found: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    counts: dict[str, int] = {}
    for name, record, took in _played(names, given.j):
        found[name], seconds[name] = record, took
        if recorded is not None:
            verdict, lines = compared(recorded["studies"].get(name), record)
        else:
            verdict, lines = ("FAILED", record["error"]) if "error" in record else ("recorded", [])
        counts[verdict] = counts.get(verdict, 0) + 1
        if given.write is None or lines:
            print("\n    ".join([f"{verdict:14} {name}", *lines]), flush=True)
    for name in sorted(seconds, key=seconds.get, reverse=True)[: given.slowest]:
        print(f"{seconds[name]:6.2f} s  {name}")
    summary = ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items()))
    print(f"{len(found)} studies in {time.perf_counter() - began:.0f} s: {summary}")
    if given.write and not counts.get("FAILED"):
        _write(Path(given.write), found)
    if recorded is not None and recorded["made by"] != _makers():
        print(f"note: recorded with {recorded['made by']}, played with {_makers()}")
    return 1 if counts.get("DIFFERENT") or counts.get("FAILED") else 0


def _matches(name: str, pattern: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern) or pattern in name


def _played(names: list[str], processes: int) -> Iterator[tuple[str, dict[str, Any], float]]:
    """Every study with its record and the seconds it took, in the order of ``names``."""
    if processes <= 1:
        yield from map(_play, names)
        return
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(_play, names)


def _play(name: str) -> tuple[str, dict[str, Any], float]:
    logging.getLogger("scrimp").setLevel(logging.CRITICAL)
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    plan = all_plans()[name]
    still_clock.install()
    try:
        played = _PLAYERS[type(plan)](plan)
        record = json.loads(json.dumps(played))  # as it will be read back
        record["exact"], record["rounded"] = digest(played), digest(rounded(played))
    except Exception:
        record = {"error": traceback.format_exc().rstrip().split("\n")}
    finally:
        still_clock.remove()
    return name, record, time.perf_counter() - began


def digest(record: Any) -> str:
    """A digest of plain values; numbers count with all their digits."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def rounded(value: Any) -> Any:
    """The same with every number to six digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list | tuple) else value


def alike(one: Any, other: Any) -> bool:
    """Return True if two records differ by rounding at most, also where rounding falls between digits."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=10.0 ** (1 - DIGITS)) or one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return type(one) is type(other) and one == other


def compared(before: dict[str, Any] | None, now: dict[str, Any]) -> tuple[str, list[str]]:
    """A verdict on a study, and where it first differs."""
    if "error" in now:
        return "FAILED", now["error"]
    if before is None:
        return "not recorded", []
    if before["exact"] == now["exact"]:
        return "same", []
    same = before["rounded"] == now["rounded"] or all(
        alike(before[key], now[key]) for key in ("method", "decisions", "end")
    )
    return ("rounding only" if same else "DIFFERENT"), _difference(before, now, same)


def _difference(before: dict[str, Any], now: dict[str, Any], exactly: bool) -> list[str]:
    """The first difference, for people."""

    def differ(one: Any, other: Any) -> bool:
        return one != other if exactly else not alike(one, other)

    if before["method"] != now["method"]:
        return [f"method before: {before['method']}", f"method now:    {now['method']}"]
    ways = before["decisions"], now["decisions"]
    for place, (one, other) in enumerate(zip(*ways, strict=False)):
        if differ(one, other):
            return [
                f"entry {place} of {len(ways[0])} before: {json.dumps(one)}",
                f"entry {place} of {len(ways[1])} now:    {json.dumps(other)}",
            ]
    if len(ways[0]) != len(ways[1]):
        longer = "before" if len(ways[0]) > len(ways[1]) else "now"
        place = min(map(len, ways))
        rest = json.dumps(max(ways, key=len)[place])
        return [f"{len(ways[0])} entries before, {len(ways[1])} now; only {longer}: {rest}"]
    for key in sorted(before["end"].keys() | now["end"].keys()):
        one, other = before["end"].get(key), now["end"].get(key)
        if differ(one, other):
            if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
                place = list(map(differ, one, other)).index(True)
                key, one, other = f"{key}, place {place}", one[place], other[place]
            return [
                f"at the end, {key}, before: {json.dumps(one)}",
                f"at the end, {key}, now:    {json.dumps(other)}",
            ]
    return []


def _makers() -> dict[str, str]:
    """The software beside scrimp that numbers depend on."""
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }


def _read(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt") as file:
        return json.load(file)


def _write(path: Path, found: dict[str, dict[str, Any]]) -> None:
    """Write all records, byte for byte the same for the same decisions."""
    text = json.dumps({"made by": _makers(), "studies": found}, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
