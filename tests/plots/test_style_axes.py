"""Axes of parameters."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.plots.style import check_parameters, labels, order, with_value
from scrimp.space.parameter import Categorical, Float, Int, Ordinal

SPACE = scrimp.Space(
    lr=Float(0.1, 1, log=True), n=Int(1, 3), w=Ordinal([8, 4]), k=Categorical(["<a>", 2]), fixed=7
)


def test_types_and_labels() -> None:
    assert [order(SPACE[name])["type"] for name in SPACE.searched] == [
        "log",
        "linear",
        "category",
        "category",
    ]
    assert labels(SPACE["k"], ["<a>", 2]) == ["&lt;a&gt;", "2"] and labels(SPACE["n"], [1, 3]) == [
        1,
        3,
    ]
    assert order(SPACE["w"]) == {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": ["8", "4"],
    }


def test_unknown_and_constant_parameters_are_refused() -> None:
    assert check_parameters(SPACE, None, 2) == ["lr", "n"] and check_parameters(SPACE, ["k"]) == [
        "k"
    ]
    for name in ("fixed", "other"):
        with pytest.raises(StudyError, match=repr(name)):
            check_parameters(SPACE, [name])


def test_trials_without_a_value_are_left_out(staged: scrimp.Study) -> None:
    assert {trial.id for trial in with_value(staged.history)} == {
        t.id for t in staged.trials if t.value is not None
    }


def test_few_integers_have_a_tick_each() -> None:
    assert order(scrimp.Int(1, 8))["dtick"] == 1
    assert "dtick" not in order(scrimp.Int(1, 800)) and "dtick" not in order(scrimp.Float(1, 8))


def test_axes_of_trials_and_counts_have_whole_ticks() -> None:
    study = scrimp.create_study(
        "few", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    assert scrimp.plots.history(study).layout.xaxis.dtick == 1
    assert scrimp.plots.compare(study).layout.xaxis.dtick == 1
    assert scrimp.plots.history(study, over="time").layout.xaxis.dtick is None
    study.optimize(lambda trial: trial.params["x"], n_trials=30)
    assert scrimp.plots.history(study).layout.xaxis.dtick is None
