"""``scrimp select posterior`` and ``scrimp select correlations``, of files and of stored
selections."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.errors import ScrimpError


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Ten checkpoints, three tasks, ten scores."""
    lines = ["checkpoint,task,score"]
    for step in range(1, 11):
        for place, task in enumerate(("a", "b", "c")):
            known = (3 * step + place) % 3 == 0 or step == 9
            lines.append(f"{step},{task},{0.5 + 0.01 * step + 0.1 * place if known else ''}")
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines))
    return path


def test_posterior_and_correlations_of_a_file(scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells.csv"
    text = run("select", "posterior", str(scores), "--out", str(out)).stdout
    assert len(text.splitlines()) == 12 and "average" in text and "wrote" in text
    assert len(out.read_text().splitlines()) == 31 and out.read_text().startswith(
        "checkpoint,task,mean,std,measured"
    )
    record = json.loads(run("select", "posterior", str(scores), "--json").stdout)
    answer = json.loads(run("select", "next", str(scores), "--json").stdout)["recommendation"]
    best = record["checkpoints"].index(answer["checkpoint"])
    assert record["average_mean"][best] == pytest.approx(answer["expected_score"])
    assert record["average_std"][best] == pytest.approx(answer["standard_error"])
    text = run("select", "correlations", str(scores)).stdout
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        "a",
        "b",
        "c",
    ] and " 1.00" in text
    matrix = json.loads(run("select", "correlations", str(scores), "--json", "--kernel").stdout)[
        "correlations"
    ]
    assert matrix[0][1] == pytest.approx(matrix[0][2])
    with pytest.raises(ScrimpError, match="'stride' has no model"):
        run("select", "posterior", str(scores), "--method", "stride")


def test_beliefs_of_a_stored_selection_and_of_many_tasks(tmp_path: Path) -> None:
    url, tasks = f"sqlite:///{tmp_path}/s.db", [f"t{place}" for place in range(14)]
    selection = scrimp.create_selection("s", checkpoints=range(6), tasks=tasks, storage=url, seed=0)
    selection.run(lambda checkpoint, task: checkpoint / 10, share=0.3)
    text = run("select", "correlations", "s", "--storage", url).stdout
    assert "most alike:" in text and "least alike:" in text and "91 pairs in all" in text
    assert len(run("select", "posterior", "s", "--storage", url).stdout.splitlines()) == 7
