"""Studies in MLflow, on a database of its own."""

from pathlib import Path

import pytest

mlflow = pytest.importorskip(
    "mlflow", reason="MLflow is not installed: make test-integrations brings it"
)
pytest.importorskip("sqlalchemy", reason="SQLAlchemy, for MLflow's database, is not installed")

import scrimp
from scrimp.errors import StorageError
from scrimp.formats.imports import read_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.integrations.mlflow import MlflowTracker
from scrimp.integrations.tracker import track

pytestmark = pytest.mark.filterwarnings("ignore")


def runs(uri: str) -> tuple[object, dict[int, object]]:
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("scrimp")
    found = list(client.search_runs([experiment.experiment_id]))
    (parent,) = [run for run in found if "mlflow.parentRunId" not in run.data.tags]
    children = {
        int(run.data.tags["scrimp.trial"]): run
        for run in found
        if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id
    }
    assert len(children) == len(found) - 1
    return parent, children


def test_a_study_is_a_parent_with_its_trials_and_goes_on(
    study: scrimp.Study, url: str, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert track("digits", MlflowTracker(uri), storage=url) == study.history.length - 1
    parent, children = runs(uri)
    assert parent.info.run_name == "digits" and parent.info.status == "RUNNING"
    assert parent.data.params["metric"] == "error" and parent.data.tags["scrimp.best_trial"] == "3"
    assert {number: run.info.status for number, run in children.items()} == {
        0: "FINISHED",
        1: "RUNNING",
        2: "FAILED",
        3: "FINISHED",
    }
    assert children[1].data.params == {"lr": "0.25", "kind": "a"}
    client = mlflow.MlflowClient(uri)
    curve = client.get_metric_history(children[0].info.run_id, "error")
    assert [(point.step, point.value) for point in curve] == [(1, 0.5), (2, 0.25), (3, 0.125)]
    assert children[2].data.tags["scrimp.message"] == "out of memory"

    study.tell(1, {"error": 0.01})  # a week later, another process
    assert track("digits", MlflowTracker(uri), storage=url) == 1
    parent, children = runs(uri)
    assert len(children) == 4 and children[1].info.status == "FINISHED"
    assert parent.data.metrics["best_error"] == 0.01


def test_what_mlflow_exports_is_a_study_again(
    study: scrimp.Study, url: str, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    track("digits", MlflowTracker(uri), storage=url)
    mlflow.set_tracking_uri(uri)
    query = "tags.`scrimp.trial` LIKE '%'"
    table = mlflow.search_runs(experiment_names=["scrimp"], filter_string=query)
    table.to_csv(tmp_path / "runs.csv", index=False)
    (found,) = read_results(tmp_path / "runs.csv", ImportSettings("error", parameters=("lr",)))
    values = {trial.config["lr"]: trial.curve for trial in found.trials}
    assert values[0.0] == ((1.0, 0.125),) and values[0.5] == ()


def test_what_was_written_before_a_crash_is_not_written_twice(
    study: scrimp.Study, url: str, tmp_path: Path
) -> None:
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    track("digits", MlflowTracker(uri), storage=url)
    parent, _ = runs(uri)
    client = mlflow.MlflowClient(uri)
    client.set_tag(parent.info.run_id, "scrimp.cursor", "0")  # as if the cursor had been lost
    track("digits", MlflowTracker(uri), storage=url)
    _, children = runs(uri)
    assert len(children) == 4
    assert len(client.get_metric_history(children[0].info.run_id, "error")) == 3


def test_a_server_that_is_away_is_told(
    study: scrimp.Study, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(StorageError, match=r"MLflow at http://127.0.0.1:9 did not take study"):
        track("digits", MlflowTracker("http://127.0.0.1:9"), storage=url)
