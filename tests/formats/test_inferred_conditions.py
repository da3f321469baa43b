"""Conditions of imported spaces: found where exactly one explains all trials, refused otherwise."""

from collections.abc import Sequence

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.formats.inferred_conditions import read_condition, with_conditions
from scrimp.formats.result_folders import Imported, ImportedTrial
from scrimp.json_values import Config
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Space
from scrimp.study_log.problem import Problem

OPT = Categorical(["adam", "sgd", "rmsprop"])
MOMENTUM = Float(0.0, 1.0)


def found(space: Space, configs: Sequence[Config], failed: Sequence[Config] = ()) -> Imported:
    trials = [ImportedTrial(config, ((1.0, 0.5),)) for config in configs]
    trials += [ImportedTrial(config, (), "failed") for config in failed]
    return Imported("old", Problem(space), tuple(trials))


def inferred(space: Space, configs: Sequence[Config], failed: Sequence[Config] = ()) -> Imported:
    return with_conditions(found(space, configs, failed), {})


SPACE = Space(lr=Float(0.0, 1.0), opt=OPT, momentum=MOMENTUM)
CONFIGS: list[Config] = [
    {"lr": 0.1, "opt": "sgd", "momentum": 0.5},
    {"lr": 0.2, "opt": "adam"},
    {"lr": 0.3, "opt": "rmsprop", "momentum": 0.1},
    {"lr": 0.4, "opt": "adam"},
]


def test_a_parameter_that_exists_for_some_choices() -> None:
    one = inferred(SPACE, CONFIGS)
    assert one.problem.space["momentum"].needs == {"opt": ("sgd", "rmsprop")}
    assert one.notes == ("momentum exists when opt is 'sgd' or 'rmsprop' (inferred)",)
    assert all(one.problem.space.contains(trial.config) for trial in one.trials)


def test_a_choice_that_no_trial_had_is_named() -> None:
    (note,) = inferred(SPACE, CONFIGS[:2]).notes
    assert note == "momentum exists when opt is 'sgd' (inferred; no trial had opt='rmsprop')"


def test_thresholds_of_ordered_parents_and_chains() -> None:
    space = Space(layers=Int(1, 6), **{f"units_{i}": Int(1, 500) for i in range(3)})
    drawn = np.random.default_rng(0)
    sizes: list[Config] = [
        {
            "layers": count,
            **{f"units_{i}": int(drawn.integers(1, 500)) for i in range(min(count, 3))},
        }
        for count in (1, 2, 3, 5, 1, 3, 2, 5)
    ]
    one = inferred(space, sizes)
    # 4 lies between values that have it, 6 beyond them
    assert one.problem.space["units_1"].needs == {"layers": (2, 3, 4, 5, 6)}
    assert one.problem.space["units_2"].needs == {"layers": (3, 4, 5, 6)}


def test_two_parents() -> None:
    space = Space(a=Categorical(["x", "y"]), b=Categorical([1, 2]), c=Float(0.0, 1.0))
    configs: list[Config] = [{"a": a, "b": b} for a in ("x", "y") for b in (1, 2)]
    configs = [{**each, "c": 0.5} if each == {"a": "x", "b": 2} else each for each in configs]
    assert inferred(space, configs).problem.space["c"].needs == {"a": ("x",), "b": (2,)}


def test_siblings_depend_on_their_parent_and_not_on_each_other() -> None:
    space = Space(opt=OPT, nesterov=Categorical([True, False]), momentum=MOMENTUM)
    configs: list[Config] = [
        {"opt": "adam"},
        {"opt": "sgd", "nesterov": True, "momentum": 0.1},
        {"opt": "sgd", "nesterov": False, "momentum": 0.2},
        {"opt": "rmsprop"},
    ]
    one = inferred(space, configs)
    assert one.problem.space["momentum"].needs == {"opt": ("sgd",)}
    assert one.problem.space["nesterov"].needs == {"opt": ("sgd",)}


def test_trials_that_failed_do_not_count_as_evidence_and_are_reported() -> None:
    one = inferred(SPACE, CONFIGS, failed=[{"lr": 0.5, "opt": "sgd"}])
    assert one.problem.space["momentum"].needs == {"opt": ("sgd", "rmsprop")}
    assert one.notes[1] == (
        "1 of 5 trials do not fit the space: they are kept, and models do not learn from them"
    )


def test_of_two_explanations_the_one_that_was_set_before_counts() -> None:
    space = Space(opt=OPT, momentum=MOMENTUM, late=Categorical([0, 1]))
    configs: list[Config] = [
        {"opt": "sgd", "momentum": 0.5, "late": 0},
        {"opt": "adam", "late": 1},
    ]
    assert inferred(space, configs).problem.space["momentum"].needs == {"opt": ("sgd",)}


def test_what_cannot_be_inferred_is_refused_with_the_remedy() -> None:
    unexplained = [*CONFIGS, {"lr": 0.5, "opt": "sgd"}]
    remedy = (
        r"study 'old': 3 of 5 trials with a result have no parameter 'momentum'.*"
        r"--when 'momentum: opt=sgd'.*--when 'momentum: always'"
    )
    with pytest.raises(StudyError, match=remedy):
        inferred(SPACE, unexplained)
    two = Space(a=Categorical(["x", "y"]), b=Categorical([1, 2]), c=Float(0.0, 1.0))
    alike: list[Config] = [{"a": "x", "b": 1, "c": 0.5}, {"a": "y", "b": 2}]
    with pytest.raises(StudyError, match="no condition explains all of them, or several do"):
        inferred(two, alike)


def test_conditions_that_the_user_gives() -> None:
    unexplained = [*CONFIGS, {"lr": 0.5, "opt": "sgd"}]
    name, when = read_condition("momentum: opt=sgd|rmsprop")
    one = with_conditions(found(SPACE, unexplained), {name: when})
    assert one.notes[0] == "momentum exists when opt is 'sgd' or 'rmsprop' (given)"
    assert "1 of 5 trials do not fit" in one.notes[1]
    always = with_conditions(found(SPACE, unexplained), dict([read_condition("momentum: always")]))
    assert always.problem.space == SPACE and "3 of 5 trials" in always.notes[0]


def test_without_possible_parents_there_is_no_condition() -> None:
    space = Space(lr=Float(0.0, 1.0), momentum=MOMENTUM)
    one = inferred(space, [{"lr": 0.1, "momentum": 0.5}, {"lr": 0.2}])
    assert one.problem.space == space
    assert [note[:33] for note in one.notes] == ["1 of 2 trials do not fit the spac"]


@pytest.mark.parametrize("text", ["momentum", "momentum:", ": opt=sgd", "momentum: opt"])
def test_conditions_that_cannot_be_read(text: str) -> None:
    with pytest.raises(StudyError, match="as a condition; write 'momentum: opt=sgd'"):
        read_condition(text)
