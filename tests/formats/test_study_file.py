"""Study files: a right one becomes a plan; in wrong ones every mistake is named with its line, key
and remedy."""

import re
from pathlib import Path

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.formats.study_file import StudyPlan, read_study_file
from scrimp.formats.toml_reading import Mistake

RIGHT = """\
name = "digits"
command = "sh train.sh --lr {lr} {params}"
metric = "val_error"
direction = "minimize"
seed = 3
storage = "sqlite:///s.db"
cost = "seconds"
learn_from = ["old"]

[space]
lr = {type = "float", low = 1e-5, high = 1e-1, log = true}
layers = {type = "int", low = 1, high = 8}
width = {type = "ordinal", values = [64, 128, 256]}
optimizer = {type = "categorical", choices = ["adamw", "sgd"]}
momentum = {type = "float", low = 0, high = 0.99, when = {optimizer = "sgd"}}
batch = 32

[budget]
name = "epoch"
minimum = 1
maximum = 27

[method]
name = "asha"
brackets = 2

[constraints]
memory_gb = {at_most = 16}
accuracy = {at_least = 0.5}

[features]
rows = 1797

[run]
n_trials = 50
workers = 2
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> None:
    """The script that the command names."""
    (tmp_path / "train.sh").touch()


def read(tmp_path: Path, text: str) -> StudyPlan:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return read_study_file(path)


def test_a_right_file_is_a_study(tmp_path: Path) -> None:
    plan = read(tmp_path, RIGHT)
    assert (plan.name, plan.storage, plan.folder) == ("digits", "sqlite:///s.db", tmp_path)
    assert isinstance(plan.objective, scrimp.Command) and plan.objective.folder == tmp_path
    assert plan.question["space"] == scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True),
        layers=scrimp.Int(1, 8),
        width=scrimp.Ordinal([64, 128, 256]),
        optimizer=scrimp.Categorical(["adamw", "sgd"]),
        momentum=scrimp.Float(0, 0.99, when={"optimizer": "sgd"}),
        batch=32,
    )
    assert plan.question["budget"] == scrimp.Budget("epoch", 1, 27)
    assert (
        plan.question["method"] == scrimp.Method("asha", brackets=2) and plan.question["seed"] == 3
    )
    assert plan.question["constraints"] == {
        "memory_gb": scrimp.AtMost(16),
        "accuracy": scrimp.AtLeast(0.5),
    }
    assert plan.question["features"] == {"rows": 1797} and plan.question["cost"] == "seconds"
    assert plan.question["learn_from"] == ["old"]
    assert plan.run == {"n_trials": 50, "workers": 2}


def test_a_short_file_is_enough(tmp_path: Path) -> None:
    (tmp_path / "short_objective_module.py").write_text(
        "def objective(trial):\n    return trial.params['k']\n"
    )
    text = (
        'name = "k"\nobjective = "short_objective_module:objective"\n[space]\nk = {type = "int",'
        " low = 1, high = 3}\n"
    )
    plan = read(tmp_path, text)
    assert (
        plan.objective == "short_objective_module:objective"
        and plan.run == {}
        and plan.storage is None
    )


# each case: what to replace in the right file, by what, and what the message has to say
WRONG: dict[str, tuple[str, str, str]] = {
    "no name": ('name = "digits"', "", "name: is missing; give the study one"),
    "empty name": ('name = "digits"', 'name = ""', "line 1, name: is ''"),
    "name is a number": (
        'name = "digits"',
        "name = 3",
        "line 1, name: is 3; it must be a text in quotes",
    ),
    "unknown key": (
        'direction = "minimize"',
        'directions = "minimize"',
        "line 4, directions: .*did you mean 'direction'",
    ),
    "nothing like it": (
        "seed = 3",
        "zzz = 3",
        "line 5, zzz: there is no such key; valid are name, space, objective",
    ),
    "wrong direction": (
        '"minimize"',
        '"minimise"',
        "line 4, direction: is 'minimise'.*did you mean 'minimize'",
    ),
    "direction is a number": ('"minimize"', "1", "line 4, direction: is 1"),
    "negative seed": (
        "seed = 3",
        "seed = -1",
        "line 5, seed: is -1; it must be a whole number of at least 0",
    ),
    "seed is text": ("seed = 3", 'seed = "3"', "line 5, seed: is '3'; it must be a whole number"),
    "no url": ('"sqlite:///s.db"', '"s.db"', "line 6, storage: .*not a URL; write sqlite:///s.db"),
    "wrong scheme": (
        '"sqlite:///s.db"',
        '"sqlit:///s.db"',
        "line 6, storage: .*did you mean sqlite",
    ),
    "unknown placeholder": ("{lr}", "{lrr}", r"line 2, command: .*\{lrr\}.*did you mean \{lr\}"),
    "program not there": (
        "sh train.sh",
        "no-such-program",
        "line 2, command: the program 'no-such-program'",
    ),
    "unclosed quote": (
        '"sh train.sh --lr {lr} {params}"',
        '"sh \'train"',
        "line 2, command: .*No closing quotation",
    ),
    "both objectives": ("metric =", 'objective = "a:b"\nmetric =', "objective: both are there"),
    "no objective": (
        'command = "sh train.sh --lr {lr} {params}"',
        "",
        "objective: neither is there",
    ),
    "command is a number": ('"sh train.sh --lr {lr} {params}"', "7", "line 2, command: is 7"),
    "no space": (
        RIGHT[RIGHT.index("[space]") : RIGHT.index("[budget]")],
        "",
        "space: is missing; say what may be tried",
    ),
    "empty space": (
        RIGHT[RIGHT.index("lr = {") : RIGHT.index("[budget]")],
        "",
        "line 10, space: the space has no parameters",
    ),
    "space is a list": (
        RIGHT[RIGHT.index("[space]") : RIGHT.index("[budget]")],
        "",
        "space: is missing",
    ),
    "wrong type": (
        '"float", low = 1e-5',
        '"flot", low = 1e-5',
        "line 11, space.lr: .*'flot'.*did you mean 'float'",
    ),
    "no type": ('type = "int", ', "", "line 12, space.layers: has no type"),
    "no high": (", high = 8", "", "line 12, space.layers: .*lacks 'high'"),
    "misspelt setting": (
        "log = true",
        "lg = true",
        "line 11, space.lr: .*'lg' .did you mean 'log'",
    ),
    "low above high": ("low = 1, high = 8", "low = 9, high = 8", "line 12, space.layers: .*9"),
    "low is text": ("low = 1, high = 8", 'low = "a", high = 8', "line 12, space.layers: .*'a'"),
    "log of zero": ("low = 1e-5", "low = 0", "line 11, space.lr: .*log"),
    "a bare list": (
        '{type = "categorical", choices = ["adamw", "sgd"]}',
        '["adamw", "sgd"]',
        "line 14, space.optimizer: is a list; write .type = .categorical., choices = ",
    ),
    "no choices": (
        'choices = ["adamw", "sgd"]',
        "choices = []",
        "line 14, space.optimizer: .*empty",
    ),
    "a choice twice": ('["adamw", "sgd"]', '["sgd", "sgd"]', "line 14, space.optimizer: .*twice"),
    "unknown parent": (
        "when = {optimizer",
        "when = {optimiser",
        "line 15, space.momentum: .*did you mean 'optimizer'",
    ),
    "impossible parent value": (
        'when = {optimizer = "sgd"}',
        'when = {optimizer = "rms"}',
        "line 15, space.momentum",
    ),
    "budget turned round": (
        "maximum = 27",
        "maximum = 0.5",
        "line 18, budget: .*minimum 1 is above its maximum 0.5",
    ),
    "budget of nothing": (
        "minimum = 1",
        "minimum = 0",
        "line 20, budget.minimum: is 0; it must be a number above 0",
    ),
    "budget without end": (
        "maximum = 27\n",
        "",
        "line 18, budget.maximum: is missing; it is a full training",
    ),
    "budget without unit": (
        'name = "epoch"\n',
        "",
        "line 18, budget.name: is missing; name its unit",
    ),
    "misspelt budget": (
        "maximum = 27",
        "maximun = 27",
        "line 21, budget.maximun: .*did you mean 'maximum'",
    ),
    "budget is a number": (
        RIGHT[RIGHT.index("[budget]") : RIGHT.index("[method]")],
        "",
        "line 18, method: method 'asha' spends training budgets, and this study has none",
    ),
    "unknown method": (
        'name = "asha"',
        'name = "ahsa"',
        "line 23, method: there is no method 'ahsa'; did you mean 'asha'",
    ),
    "unknown setting": (
        "brackets = 2",
        "bracket = 2",
        "method: method 'asha' has no setting 'bracket'.*did you mean 'brackets'",
    ),
    "impossible setting": ("brackets = 2", "brackets = 0", "line 23, method: brackets is 0"),
    "setting of another type": (
        "brackets = 2",
        'brackets = "two"',
        "line 23, method: setting 'brackets'",
    ),
    "constraint is a number": (
        "{at_most = 16}",
        "16",
        "line 28, constraints.memory_gb: is 16; write .at_most = 16",
    ),
    "misspelt constraint": (
        "{at_most = 16}",
        "{atmost = 16}",
        "line 28, constraints.memory_gb: .*did you mean 'at_most'",
    ),
    "equality without a tolerance": (
        "{at_most = 16}",
        "{equals = 16}",
        "line 28, constraints.memory_gb: .*tolerance = 0.01",
    ),
    "equality without room": (
        "{at_most = 16}",
        "{equals = 16, tolerance = 0}",
        "a tolerance above 0",
    ),
    "constraint is text": ("{at_most = 16}", '{at_most = "16"}', "line 28, constraints.memory_gb"),
    "constraint is infinite": (
        "{at_most = 16}",
        "{at_most = inf}",
        "line 28, constraints.memory_gb",
    ),
    "feature is text": ("rows = 1797", 'rows = "many"', "line 31, features: .*must be a number"),
    "terminal code in the name": (
        'name = "digits"',
        'name = "a\\u001b[31m"',
        "line 1, name: study name .* printable characters",
    ),
    "learn from a number": ('["old"]', "7", "line 8, learn_from: is 7"),
    "no trials": (
        "n_trials = 50",
        "n_trials = 0",
        "line 35, run.n_trials: is 0; it must be a whole number of at least 1",
    ),
    "half a trial": ("n_trials = 50", "n_trials = 2.5", "line 35, run.n_trials: is 2.5"),
    "without end": (
        "n_trials = 50\n",
        "",
        "line 34, run: the run would never end; give n_trials, total_budget or timeout",
    ),
    "misspelt run": ("workers = 2", "worker = 2", "line 36, run.worker: .*did you mean 'workers'"),
    "no workers": ("workers = 2", "workers = 0", "line 36, run.workers: is 0"),
    "what to keep": (
        "workers = 2",
        'keep = "bst"',
        "line 36, run.keep: is 'bst'.*did you mean 'best'",
    ),
    "negative timeout": (
        "workers = 2",
        "timeout = -1",
        "line 36, run.timeout: is -1; it must be a number above 0",
    ),
    "run is a number": (RIGHT[RIGHT.index("[run]") :], "", "run: the run would never end"),
    "not TOML": ("seed = 3", "seed 3", "is not valid TOML: .*line 5"),
    "nested too deeply": ("seed = 3", f"seed = {'[' * 9999}", "is not valid TOML: .*recursion"),
    "a key twice": ("seed = 3", "seed = 3\nseed = 4", "is not valid TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files(tmp_path: Path, case: str) -> None:
    old, new, message = WRONG[case]
    assert RIGHT.count(old) == 1, f"the case replaces {old!r}, which is not there once"
    with pytest.raises(StudyError) as caught:
        read(tmp_path, RIGHT.replace(old, new))
    text = str(caught.value)
    assert re.search(message, text), text
    assert "study.toml" in text and ("has 1 mistake:" in text or "is not valid TOML" in text), text


def test_there_are_at_least_thirty_cases() -> None:
    assert len(WRONG) >= 30


def test_all_mistakes_are_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    wrong = RIGHT
    for case in (
        "wrong direction",
        "low above high",
        "wrong type",
        "budget turned round",
        "no workers",
        "unknown method",
    ):
        wrong = wrong.replace(*WRONG[case][:2])
    with pytest.raises(StudyError) as caught:
        read(tmp_path, wrong)
    first, *listed = str(caught.value).splitlines()
    assert "has 6 mistakes" in first or "has 5 mistakes" in first
    lines = [int(re.search(r"line (\d+)", line)[1]) for line in listed]  # type: ignore[index]
    assert lines == sorted(lines) and {4, 11, 12, 18, 36} <= set(lines)


def test_functions_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "broken_objective_module.py").write_text("import math\nmath.nothing\n")
    (tmp_path / "fine_objective_module.py").write_text("def objective(trial):\n    return 1.0\n")
    old = 'command = "sh train.sh --lr {lr} {params}"'
    for path, message in (
        ("no_such_module_here:objective", "cannot be imported"),
        ("fine_objective_module:objectiv", "did you mean 'objective'"),
        ("fine_objective_module", "write it as module:function"),
        ("broken_objective_module:objective", "raises AttributeError"),
    ):
        with pytest.raises(StudyError, match=f"line 2, objective: (.|\n)*{message}"):
            read(tmp_path, RIGHT.replace(old, f'objective = "{path}"'))
    limit = RIGHT.replace(old, 'objective = "fine_objective_module:objective"').replace(
        "workers = 2", "time_limit = 9"
    )
    with pytest.raises(StudyError, match=r"line 36, run.time_limit: needs worker processes"):
        read(tmp_path, limit)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"cannot read .*nowhere\.toml"):
        read_study_file(tmp_path / "nowhere.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StudyError, match="not text in UTF-16"):
        read_study_file(tmp_path / "binary.toml")
    with pytest.raises(StudyError, match="give a file"):
        read_study_file(tmp_path)


def test_a_mistake_says_where(tmp_path: Path) -> None:
    assert str(Mistake("run.workers", "is 0", 4)) == "line 4, run.workers: is 0"
    assert str(Mistake("name", "is missing")) == "name: is missing"


def test_a_range_that_steps_do_not_meet_is_a_mistake_with_the_value_to_write(
    tmp_path: Path,
) -> None:
    text = RIGHT.replace("batch = 32", 'drop = {type = "float", low = 0, high = 1, step = 0.3}')
    with pytest.raises(StudyError) as found:
        read(tmp_path, text)
    assert re.search(
        r"line \d+, space.drop: high is 1.0, which is not a whole number of steps .* becomes 0.9",
        str(found.value),
    )
