"""Methods by name: text, tables and objects mean the same; names of other systems are understood;
mistakes are named."""

import sys
import types
from dataclasses import dataclass
from typing import Any

import pytest

import scrimp
from scrimp.errors import MethodError
from scrimp.methods import named_methods as catalog
from scrimp.methods.named_methods import (
    Method,
    build_policy,
    choose,
    chosen_settings,
    learns,
    method_names,
    parse_method,
    register_method,
)
from scrimp.methods.own_methods import MethodEntry
from scrimp.methods.policy import Scheduled
from scrimp.plugins.settings import flat_settings
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.untried_configs import RandomSuggester

PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)))
WITH_BUDGET = Problem(PROBLEM.space, budget=Budget("epoch", 1, 9))


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
        ("tpe:grace_period=3", "minimum; it is part of the study's budget"),
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
    assert method.name == "gp"
    assert reason == "auto, because the study has no training budget"
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
    for name in method_names():
        build_policy(WITH_BUDGET, Method(name))


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


# --- the preset of the paper ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "mobster-joint:published,brackets=4",
        "MOBSTER4-JOINT:published",
        Method("mobster-joint", published=True, brackets=4),
        {"name": "mobster-joint", "published": True, "brackets": 4},
    ],
)
def test_published_is_one_word_and_further_settings_may_follow(given: Any) -> None:
    method = parse_method(given)
    assert method == Method("mobster-joint", published=True, brackets=4)
    policy = build_policy(WITH_BUDGET, method)
    assert isinstance(policy, Scheduled)
    assert isinstance(policy.scheduler, AsynchronousHalving) and policy.scheduler.brackets == 4
    flat = flat_settings(policy.suggester)  # type: ignore[type-var]
    assert (flat["refit_steps"], flat["cap"], flat["design"]) == (50, False, "random")


def test_what_is_given_wins_over_the_paper() -> None:
    flat = flat_settings(
        build_policy(PROBLEM, parse_method("gp-ei:published,design=sobol")).chooser
    )  # type: ignore[type-var]
    assert (flat["design"], flat["incumbent"]) == ("sobol", "observed")
    assert build_policy(PROBLEM, parse_method("gp:published=false")) == build_policy(
        PROBLEM, Method("gp")
    )
    # the margin of the paper belongs to its acquisition
    other = build_policy(WITH_BUDGET, parse_method("mobster-joint:published,acquisition=ucb"))
    assert flat_settings(other.chooser)["acquisition_settings"] == {}  # type: ignore[type-var]


def test_chosen_settings_are_presets_the_paper_and_what_was_given() -> None:
    paper = chosen_settings(Method("gp", published=True, kernel="matern32-ard"))
    assert (paper["acquisition"], paper["kernel"]) == ("ei", "matern32-ard")
    assert chosen_settings(Method("gp")) == {"acquisition": "log-ei"}
    assert chosen_settings(Method("unknown", share=2)) == {"share": 2}


def test_a_study_records_the_preset_and_is_rebuilt_from_its_log() -> None:
    study = scrimp.create_study(
        "s", PROBLEM.space, method="tpe:published,candidates=5", storage="memory://", seed=0
    )
    assert study.history.method["settings"] == {"published": True, "candidates": 5}
    again = build_policy(study.history.problem, Method.from_json(study.history.method))
    assert again == build_policy(PROBLEM, parse_method("tpe:published,candidates=5"))
    assert flat_settings(again.chooser)["spread"] == "neighbours"  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("freeze-thaw:published", "the policy of the paper is not offered"),
        ("task-prior:published", "it is our own method; leave 'published' out"),
        ("random:published", "no preset 'published'"),
        (Method("tpe", published="yes"), "published is 'yes'; it must be true or false"),
        ("tpe:publish", "cannot read 'publish' .* name:published"),
        ("tpe:cutof=1", "Its settings: bandwidth, .*; 'published' restores its paper"),
    ],
)
def test_a_paper_that_cannot_be_restored_is_answered(given: Any, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        build_policy(WITH_BUDGET, parse_method(given))


def test_settings_of_papers_are_valid_and_not_listed() -> None:
    build_policy(PROBLEM, parse_method("tpe:widening=2.0"))
    build_policy(PROBLEM, parse_method("gp-ucb:schedule=growing"))
    for text, hidden in (("tpe:x=1", "widening"), ("gp-ucb:x=1", "schedule")):
        with pytest.raises(MethodError, match="Its settings:") as error:
            build_policy(PROBLEM, parse_method(text))
        assert hidden not in str(error.value)
    # a misspelt one is still recognised
    with pytest.raises(MethodError, match="did you mean 'widening'"):
        build_policy(PROBLEM, parse_method("tpe:widenin=2.0"))
