"""Run one cell's command, again where it failed, and report the score it left: what ``scrimp select
run`` starts per cell.

python -m scrimp.selection.cell_command --checkpoint 1000 --task mmlu --retries 2 --results
out/1000/mmlu -- lm_eval ...

Without ``--results`` the score is the last line of the command's output: a number, or JSON with
``score`` and perhaps ``stderr``. A command that reports by itself (`scrimp.script`) is left to do
so.
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scrimp.errors import ScrimpError, TableError
from scrimp.script import MARKER
from scrimp.selection.results import Score, read_result
from scrimp.selection.score_table import check_score, known_error

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cell; the exit code is 0 when there is a score."""
    parser = argparse.ArgumentParser(prog="scrimp.selection.cell_command")
    for name in ("--checkpoint", "--task"):
        parser.add_argument(name, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--metric")
    parser.add_argument("--retries", type=int, default=0)
    own, words = _parted(sys.argv[1:] if arguments is None else list(arguments))
    options = parser.parse_args(own)
    for attempt in range(options.retries + 1):
        try:
            found = _measured(options, words)
        except (ScrimpError, OSError) as error:
            print(
                f"attempt {attempt + 1} of {options.retries + 1}: {error}",
                file=sys.stderr,
                flush=True,
            )
            continue
        if found is not None:
            print(f"{MARKER}{json.dumps({'score': found[0], 'stderr': found[1]})}", flush=True)
        return 0
    return 1


def _measured(options: argparse.Namespace, words: list[str]) -> Score | None:
    """One attempt: the score, None when the command has reported it; `TableError` when there is
    none."""
    last, reported = "", False
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            reported = reported or MARKER + "{" in line
            last = line.strip() or last
    if process.returncode != 0:
        raise TableError(f"the command ended with code {process.returncode}")
    if reported:
        return None
    if options.results is None:
        score = _printed(last)
    else:
        score = read_result(options.results, options.checkpoint, options.task, options.metric)
    if not math.isfinite(score[0]):
        raise TableError(f"the score is {score[0]}, which is not a finite number")
    check_score(*score, options.checkpoint, options.task)
    return score


def _parted(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after the first ``--``; the command may have some of its own."""
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _printed(line: str) -> Score:
    """The score in the last line of output."""
    try:
        if not line.startswith("{"):
            return float(line), None
        record = json.loads(line)
        return float(record["score"]), known_error(record.get("stderr"))
    except (ValueError, KeyError, TypeError):
        raise TableError(
            f"the command's last line is {line[:200]!r}, which is no score; print a number, or name"
            " a file with results = …"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
