"""Folders that Syne Tune 0.13 left behind, one that ended and one of a tuner that was killed, as
recorded, and broken in ways that a kill breaks them."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.imports import read_results
from scrimp.formats.result_folders import Imported, ImportSettings
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.study_log.problem import Budget

RECORDED = Path(__file__).parent / "syne_tune"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of a recorded folder; the killed one, unless a test asks for the other."""
    name = getattr(request, "param", "killed")
    return Path(shutil.copytree(RECORDED / name, tmp_path / name))


def read(folder: Path, metric: str = "value") -> Imported:
    (study,) = read_results(folder, ImportSettings(metric))
    return study


@pytest.mark.parametrize("folder", ["small"], indirect=True)
def test_an_experiment_that_ended(folder: Path) -> None:
    study = read(folder)
    assert (study.problem.metric, study.problem.direction) == ("loss", "minimize")
    assert study.problem.budget == Budget("step", 1, 9.0)
    assert dict(study.problem.space.parameters) == {
        "lr": Float(0.001, 1.0, log=True),
        "kind": Categorical(["a", "b c", 'q"u,o']),
        "width": Int(4, 8),
        "nesterov": Categorical(["True", "False"]),  # texts, as they were declared
        "epochs": Constant(9),
    }
    ends = [(trial.status, len(trial.curve)) for trial in study.trials]
    assert ends == [
        ("completed", 9),
        ("completed", 9),
        ("failed", 0),  # it has no row, only its folder
        ("completed", 9),
        ("stopped", 1),
        ("stopped", 1),
        ("stopped", 1),
        ("stopped", 3),
    ]
    assert study.trials[2].config["width"] == 7
    assert study.notes == ("trials that had not reported yet are left out: 2",)
    assert read(folder, "acc").trials[7].curve == ((1.0, 0.0), (2.0, 0.5), (3.0, 1 - 1 / 3))


def test_a_tuner_that_was_killed(folder: Path) -> None:
    study = read(folder)
    assert (study.problem.metric, study.problem.direction) == ("accuracy", "maximize")
    space = study.problem.space
    assert space["width"] == Ordinal([8, 16, 64]) and space["units"] == Int(4, 400, log=True)
    assert space["batch"] == Int(8, 64, log=True) and space["drop"] == Float(0.0, 0.6)
    assert space["flag"] == Categorical([True, False]) and space["one"] == Constant(3)
    assert space["epochs"] == Constant(9)  # not the level that a trial was to pause at
    assert [len(trial.curve) for trial in study.trials] == [4, 3, 3]
    for trial in study.trials:
        assert space.validate(trial.config) == trial.config


@pytest.mark.parametrize("broken", ["missing", "empty", "cut"])
def test_without_its_table_the_trials_output_tells(folder: Path, broken: str) -> None:
    table = folder / "results.csv.zip"
    if broken == "missing":
        table.unlink()
    else:
        table.write_bytes(table.read_bytes()[:400] if broken == "cut" else b"")
    with (folder / "2" / "std.out").open("a") as output:
        output.write('[tune-metric]: {"epoch": 10, "accu')  # the last line, cut short
    study = read(folder)
    assert study.trials[0].config == read(RECORDED / "killed").trials[0].config
    assert [len(trial.curve) for trial in study.trials] == [9, 9, 9]  # more than the last table had
    words = "there is no table" if broken == "missing" else "is truncated"
    assert words in study.notes[0] and "trials' output" in study.notes[0]


def test_reports_without_a_step_are_counted(folder: Path) -> None:
    table = folder / "results.csv.zip"
    with zipfile.ZipFile(table) as archive:
        text = archive.read("results.csv").decode().replace("epoch,", "round,", 1)
    with zipfile.ZipFile(table, "w") as archive:
        archive.writestr("results.csv", text)
    assert [step for step, _ in read(folder).trials[0].curve] == [1.0, 2.0, 3.0, 4.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("loss,config_lr\n1,0.1\n", "has no column trial_id; its columns are loss, config_lr"),
        ("loss,trial_id,config_lr\n1,0,0.1\n", "no column 'accuracy'; .* one of loss, trial_id"),
        ("accuracy,trial_id,config_lr\n1,first,0.1\n", "trial_id is 'first'; it must be a whole"),
    ],
)
def test_tables_of_others_are_told(folder: Path, text: str, words: str) -> None:
    (folder / "results.csv.zip").unlink()
    (folder / "results.csv").write_text(text)
    with pytest.raises(StudyError, match=words):
        read(folder)


def test_a_space_that_is_not_understood_is_inferred(folder: Path) -> None:
    file = folder / "metadata.json"
    record = json.loads(file.read_text())
    strange = {"lr": {"domain_cls": "Function"}, "layers": {"domain_kwargs": {"lower": "low"}}}
    file.write_text(json.dumps({**record, "config_space": json.dumps(strange)}))
    space = read(folder).problem.space
    assert isinstance(space["lr"], Float) and space["layers"] == Int(2, 3)
    file.write_text(json.dumps({**record, "config_space": "{"}))
    assert read(folder).problem.space == space
