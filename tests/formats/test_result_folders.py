"""Folders of Ray Tune, Syne Tune and MLflow, written as these do, whole and broken."""

import json
import zipfile
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.imports import ImportSettings, read_results
from scrimp.history.problem import Budget
from scrimp.space.parameter import Float


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
        ("line", "line 1 of .* is no JSON"),
        ("list", r"parameter 'lr' beside .* is \[1, 2\]; a parameter is a number or a text"),
        ("metric", "no result in .* has a number 'loss'"),
        ("zip", "results.csv.zip' cannot be unpacked"),
        ("column", "no column 'error'; .* one of loss, trial_id"),
        ("metadata", "does not hold results that can be imported"),
        ("empty", "is no folder of results that is known"),
    ],
)
def test_broken_folders_are_told(tmp_path: Path, kind: str, words: str) -> None:
    metric = "value" if kind in ("zip", "column", "metadata") else "loss"
    with pytest.raises(StudyError, match=words):
        read_results(broken(tmp_path, kind), ImportSettings(metric))
