"""The Hydra sweeper, in programs that Hydra runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

hydra = pytest.importorskip(
    "hydra", reason="Hydra is not installed: make test-integrations brings it"
)

from hydra.core.override_parser.overrides_parser import OverridesParser

import scrimp
from scrimp.errors import SpaceError, StudyError
from scrimp.integrations.hydra import Sweep, parameter_of_sweep, searched
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.study_log.events import BudgetGranted, Decided, TrialAdded

TRAIN = """
import hydra

@hydra.main(version_base=None, config_path=".", config_name="config")
def train(cfg):
    if cfg.get("broken"):
        raise ValueError("the disk is full")
    if cfg.get("silent"):
        return None
    error = (cfg.x - 0.3) ** 2 + (cfg.kind != "good")
    return {"error": error / cfg.epochs, "seen": 1.0} if cfg.get("several") else error / cfg.epochs

train()
"""

CONFIG = """
x: 0.0
kind: bad
epochs: 1
several: false
broken: false
silent: false
defaults: [_self_, {override hydra/sweeper: scrimp}]
hydra:
  sweeper: {n_trials: 6, seed: 1, study_name: sweep, storage: "sqlite:///SWEEP.db"}
  sweep: {dir: out}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("SWEEP", str(tmp_path / "sweep")))
    return tmp_path


def sweep(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "train.py", "--multirun", "x=interval(0,1)", "kind=good,bad", *words]
    environment = {**os.environ, "HYDRA_FULL_ERROR": "0"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def stored(folder: Path) -> scrimp.Study:
    return scrimp.load_study("sweep", storage=f"sqlite:///{folder / 'sweep.db'}")


def test_a_sweep_is_a_study_that_goes_on(folder: Path) -> None:
    done = sweep(folder, "hydra.sweeper.n_jobs=2")
    assert done.returncode == 0, done.stderr
    study = stored(folder)
    assert [trial.status for trial in study.trials] == ["completed"] * 6
    assert study.space == scrimp.Space(x=Float(0.0, 1.0), kind=Categorical(["good", "bad"]))
    written = (folder / "out" / "optimization_results.yaml").read_text()
    assert f"best_value: {study.best_value}" in written
    again = sweep(folder, "hydra.sweeper.n_trials=8")
    assert again.returncode == 0, again.stderr
    assert len(stored(folder).trials) == 8


def test_planted_trials_do_not_reach_the_program(folder: Path) -> None:
    assert sweep(folder, "hydra.sweeper.n_trials=2").returncode == 0
    study = stored(folder)
    config = {"x": 0.5, "kind": "good", "+planted": "value", "hydra.run.dir": "elsewhere"}
    study._ledger.append(
        [
            Decided(decision=study.history.decisions, seen=1),
            TrialAdded(trial=2, config=config),
            BudgetGranted(trial=2, budget=1.0),
        ]
    )
    done = sweep(folder, "hydra.sweeper.n_trials=4")
    assert done.returncode == 0, done.stderr
    planted = stored(folder).trials[2]
    assert planted.status == "failed" and planted.message.startswith("not run: its configuration")
    used = [file.read_text() for file in folder.glob("out/*/.hydra/overrides.yaml")]
    assert used and not any("planted" in text for text in used)


def test_metrics_by_name_and_a_budget(folder: Path) -> None:
    done = sweep(
        folder,
        "several=true",
        "hydra.sweeper.metric=error",
        "hydra.sweeper.budget='epochs(1,9)'",
        "hydra.sweeper.method=asha",
        "hydra.sweeper.n_trials=1",
    )
    assert done.returncode == 0, done.stderr
    study = stored(folder)
    assert study.history.spent >= 9 and len(study.trials) >= 3
    trial = study.trials[0]
    expected = ((trial.config["x"] - 0.3) ** 2 + (trial.config["kind"] != "good")) / trial.budget
    assert trial.value == pytest.approx(expected)
    assert trial.last is not None and trial.last.metrics["seen"] == 1.0


def test_jobs_that_fail_are_failed_trials_and_end_the_sweep(folder: Path) -> None:
    done = sweep(folder, "broken=true")
    assert done.returncode == 1 and "the disk is full" in done.stderr
    assert [trial.message for trial in stored(folder).trials] == [
        "ValueError: the disk is full"
    ] * 3


def test_a_task_that_returns_nothing_is_told(folder: Path) -> None:
    done = sweep(folder, "silent=true")
    assert done.returncode == 1
    assert "must return the number to minimize, or a mapping with 'value'" in done.stderr


def test_a_misspelt_setting_is_told(folder: Path) -> None:
    done = sweep(folder, "+hydra.sweeper.trials=3")
    assert done.returncode == 1 and "trials" in done.stderr
    with pytest.raises(StudyError, match="no setting 'n_trial'; did you mean 'n_trials'"):
        Sweep(n_trial=3)
    with pytest.raises(StudyError, match=r"hydra.sweeper.n_jobs is 0"):
        Sweep(n_jobs=0)


@pytest.mark.parametrize(
    ("text", "parameter"),
    [
        ("x=interval(0,1)", Float(0.0, 1.0)),
        ("x=tag(log,interval(1e-5,1e-1))", Float(1e-5, 1e-1, log=True)),
        ("x=int(interval(1,8))", Int(1, 8)),
        ("x=range(8,25,8)", Int(8, 24, step=8)),
        ("x=range(0,1,0.25)", Float(0.0, 0.75, step=0.25)),
        ("x=range(3,4)", Constant(3)),
        ("x=a,'b c',1,null", Categorical(["a", "b c", 1, None])),
        ("x=choice(a)", Constant("a")),
    ],
)
def test_sweeps_of_hydra_are_parameters(text: str, parameter: object) -> None:
    assert parameter_of_sweep(OverridesParser.create().parse_override(text)) == parameter


def test_both_ways_of_writing_and_what_only_fixes_a_value() -> None:
    texts = ["lr=float(1e-5,1e-1,log)", "lr=float(1e-4,1,log)", "data=digits", "n=int(1,8)"]
    parameters, fixed = searched([*texts, "k=int(interval(1,3))"])
    assert parameters == {"lr": Float(1e-4, 1.0, log=True), "n": Int(1, 8), "k": Int(1, 3)}
    assert fixed == ["data=digits"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x=1", "there is nothing to search"),
        ("x=choice([1],[2])", "choices are numbers, words"),
        ("x=range(3,3)", "range of .x. is empty"),
        ("x=glob(*)", "use interval, range or choice"),
    ],
)
def test_what_cannot_be_searched_is_told(text: str, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        searched([text])
