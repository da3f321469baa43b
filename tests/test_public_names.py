"""The front door is small and guarded: what ``scrimp`` exports is listed here, sorted, and nowhere
else."""

import ast
import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from plotly.graph_objects import Figure

import scrimp

PUBLIC = [
    "AtLeast",
    "AtMost",
    "Budget",
    "Categorical",
    "Command",
    "Constant",
    "Equals",
    "Float",
    "Int",
    "LittleLeft",
    "LiveTrial",
    "MaxSeconds",
    "MaxTrials",
    "Method",
    "NoImprovement",
    "Ordinal",
    "Pool",
    "RaySettings",
    "Recommendation",
    "Result",
    "Selection",
    "Space",
    "StopRule",
    "Storage",
    "Study",
    "TargetReached",
    "Trial",
    "create_selection",
    "create_study",
    "delete_study",
    "errors",
    "is_better",
    "load_selection",
    "load_study",
    "maximize",
    "minimize",
    "read_answers",
    "select_checkpoint",
    "simulate",
    "studies",
]


def test_exported_names_are_exactly_these() -> None:
    assert sorted(scrimp.__all__) == PUBLIC
    assert scrimp.__all__ == sorted(scrimp.__all__)


def test_every_exported_name_exists_and_says_what_it_is() -> None:
    for name in PUBLIC:
        assert getattr(scrimp, name).__doc__, f"scrimp.{name} has no docstring"


def test_a_former_name_says_the_present_one() -> None:
    with pytest.raises(AttributeError, match=r"RunContext is now called scrimp\.LiveTrial"):
        scrimp.RunContext


def test_nothing_else_is_in_sight() -> None:
    """Whatever else lies in the namespace is a folder of the package or starts with an
    underscore."""
    script = (
        "import scrimp, types; print(sorted(name for name, value in vars(scrimp).items() if not"
        " name.startswith('_') and not isinstance(value, types.ModuleType) and name not in"
        " scrimp.__all__))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert shown.strip() == "[]"


def test_every_name_has_a_home_and_a_type() -> None:
    """What is loaded on first use, what type checkers see, and what is exported are the same
    names."""
    tree = ast.parse(Path(scrimp.__file__).read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module
        for node in typed.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    homes = {name: module for module, names in scrimp._HOMES.items() for name in names.split()}
    assert seen == homes and sorted([*seen, "errors"]) == PUBLIC
    assert set(PUBLIC) <= set(dir(scrimp))


def test_importing_loads_nothing_until_a_name_is_used() -> None:
    script = (
        "import sys, scrimp; assert 'numpy' not in sys.modules; scrimp.Space; assert 'numpy' in"
        " sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_asking_loads_nothing_that_only_shows_or_runs() -> None:
    script = (
        "import sys, scrimp; study = scrimp.create_study('a', scrimp.Space(x=scrimp.Float(0, 1)),"
        " method='random', storage='memory://'); study.tell(study.ask(), 1.0);"
        " print(*(name for name in sys.modules if name.startswith('scrimp.')))"
    )
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    rooms = {name.split(".")[1] for name in run.stdout.split()}
    assert "study" in rooms
    assert not rooms & {"display", "fronts", "plots", "integrations", "bench", "explain", "cli"}
    assert not {"scrimp.study.run", "scrimp.study.signing"} & set(run.stdout.split())


def test_plots_are_loaded_when_they_are_used() -> None:
    script = (
        "import sys, scrimp; assert 'plotly' not in sys.modules; scrimp.plots; assert"
        " callable(scrimp.plots.surrogate)"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_plots_are_an_extra(tmp_path: Path) -> None:
    """Without Plotly studies run and are shown; plots and the dashboard name what to install."""
    script = """
import importlib.abc, sys
class NoPlotly(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "plotly":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, NoPlotly())
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "plotly" else real(name, package)
import scrimp
from scrimp.cli.main import app
study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="sqlite:///s.db")
study.optimize(lambda trial: trial.params["x"], n_trials=12)
print(study.explain())
for words in (["show", "s"], ["plot", "s", "history"], ["dashboard"]):
    try:
        app([*words, "--storage", "sqlite:///s.db"], standalone_mode=False)
    except scrimp.errors.ScrimpError as error:
        print(f"refused: {error}")
"""
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    refused = [line for line in run.stdout.splitlines() if line.startswith("refused: ")]
    assert refused == [
        "refused: plots need Plotly, which is not installed; pip install 'scrimp[plots]'",
        "refused: the dashboard needs the extra scrimp[dashboard], which is not installed; pip"
        " install 'scrimp[dashboard]'",
    ]
    assert "best: value" in run.stdout and "Trial " in run.stdout


def test_arguments_have_a_table() -> None:
    """The reference shows type, default and one line for each argument of everything that takes three
    or more, and of every kind of parameter."""
    missing = []
    for name, function in [*public_functions(), *((k, getattr(scrimp, k)) for k in KINDS)]:
        listed = [own for own in inspect.signature(function).parameters if own != "self"]
        if name.startswith("plots.") or name.endswith(".satisfied") or len(listed) < 3:
            continue
        section = (inspect.getdoc(function) or "").partition("Args:\n")[2]
        found = re.findall(r"^    (\w+): \S", section, re.MULTILINE)
        if found != listed:
            missing.append(f"{name}: {sorted({*listed} ^ {*found}) or 'in another order'}")
    assert missing == []


KINDS = ("Float", "Int", "Ordinal", "Categorical", "Space")


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function that users call, with its name: exported ones, methods of exported classes,
    pictures."""
    for name in PUBLIC:
        value = getattr(scrimp, name)
        if inspect.isfunction(value):
            yield name, value
        for member, method in vars(value).items() if inspect.isclass(value) else ():
            function = method.fget if isinstance(method, property) else method
            if inspect.isfunction(function) and not member.startswith("_"):
                yield f"{name}.{member}", function
    for name in scrimp.plots.__all__:
        yield f"plots.{name}", getattr(scrimp.plots, name)


def test_no_public_function_returns_anything_whatever() -> None:
    found = {
        name
        for name, function in public_functions()
        if inspect.signature(function).return_annotation is Any
    }
    # Its tuples have two or three elements; `Asked` says why.
    assert found <= {"Selection.ask"}
    assert all(
        inspect.signature(getattr(scrimp.plots, name)).return_annotation is Figure
        for name in scrimp.plots.__all__
    )


def test_asking_for_several_gives_a_list_to_type_checkers_too() -> None:
    for kind, one in (
        (scrimp.Study, scrimp.Trial),
        (scrimp.Selection, Any),
    ):
        alone, several = typing.get_overloads(kind.ask)
        assert typing.get_type_hints(alone)["return"] == one
        assert typing.get_type_hints(several) == {"count": int, "return": list[one]}  # type: ignore[valid-type]
