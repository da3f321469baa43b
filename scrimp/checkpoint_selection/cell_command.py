"""Run the command of one cell, retry it on failure, and report its score: the process that ``scrimp
select run`` starts for each cell.

python -m scrimp.checkpoint_selection.cell_command --checkpoint 1000 --task mmlu --retries 2 --results
out/1000/mmlu -- lm_eval ...

Without ``--results`` the score is the last line of the command's output: a number, or JSON with
``score`` and optionally ``stderr``. A command may also report by itself (`scrimp.script`).
"""

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scrimp.checkpoint_selection.score_files import Score, read_result
from scrimp.checkpoint_selection.score_table import check_score, known_error
from scrimp.errors import ScrimpError, TableError
from scrimp.script import MARKER


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the cell; return the exit code, 0 if there is a score."""
    parser = argparse.ArgumentParser(prog="scrimp.checkpoint_selection.cell_command")
    for name in ("--checkpoint", "--task"):
        parser.add_argument(name, required=True)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--metric")
    parser.add_argument("--retries", type=int, default=0)
    given = sys.argv[1:] if arguments is None else list(arguments)
    # Before the first "--" are our options; the command may have a "--" of its own.
    place = given.index("--")
    options, words = parser.parse_args(given[:place]), given[place + 1 :]
    for attempt in range(options.retries + 1):
        try:
            found = _measured(options, words)
        except (ScrimpError, OSError) as error:
            message = f"attempt {attempt + 1} of {options.retries + 1}: {error}"
            print(message, file=sys.stderr, flush=True)
            continue
        if found is not None:
            print(f"{MARKER}{json.dumps({'score': found[0], 'stderr': found[1]})}", flush=True)
        return 0
    return 1


def _measured(options: argparse.Namespace, words: list[str]) -> Score | None:
    """Run the command once; return its score, or None if it reported by itself."""
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


def _printed(line: str) -> Score:
    """Parse the score in the last line of output."""
    try:
        if not line.startswith("{"):
            return float(line), None
        record = json.loads(line)
        return float(record["score"]), known_error(record.get("stderr"))
    except (ValueError, KeyError, TypeError):
        raise TableError(
            f"the command's last line is {line[:200]!r}, which is not a score; print a number, or"
            " name a file with results = …"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
