"""Record the small studies in tests/stored, one log per file.

    python -m tests.tools.record_studies

`tests/study/test_stored_studies.py` opens them in every storage, replays their decisions and
continues them. Until the first release record them again whenever the log format changes; a format
that was released keeps its folder.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scrimp
from scrimp.storage.event_json import FORMAT_NUMBER
from scrimp.storage.open import open_storage

STORED = Path(__file__).parent.parent / "stored" / f"format-{FORMAT_NUMBER}"

SPACE = scrimp.Space(
    lr=scrimp.Float(1e-4, 1.0, log=True),
    layers=scrimp.Int(1, 5),
    optimizer=scrimp.Categorical(["adamw", "sgd"]),
)
BUDGET = scrimp.Budget("epoch", 1, 9)
CHECKPOINTS = range(100, 1300, 100)
TASKS = ("arc", "mmlu")


def metrics(params: Mapping[str, Any], step: float = 9) -> dict[str, float]:
    """Return made-up results: the loss falls with ``step``, memory and time grow with layers."""
    loss = (params["lr"] - 0.1) ** 2 + 0.1 * params["layers"] + 1 / step
    return {"loss": loss, "memory": float(params["layers"]), "seconds": 1.0 + params["layers"]}


def record_tells(study: scrimp.Study, trials: int) -> None:
    """Ask and tell."""
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, metrics(trial.params))


def record_reports(study: scrimp.Study, asks: int) -> None:
    """Ask, and report each step until the grant of the trial ends."""
    for _ in range(asks):
        trial = study.ask()
        step = int(trial.budget) + 1
        while study.report(trial, step=step, **metrics(trial.params, step)):
            step += 1


def record_all(url: str) -> None:
    """Record every study in the storage at ``url``."""

    def create(name: str, method: str = "gp", **options: Any) -> scrimp.Study:
        return scrimp.create_study(name, SPACE, method=method, storage=url, seed=0, **options)

    limits = {"memory": scrimp.AtMost(3)}
    record_tells(create("gp", metric="loss", constraints=limits, cost="seconds"), 10)
    record_tells(create("front", metrics={"loss": "minimize", "memory": "minimize"}), 10)
    record_tells(create("tpe", "tpe", metric="loss"), 12)
    record_tells(create("learned", "rgpe", metric="loss", learn_from=["tpe"]), 8)
    for method, asks in (("mobster-joint", 16), ("freeze-thaw", 24), ("sync-hyperband", 16)):
        record_reports(create(method, method, metric="loss", budget=BUDGET), asks)
    selection = scrimp.create_selection(
        "selection", checkpoints=CHECKPOINTS, tasks=TASKS, storage=url, seed=0
    )
    for _ in range(9):
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, 0.5 + 0.0002 * checkpoint - 0.1 * (task == "mmlu"))


def main() -> None:
    """Write the logs of all studies."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/studies.db"
        record_all(url)
        storage = open_storage(url)
        STORED.mkdir(parents=True, exist_ok=True)
        for name in storage.names():
            lines = [
                line if isinstance(line, str) else line.decode()
                for line in storage.open(name).lines()
            ]
            (STORED / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
        storage.close()


if __name__ == "__main__":
    main()
