"""Folders of Ray Tune, Syne Tune and MLflow, written as these do, whole and broken."""

import json
import zipfile
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.imports import read_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.space.parameter import Float
from scrimp.study_log.problem import Budget


def ray_trial(folder: Path, number: int, config: object, losses: list[object]) -> Path:
    place = folder / f"train_{number:05d}"
    place.mkdir(parents=True)
    (place / "params.json").write_text(json.dumps(config))
    lines = [
        json.dumps({"loss": loss, "eval": {"acc": 1}, "training_iteration": step, "config": config})
        for step, loss in enumerate(losses, 1)
    ]
    (place / "result.json").write_text("\n".join(lines) + "\n")
    return place


def syne_tune(folder: Path, text: str) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / "results.csv.zip", "w") as archive:
        archive.writestr("results.csv", text)
    names = {"metric_names": ["error"], "metric_mode": "min"}
    (folder / "metadata.json").write_text(json.dumps(names))
    return folder


TABLE = (
    "error,epoch,trial_id,st_decision,config_lr,config_kind\n"
    "0.9,1,0,CONTINUE,0.1,a\n0.8,1,1,STOP,0.001,b\n0.5,2,0,CONTINUE,0.1,a\n,1,2,STOP,0.01,b\n"
)


def test_ray_tune(tmp_path: Path) -> None:
    ray_trial(tmp_path / "exp", 0, {"lr": 0.1, "net": {"width": 8}}, [0.9, 0.5, 0.4])
    ray_trial(tmp_path / "exp", 1, {"lr": 0.001, "net": {"width": 16}}, [0.8])
    ray_trial(tmp_path / "exp", 2, {"lr": 0.01, "net": {"width": 8}}, [])
    third = ray_trial(tmp_path / "exp", 3, {"lr": 0.02, "net": {"width": 8}}, [0.7, 0.6])
    with (third / "result.json").open("a") as file:
        file.write('{"loss": 0.5, "train')  # cut short by a crash
    (study,) = read_results(tmp_path / "exp", ImportSettings("loss"))
    assert study.name == "exp" and study.problem.budget == Budget("step", 1, 3.0)
    assert study.problem.space["lr"] == Float(0.001, 0.1, log=True)
    assert [trial.status for trial in study.trials] == ["completed", "stopped", "failed", "stopped"]
    assert study.trials[0].curve == ((1.0, 0.9), (2.0, 0.5), (3.0, 0.4))
    assert study.trials[3].config == {"lr": 0.02, "net/width": 8}
    assert len(read_results(tmp_path / "exp", ImportSettings("eval/acc"))[0].trials) == 4


def test_syne_tune_names_its_metric(tmp_path: Path) -> None:
    (study,) = read_results(syne_tune(tmp_path / "st", TABLE), ImportSettings())
    assert study.problem.metric == "error" and study.problem.direction == "minimize"
    assert [trial.config for trial in study.trials] == [
        {"lr": 0.1, "kind": "a"},
        {"lr": 0.001, "kind": "b"},
        {"lr": 0.01, "kind": "b"},
    ]
    assert study.trials[0].curve == ((1.0, 0.9), (2.0, 0.5))
    assert [trial.status for trial in study.trials] == ["completed", "stopped", "failed"]


def test_mlflow_files(tmp_path: Path) -> None:
    for number, lr in enumerate((0.1, 0.01)):
        run = tmp_path / "mlruns" / "0" / f"run{number}"
        for kind in ("params", "metrics"):
            (run / kind).mkdir(parents=True)
        (run / "meta.yaml").write_text("status: 3\n")
        (run / "params" / "lr").write_text(str(lr))
        (run / "params" / "kind").write_text("ab"[number])
        (run / "metrics" / "loss").write_text(f"1 {lr} 0\n2 {lr / 2} 1\n3 nan 2\n")
    (study,) = read_results(tmp_path / "mlruns", ImportSettings("loss", "maximize"))
    assert study.problem.direction == "maximize" and study.problem.budget == Budget("step", 1, 2.0)
    assert study.trials[0].curve == ((1.0, 0.1), (2.0, 0.05))
    assert study.trials[1].config == {"kind": "b", "lr": 0.01}


def broken(tmp_path: Path, kind: str) -> Path:
    folder = tmp_path / "broken"
    if kind == "line":
        place = ray_trial(folder, 0, {"lr": 0.1}, [0.5])
        (place / "result.json").write_text('{"loss": \n{"loss": 1}\n')
    elif kind == "list":
        ray_trial(folder, 0, {"lr": [1, 2]}, [0.5])
    elif kind == "metric":
        ray_trial(folder, 0, {"lr": 0.1}, [None, "x"])
    elif kind == "zip":
        syne_tune(folder, TABLE)
        (folder / "results.csv.zip").write_bytes(b"PK\x03\x04 nothing")
    elif kind == "column":
        syne_tune(folder, "loss,trial_id\n1,0\n")
    elif kind == "metadata":
        syne_tune(folder, TABLE)
        (folder / "metadata.json").write_text("[]")
    else:
        folder.mkdir()
    return folder


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("line", "line 1 of .* is not valid JSON"),
        ("list", r"parameter 'lr' beside .* is \[1, 2\]; a parameter is a number or a text"),
        ("metric", "no result in .* has a number 'loss'"),
        ("zip", "results.csv.zip' cannot be unpacked"),
        ("column", "no column 'error'; .* one of loss, trial_id"),
        ("metadata", "has no results that can be imported"),
        ("empty", "is not a known folder of results"),
    ],
)
def test_broken_folders_are_told(tmp_path: Path, kind: str, words: str) -> None:
    metric = "value" if kind in ("zip", "column", "metadata") else "loss"
    with pytest.raises(StudyError, match=words):
        read_results(broken(tmp_path, kind), ImportSettings(metric))


def mlflow_run(folder: Path, number: int) -> Path:
    run = folder / "0" / f"run{number}"
    for name, text in {"params/lr": f"0.{number + 1}", "metrics/loss": "0 0.5 1\n"}.items():
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(text)
    (run / "meta.yaml").write_text("run_id: a\n")
    return run


@pytest.mark.parametrize(
    "place",
    ["ray/params.json", "ray/result.json", "ray", "mlflow/params/stolen", "mlflow/metrics/loss"],
)
def test_links_in_folders_are_not_followed(tmp_path: Path, place: str) -> None:
    """Another file of the user must not land in the storage."""
    secret = tmp_path / "home" / "secret"
    ray_trial(secret, 9, {"api_key": "sk-SECRET", "lr": 1.5}, [0.1])
    tool, _, inside = place.partition("/")
    for number in range(2):
        ray_trial(tmp_path / "ray", number, {"lr": 0.1 * (number + 1)}, [0.5])
        mlflow_run(tmp_path / "mlflow", number)
    trial = tmp_path / "ray" / "train_00001" if tool == "ray" else tmp_path / "mlflow/0/run1"
    own = secret / "train_00009"
    if inside:
        (trial / inside).unlink(missing_ok=True)
        (trial / inside).symlink_to(own / ("params.json" if "param" in inside else "result.json"))
    else:
        (tmp_path / "ray" / "train_00002").symlink_to(own)
    with pytest.raises(StudyError, match="links in folders of results are not followed"):
        read_results(tmp_path / tool, ImportSettings("loss"))


def test_a_folder_may_be_a_link_itself(tmp_path: Path) -> None:
    ray_trial(tmp_path / "exp", 0, {"lr": 0.1}, [0.9])
    ray_trial(tmp_path / "exp", 1, {"lr": 0.2}, [0.8])
    (tmp_path / "latest").symlink_to(tmp_path / "exp")
    (study,) = read_results(tmp_path / "latest", ImportSettings("loss"))
    assert study.name == "exp" and len(study.trials) == 2


def test_a_metric_names_no_file_outside_its_run(tmp_path: Path) -> None:
    for number in range(2):
        mlflow_run(tmp_path / "mlflow", number)
    (tmp_path / "secret").write_text("0 1.0 1\n")
    with pytest.raises(StudyError, match="leads out of the folder"):
        read_results(tmp_path / "mlflow", ImportSettings("../../../../secret"))
