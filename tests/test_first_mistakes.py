"""Ten mistakes of a first user: each ends on one screen that names the mistake and the remedy."""

import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError, ScrimpError

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1e-1, log=True), layers=scrimp.Int(1, 4))
PACKAGE = f'File "{Path(scrimp.__file__).parent}'
SCREEN = 24 * 80

STUDY = """\
name = "s"
command = "{python} trian.py"
method = "random"
storage = "sqlite:///s.db"
space.x = {type = "float", low = 0, high = 1}
run.n_trials = 60
"""


def tuned(objective: Any, space: scrimp.Space = SPACE, **settings: Any) -> None:
    options = {"n_trials": settings.pop("n_trials", 50), "workers": settings.pop("workers", 1)}
    question = {
        "storage": "memory://",
        "method": "random",
        "metric": "val_error",
        "seed": 0,
        **settings,
    }
    scrimp.create_study("first", space, **question).optimize(objective, **options)


def wrong_return(trial: Any) -> Any:
    return trial.params["lr"], 0.9


def misspelt_parameter(trial: Any) -> float:
    return float(trial.params["layer"])


def exception(trial: Any) -> float:
    raise FileNotFoundError("data/train.csv")


def wrong_metric(trial: Any) -> dict[str, float]:
    return {"val_loss": 0.3}


def misspelt_metric(trial: Any) -> dict[str, float]:
    return {"val_eror": 0.3}


def misspelt_metric_by_step(trial: Any) -> None:
    for _ in trial.steps():
        trial.report(accuracy=0.3)


def attribute(trial: Any) -> float:
    return float(trial.params.lr)


def of_optuna(trial: Any) -> float:
    return float(trial.suggest_float("lr", 1e-4, 1e-1, log=True))


class Unpicklable:
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, trial: Any) -> float:
        return 0.5


def no_space_for(trial: Any) -> float:
    return 0.5


@pytest.mark.parametrize(
    ("mistake", "named", "remedy"),
    [
        (lambda: tuned(wrong_return), "of type tuple", "report several by name"),
        (lambda: tuned(misspelt_parameter), "no parameter 'layer'", "did you mean 'layers'"),
        (lambda: tuned(exception), "FileNotFoundError: data/train.csv", "retry_failed"),
        (
            lambda: tuned(wrong_metric),
            "'val_error' was not reported (reported: val_loss)",
            "report it",
        ),
        (lambda: tuned(misspelt_metric), "(reported: val_eror)", "report 'val_error', or if"),
        (
            lambda: tuned(misspelt_metric, metric="val_erorr"),
            "(reported: val_eror)",
            "if 'val_eror' is the right name, delete the study",
        ),
        (
            lambda: tuned(
                misspelt_metric_by_step, budget=scrimp.Budget("epoch", 1, 9), method="asha"
            ),
            "(reported: accuracy)",
            "report it with every step",
        ),
        (lambda: tuned(attribute), "AttributeError", "params['lr']"),
        (
            lambda: tuned(no_space_for, metric=["a", "b"]),
            "['a', 'b']",
            "For several, use metrics={",
        ),
        (lambda: tuned(no_space_for, scrimp.Space(lr=(0, 1))), "(0, 1)", "scrimp.Float(0, 1)"),  # type: ignore[arg-type]
        (
            lambda: tuned(no_space_for, scrimp.Space(by=["adam", "sgd"])),  # type: ignore[arg-type]
            "'by'",
            "scrimp.Categorical(['adam', 'sgd'])",
        ),
        (
            lambda: tuned(no_space_for, scrimp.Space(by=scrimp.Categorical("adam", "sgd"))),  # type: ignore
            "Categorical got 2 arguments",
            "scrimp.Categorical(['adam', 'sgd'])",
        ),
        (
            lambda: tuned(no_space_for, scrimp.Space(n=scrimp.Ordinal(1, 2, 4))),  # type: ignore
            "Ordinal got 3 arguments",
            "scrimp.Ordinal([1, 2, 4])",
        ),
        (lambda: tuned(of_optuna), "no suggest_float", "scrimp.Space("),
        (lambda: tuned(no_space_for, direction="minimise"), "'minimise'", "minimize"),
        (
            lambda: tuned(Unpicklable(), workers=2),
            "cannot be sent to worker processes",
            "workers=1",
        ),
        (lambda: tuned(no_space_for, scrimp.Space(lr=0.1, layers=3)), "constant", "Float"),
    ],
    ids=[
        "return",
        "parameter",
        "exception",
        "metric",
        "misspelt metric",
        "metric misspelt in the study",
        "metric by step",
        "attribute",
        "metrics as a list",
        "bare range",
        "bare choices",
        "loose choices",
        "loose values",
        "optuna",
        "direction",
        "unpicklable",
        "constants",
    ],
)
def test_a_mistake_in_python(mistake: Callable[[], None], named: str, remedy: str) -> None:
    with pytest.raises(ScrimpError) as caught:
        mistake()
    text = str(caught.value)
    assert named in text and remedy in text and len(text) < SCREEN
    shown = "".join(traceback.format_exception(caught.value)).split(__file__)[-1]
    assert shown.count(PACKAGE) <= 5 and "run_objective" not in shown


@pytest.mark.parametrize(
    ("mistake", "answer"),
    [
        (
            lambda: scrimp.create_study(study_name="s"),  # type: ignore[call-arg]
            "no argument 'study_name'; use 'name', the first argument",
        ),
        (lambda: scrimp.create_study(), 'needs name and space; for example scrimp.create_study("'),  # type: ignore[call-arg]
        (lambda: scrimp.create_study("s"), "needs space; for example"),  # type: ignore[call-arg]
        (lambda: scrimp.create_study("s", SPACE, sampler=None), "use 'method', such as"),  # type: ignore[call-arg]
        (lambda: scrimp.create_study("s", SPACE, pruner=None), "budget=scrimp.Budget('epoch'"),  # type: ignore[call-arg]
        (lambda: scrimp.minimize(len, SPACE, n_trials=2, n_jobs=2), "'n_jobs'; use 'workers'"),  # type: ignore[call-arg]
        (lambda: scrimp.minimize(len, SPACE), "needs n_trials; for example scrimp.minimize("),  # type: ignore[call-arg]
    ],
)
def test_the_words_of_another_library(mistake: Callable[[], None], answer: str) -> None:
    with pytest.raises(TypeError) as caught:
        mistake()
    assert answer in str(caught.value)


def test_a_study_without_steps_hears_nothing_of_steps() -> None:
    with pytest.raises(ObjectiveError) as caught:
        tuned(wrong_metric)
    assert "with every step" not in str(caught.value)


def test_the_exception_of_the_user_is_the_cause() -> None:
    with pytest.raises(ObjectiveError) as caught:
        tuned(exception)
    assert isinstance(caught.value.__cause__, FileNotFoundError)


def test_a_second_run_of_the_script(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("first", SPACE, storage=url)
    with pytest.raises(ScrimpError, match=r"'first' exists already.*load_if_exists=True"):
        scrimp.create_study("first", SPACE, storage=url)


@pytest.mark.parametrize("options", [["--check"], []])
def test_a_misspelt_script(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
) -> None:
    from scrimp.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.setattr(sys, "argv", ["scrimp", "run", "study.toml", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2 and not (tmp_path / "s.db").exists()
    told = capsys.readouterr().err
    assert (
        "'trian.py' of the command does not exist" in told
        and "correct its name" in told
        and len(told) < SCREEN
    )


def test_all_of_an_exception_fits_a_screen() -> None:
    with pytest.raises(ObjectiveError) as caught:
        tuned(exception)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    ours = [line for line in lines if PACKAGE in line]
    # optimize, which raises it for the user, and the check of its keywords
    assert len(lines) <= 24 and len(ours) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_a_misspelt_name_with_a_default(
    workers: int, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def objective(trial: Any) -> float:
        return float(trial.params.get("layer", 2.0)) + trial.params.get("momentum", 0.5)

    space = scrimp.Space(
        layers=scrimp.Int(1, 4),
        kind=scrimp.Categorical(["a", "b"]),
        momentum=scrimp.Float(0, 1, when={"kind": "a"}),
    )
    tuned(objective, space, workers=workers, n_trials=4)
    told = caplog.text + capfd.readouterr().err
    assert "the space has no 'layer'; did you mean 'layers'?" in told
    assert told.count("no 'layer'") <= workers and "momentum" not in told
