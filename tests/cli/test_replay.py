"""The command that recomputes decisions: exit code, JSON, words."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.history.events import BudgetGranted, Noted, StudyChanged, TrialAdded


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


def test_a_faithful_study_and_a_forged_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=4)
    result = run("replay", "s", "--storage", url)
    assert result.exit_code == 0 and "4 of 4 decisions are the same" in result.stdout
    study._change(StudyChanged(lifted=("n_trials",)))
    number = len(study.trials)
    study._ledger.append(
        [
            Noted(decision=number, seen=study.history.length),
            TrialAdded(trial=number, config={"x": 0.123}),
            BudgetGranted(trial=number, budget=1.0),
        ],
        decision=number,
    )
    forged = run("replay", "s", "--storage", url, "--json")
    record = json.loads(forged.stdout)
    assert forged.exit_code == 1 and (record["decisions"], record["same"]) == (5, 4)
    assert (
        record["differences"][0]["decision"] == 4
        and "x was 0.123" in record["differences"][0]["difference"]
    )
    assert "decision 4 differs" in run("replay", "s", "--storage", url).stdout
