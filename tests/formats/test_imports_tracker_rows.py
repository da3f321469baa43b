"""Rows of MLflow and Weights & Biases."""

import json
from pathlib import Path

from scrimp.formats.imports import plain_row, read_results
from scrimp.formats.result_folders import ImportSettings


def test_rows_of_mlflow() -> None:
    row = {"run_id": "a", "params.lr": 0.1, "metrics.loss": 0.5, "tags.mlflow.user": "ann"}
    assert plain_row(row) == {"loss": 0.5, "params_lr": 0.1}


def test_rows_of_weights_and_biases() -> None:
    config = {"lr": 0.1, "_wandb": {"version": 3}}
    summary = {"loss": 0.5, "_wandb": {"runtime": 3}, "_step": 9}
    expected = {"loss": 0.5, "_step": 9, "params_lr": 0.1}
    for written in (json.dumps, str):  # JSON, or as Python writes it
        row = {"name": "x", "config": written(config), "summary": written(summary)}
        assert plain_row(row) == expected


def test_other_rows_stay_as_they_are() -> None:
    for row in (
        {"lr": 0.1, "config": "a.yaml", "value": 1},
        {"config": "{", "summary": "{}"},
        {"config": "{'a': __import__('os')}", "summary": "{}"},
        {"config": "{" * 99999, "summary": "{}"},
    ):
        assert plain_row(row) == row


def test_a_table_of_mlflow_is_a_study(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    file.write_text(
        "run_id,status,metrics.loss,params.lr,params.kind\n"
        "a,FINISHED,0.5,0.1,x\nb,FAILED,,0.01,y\nc,FINISHED,0.25,0.001,x\n"
    )
    (study,) = read_results(file, ImportSettings("loss"))
    assert list(study.problem.space) == ["lr", "kind"]
    assert [trial.status for trial in study.trials] == ["completed", "failed", "completed"]
