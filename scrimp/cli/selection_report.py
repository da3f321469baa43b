"""What commands say of a selection: the recommendation, how sure it is, and which cells failed."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from scrimp.cli.say import echo

if TYPE_CHECKING:  # loading them takes SciPy
    from scrimp.history.history import History
    from scrimp.history.trial import Trial
    from scrimp.selection.recommendation import Recommendation
    from scrimp.selection.score_table import ScoreTable

__all__ = [
    "cell_counts",
    "print_failures",
    "print_recommendation",
    "recommendation_record",
    "show_selection",
]


def recommendation_record(answer: "Recommendation") -> dict[str, object]:
    """A recommendation as JSON."""
    return {**asdict(answer), "warnings": list(answer.warnings)}


def show_selection(history: "History", as_json: bool) -> None:
    """What ``scrimp show`` and ``scrimp best`` print of a selection."""
    from scrimp.selection.cell_policy import recommendation, score_table

    table, answer = score_table(history), recommendation(history)
    record = {
        "name": history.created.name,
        "kind": "selection",
        "method": history.method["name"],
        "checkpoints": list(table.checkpoints),
        "tasks": list(table.tasks),
        "cells": cell_counts(history),
        "recommendation": recommendation_record(answer),
        "trials": [_cell_record(trial) for trial in history.trials],
    }
    if as_json:
        echo(json.dumps(record))
        return
    echo(f"{record['name']}: selection of a checkpoint with {record['method']}")
    print_recommendation(answer, table)
    print_failures(history)


def print_recommendation(answer: "Recommendation", table: "ScoreTable") -> None:
    """The answer, for people."""
    measured, failed = int(table.seen.sum()), int(table.failed.sum())
    note = f", {failed} failed" if failed else ""
    echo(f"measured {measured} of {table.scores.size} cells{note}; cost so far {answer.spent:g}")
    echo(str(answer))


def print_failures(history: "History") -> None:
    """The newest cells that could not be measured."""
    failed = history.with_status("failed")
    for trial in failed[-5:]:
        cell = f"{trial.config['task']} of checkpoint {trial.config['checkpoint']}"
        echo(f"  failed: {cell}: {_cause(trial.message)[:120]}")
    if len(failed) > 5:
        echo(
            f"  … and {len(failed) - 5} more; scrimp show {history.created.name} --json lists them"
        )


def _cause(message: str) -> str:
    """The line that says most: of a script its own last words, of an exception the first line."""
    lines = [line.strip() for line in message.splitlines() if line.strip()] or ["no message"]
    own = [line for line in lines[1:] if not line.startswith("attempt ")]
    return own[-1] if own and lines[0].startswith("the script exited") else lines[0]


def cell_counts(history: "History") -> dict[str, int]:
    """How many cells are in each state."""
    return {status: count for status, count in history.counts.items() if count}


def _cell_record(trial: "Trial") -> dict[str, object]:
    error = trial.message if trial.status in ("failed", "stale") else ""
    stderr = None if trial.last is None else trial.last.stderr
    return {
        "id": trial.id,
        "status": trial.status,
        **trial.config,
        "score": trial.value,
        "stderr": stderr,
        "error": error,
    }
