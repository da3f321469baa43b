"""Options beside a study file, or in its stead: they replace what it says, and mistakes are
theirs."""

from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.study_file import plan_of_options, read_study_file
from scrimp.formats.toml_reading import default_name, option_of, read_budget_text, replaced
from scrimp.methods.named_methods import Method

FILE = """\
name = "s"
command = "{python} train.py"
method = "asha"
[space]
x = {type = "float", low = 0, high = 1}
[budget]
name = "epoch"
minimum = 1
maximum = 9
[run]
n_trials = 5
workers = 2
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> None:
    """The script that the command names."""
    (tmp_path / "train.py").touch()


def test_options_replace_what_the_file_says(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(FILE)
    options = {
        "method": "MOBSTER-JOINT:brackets=2",
        "seed": 7,
        "run.n_trials": 60,
        "storage": "memory://",
        "space": {"x": {"type": "float", "low": 0, "high": 2}, "y": 3},
    }
    plan = read_study_file(path, options)
    assert plan.question["method"] == Method("mobster-joint", brackets=2)
    assert plan.question["seed"] == 7 and plan.storage == "memory://"
    assert plan.run == {"n_trials": 60, "workers": 2}
    assert (
        plan.question["space"].parameters["x"].to_json()["high"] == 2.0
        and "y" in plan.question["space"].parameters
    )
    assert read_study_file(path).run == {"n_trials": 5, "workers": 2}


def test_mistakes_of_options_carry_their_names_and_those_of_the_file_their_lines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "study.toml"
    path.write_text(FILE.replace("workers = 2", "workers = 0"))
    options = {"run.n_trials": 0, "metric": "", "space": {"z": {"type": "flot", "low": 0}}}
    with pytest.raises(StudyError) as caught:
        read_study_file(path, options)
    told = str(caught.value)
    assert "  --n-trials: is 0; it must be" in told and "  --metric: is ''" in told
    assert (
        "  --space: parameter 'z' has type 'flot'" in told and "line 12, run.workers: is 0" in told
    )


def test_a_study_without_a_file(tmp_path: Path) -> None:
    options = {
        "name": "train",
        "command": ["{python}", "train.py", "--lr", "{lr}"],
        "space": {"lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True}},
        "budget": read_budget_text("epoch(1,27)"),
        "run.n_trials": 3,
    }
    plan = plan_of_options(options, tmp_path)
    assert plan.name == "train" and plan.run == {"n_trials": 3} and plan.folder == tmp_path
    assert plan.question["budget"].maximum == 27
    with pytest.raises(
        StudyError, match=r"the command line has 1 mistake:\n  --command: .*no such parameter"
    ):
        plan_of_options({**options, "command": ["{python}", "{rl}"]}, tmp_path)
    with pytest.raises(StudyError, match="would never end"):
        plan_of_options(
            {key: value for key, value in options.items() if key != "run.n_trials"}, tmp_path
        )


def test_parts() -> None:
    assert replaced({"space": {"x": 1, "y": 2}}, {"space": {"y": 3}}) == {"space": {"x": 1, "y": 3}}
    assert replaced({"run": 3}, {"run.workers": 2}) == {
        "run": 3
    }  # the file is wrong, and said to be
    assert option_of(("run", "total_budget"), {"run.total_budget": 3}) == "--total-budget"
    assert (
        option_of(("space", "x"), {"space": {"y": 1}}) is None and option_of(("seed",), {}) is None
    )
    assert read_budget_text(" epoch ( 0.5 , 27 ) ") == {
        "name": "epoch",
        "minimum": 0.5,
        "maximum": 27,
    }
    for wrong in ("epoch", "epoch(1)", "epoch(a,b)", "27"):
        with pytest.raises(StudyError, match="first grant and a full training"):
            read_budget_text(wrong)
    assert default_name(["julia", "fit.jl"]) == "fit" and default_name(["/bin/true"]) == "true"
