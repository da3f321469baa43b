"""For scripts that run as trials of a command: parameters, steps, checkpoints and reports, using
only the standard library.

    from scrimp import script

    settings = script.params()
    model = load(script.checkpoint_dir()) if script.resumed() else build(settings)
    for epoch in script.steps(last=27):
        error = train_epoch(model)
        save(model, script.checkpoint_dir())
        if not script.report(val_error=error):
            break

Outside scrimp the same script runs all its steps, and ``report`` only prints. A script in another
language reads the variables below and prints the same line: ``scrimp: {"val_error": 0.3, "step":
4}``.

    SCRIMP_TRIAL, SCRIMP_ATTEMPT    number of the trial, and of this start or resumption
    SCRIMP_PARAMS                   a file with the parameters as a JSON object
    SCRIMP_CHECKPOINT_DIR           the trial's folder; its content at a report is kept with the
                                    report
    SCRIMP_RESUME_STEP              the step of the checkpoint in the folder, 0 at the beginning
    SCRIMP_BUDGET                   the step at which to end
    SCRIMP_ANSWERS                  a pipe with one line, "go" or "end", for every report that has
                                    "answer": true
"""

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["MARKER", "checkpoint_dir", "params", "report", "resumed", "steps"]

MARKER = "scrimp: "
"""The text before the JSON object of a report on standard output."""

_place: dict[str, float] = {}


def params() -> dict[str, Any]:
    """Return the configuration to evaluate; empty outside scrimp."""
    path = os.environ.get("SCRIMP_PARAMS")
    return {} if path is None else dict(json.loads(Path(path).read_text(encoding="utf-8")))


def checkpoint_dir(default: str = "checkpoint") -> Path:
    """Return the folder to save into before each report; ``default`` outside scrimp."""
    folder = Path(os.environ.get("SCRIMP_CHECKPOINT_DIR", default))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def resumed() -> bool:
    """True if ``checkpoint_dir`` has a checkpoint to resume from."""
    folder = os.environ.get("SCRIMP_CHECKPOINT_DIR")
    return folder is not None and any(checkpoint_dir().iterdir())


def steps(last: int = 1) -> Iterator[int]:
    """Yield the steps from the one after the checkpoint to the end of the grant, or to ``last`` outside
    scrimp."""
    end = float(os.environ.get("SCRIMP_BUDGET", last))
    for step in range(
        math.floor(float(os.environ.get("SCRIMP_RESUME_STEP", 0))) + 1, math.ceil(end) + 1
    ):
        _place["step"] = min(float(step), end)
        yield step
    _place.clear()


def report(
    *,
    step: float | None = None,
    stderr: float | Mapping[str, float] | None = None,
    **metrics: float,
) -> bool:
    """Report metrics of the current step; return True to continue, False to end. The report is on disk
    when this returns.

    Save the checkpoint before: the report keeps it, and it must not change until ``report``
    returns.
    """
    at = _place.get("step") if step is None else step
    record: dict[str, float | bool | dict[str, float]] = {
        name: float(value) for name, value in metrics.items()
    }
    record |= {} if at is None else {"step": at}
    if isinstance(stderr, Mapping):
        record["stderr"] = {name: float(error) for name, error in stderr.items()}
    elif stderr is not None:
        record["stderr"] = float(stderr)
    answers = os.environ.get("SCRIMP_ANSWERS")
    if answers is not None:
        record["answer"] = True
    sys.stdout.write(f"{MARKER}{json.dumps(record)}\n")
    sys.stdout.flush()
    return True if answers is None else _answer(answers)


def _answer(path: str) -> bool:
    """Wait for one line; a closed pipe means the end."""
    try:
        pipe = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    line = b""
    try:
        while not line.endswith(b"\n"):
            letter = os.read(pipe, 1)
            if not letter:
                return False
            line += letter
    finally:
        os.close(pipe)
    return line == b"go\n"
