"""Methods by name: text, tables and objects mean the same; mistakes are named."""

import sys
import types
from dataclasses import dataclass
from typing import Any

import pytest

import scrimp
from scrimp.errors import MethodError
from scrimp.history.problem import Budget, Problem
from scrimp.suggesters.random import RandomSuggester
from scrimp.tuning import catalog
from scrimp.tuning.catalog import (
    Method,
    build_policy,
    choose,
    learns,
    method_names,
    parse_method,
    register_method,
)
from scrimp.tuning.own_methods import MethodEntry

PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)))


@pytest.mark.parametrize(
    "given",
    [
        "gp:kernel=rbf-ard,initial=4",
        Method("gp", kernel="rbf-ard", initial=4),
        {"name": "gp", "kernel": "rbf-ard", "initial": 4},
    ],
)
def test_three_ways_to_say_the_same(given: Any) -> None:
    assert parse_method(given) == Method("gp", kernel="rbf-ard", initial=4)


def test_settings_in_text_have_types() -> None:
    method = parse_method("gp:a=1,b=0.5,c=true,d=none,e=word")
    assert method.settings == {"a": 1, "b": 0.5, "c": True, "d": None, "e": "word"}


def test_json_round_trip() -> None:
    method = Method("gp", kernel="rbf-ard", acquisition_settings={"kappa": 2.0})
    assert Method.from_json(method.to_json()) == method


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("gpp", "did you mean 'gp'"),
        ("", "there is no method ''"),
        (7, "7"),
        ({"kernel": "rbf-ard"}, "name"),
        ("gp:kernel", "'kernel'"),
        ("gp:=3", "'=3'"),
        ("random:kernel=rbf-ard", "no setting 'kernel'"),
        ("gp:initail=3", "did you mean 'initial'"),
        ("gp:initial=soon", "'initial'"),
        ("tpe:grace_period=3", "minimum; the budget of the study says it"),
        ("tpe:top_n_percent=15", "share=0.15"),
        (
            "asha:reduction_factor=4,reduction=3",
            "'reduction_factor' and 'reduction' .* are the same",
        ),
        ("random:reduction_factor=4", "no setting 'reduction'"),
    ],
)
def test_mistakes_are_named(given: Any, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        build_policy(PROBLEM, parse_method(given))


def test_auto_chooses_by_the_problem_and_says_why() -> None:
    method, reason = choose(PROBLEM, Method("auto"))
    assert method.name == "gp" and "no training budget" in reason
    method, reason = choose(Problem(PROBLEM.space, budget=Budget("epoch", 1, 9)), Method("auto"))
    assert method.name != "gp" and "training budget" in reason
    assert choose(PROBLEM, Method("tpe"))[1] == "chosen by the user"


def test_past_studies_change_what_auto_means() -> None:
    method, reason = choose(PROBLEM, Method("auto"), True)
    assert method.name == "task-prior" and "past studies" in reason and learns(method)
    # recorded, so that a study which began before there were these settings decides as it did
    assert method.settings == {"doubt": 0.1, "own_turns": True, "start": 5}
    chosen, _ = choose(PROBLEM, Method("auto", start=2, early=0.0), True)
    assert chosen.settings == {"doubt": 0.1, "early": 0.0, "own_turns": True, "start": 2}
    assert learns(Method("rgpe")) and not learns(Method("gp")) and not learns(Method("dehb"))
    with pytest.raises(MethodError, match="has no setting 'past'"):
        build_policy(PROBLEM, Method("rgpe", past=None))


def test_every_name_of_the_catalog_can_be_built() -> None:
    with_budget = Problem(PROBLEM.space, budget=Budget("epoch", 1, 9))
    for name in method_names():
        build_policy(with_budget, Method(name))


@dataclass(frozen=True)
class Lazy(RandomSuggester):
    """A suggester from outside, with a setting of its own."""

    patience: int = 1


def test_a_method_of_ones_own_is_selectable(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("outside")
    module.Lazy = Lazy  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "outside", module)
    monkeypatch.setattr(catalog, "_METHODS", catalog._METHODS.copy())
    register_method("lazy", MethodEntry("outside:Lazy"))
    study = scrimp.create_study(
        "s", PROBLEM.space, method="lazy:patience=3", storage="memory://", seed=0
    )
    assert study.suggester == Lazy(patience=3)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    assert study.method == "lazy" and len(study.trials) == 3
