"""Names of papers and other systems are understood, and unknown settings answered with ours."""

import re

import pytest

import scrimp
from scrimp.errors import MethodError
from scrimp.methods.named_methods import Method, build_policy, method_names, parse_method
from scrimp.methods.names_elsewhere import (
    SETTINGS_ELSEWHERE,
    canonical_name,
    hint_for,
    with_brackets,
)
from scrimp.study_log.problem import Budget, Problem

WITH_BUDGET = Problem(
    scrimp.Space(lr=scrimp.Float(1e-5, 1e-1, log=True)), budget=Budget("epoch", 1, 27)
)


def test_a_hint_names_ours_or_the_methods_that_have_it() -> None:
    assert hint_for("xi", {"margin"}).startswith("; it is called 'margin' here, in standard dev")
    assert "'margin', its name here, belongs to the acquisitions" in hint_for("xi", {"share"})
    assert "did you mean 'share'" in hint_for("shar", {"share"})


def test_brackets_are_read_only_where_the_rest_is_a_name() -> None:
    assert with_brackets("ASHA6-STOP", ["asha", "asha-stopping"]) == ("asha-stopping", 6)
    assert with_brackets("ASHA6-FAST", ["asha"]) is None


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("MOBSTER-JOINT", "mobster-joint"),
        ("HYPERTUNE4-INDEP", "hypertune4-indep"),
        ("HYPERTUNE1-INDEP", "hypertune-indep"),
        ("SYNCMOBSTER", "sync-mobster"),
        ("SyncBOHB", "sync-bohb"),
        ("SYNCHB", "sync-hyperband"),
        ("ASHA-STOP", "asha-stopping"),
        ("BOHB", "bohb"),
        ("bayesopt", "gp-ei"),
        ("BayesianOptimization", "gp-ei"),
        ("DyHPO", "dyhpo"),
        ("Hyper-Tune", "hypertune-indep"),
        ("TAF (RGPE)", "taf-rgpe"),
        ("RMoGP", "rmogp"),
        ("nonsense", "nonsense"),
        ("", ""),
    ],
)
def test_names_of_the_documents(written: str, name: str) -> None:
    assert canonical_name(written, method_names()) == name


def test_a_registered_name_keeps_its_own_spelling() -> None:
    assert canonical_name("MOBSTER", ["MOBSTER", "mobster-joint"]) == "MOBSTER"


def test_a_study_takes_both_and_records_ours() -> None:
    study = scrimp.create_study(
        "s",
        WITH_BUDGET.space,
        budget=WITH_BUDGET.budget,
        method="MOBSTER-JOINT:reduction_factor=2,max_size_data_for_model=50,opt_skip_period=3,searcher_data=all",
        storage="memory://",
    )
    settings = {"reduction": 2, "max_data": 50, "refit_every": 3, "data": "all"}
    assert (study.method, study.history.method["settings"]) == ("mobster-joint", settings)


def test_every_translation_is_a_setting_of_some_method() -> None:
    """Otherwise the error would name a setting that nobody has."""
    for reference, ours in SETTINGS_ELSEWHERE.items():
        takers = []
        for name in method_names():
            try:
                build_policy(WITH_BUDGET, Method(name, **{ours: None}))
            except ValueError as error:
                takers += [name] if "has no setting" not in str(error) else []
            else:
                takers.append(name)
        assert takers, f"{reference} is translated to {ours}, which is no setting of any method"


def test_a_field_of_the_methods_own_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS_ELSEWHERE, "share", "reduction")
    assert parse_method("tpe:share=0.3").settings == {"share": 0.3}


@pytest.mark.parametrize(
    ("written", "answer"),
    [
        ("mobster-joint:opt_nstarts=2", "fits begin at the hyperparameters of the last decision"),
        ("dyhpo:initial_scoring=acq_func", "ranked by the acquisition itself"),
        ("asha:max_resource=81", "scrimp.Budget"),
        ("gp:opt_skip_period=3", "the gp methods have 'refit_share'"),
        ("MOBSTER-JOIN", "did you mean 'mobster-joint'"),
        ("qqq", "there is no method 'qqq'. Known: "),
        ("asha:qqq=1", "has no setting 'qqq'. Its settings: "),
    ],
)
def test_answers_say_what_to_write_here(written: str, answer: str) -> None:
    with pytest.raises(MethodError, match=re.escape(answer)):
        build_policy(WITH_BUDGET, parse_method(written))


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("ASHA6-STOP", "asha-stopping", {"brackets": 6}),
        ("ASHA6-PROM", "asha", {"brackets": 6}),
        ("mobster4-joint", "mobster-joint", {"brackets": 4}),
        ("HYPERTUNE4-JOINT:samples=9", "hypertune-joint", {"brackets": 4, "samples": 9}),
        ("ASHA6-STOP:brackets=2", "asha-stopping", {"brackets": 2}),
        ("HYPERTUNE4-INDEP", "hypertune4-indep", {}),
    ],
)
def test_a_number_in_a_name_is_that_of_brackets(text, name, settings):
    assert parse_method(text) == Method(name, **settings)


def test_other_numbers_are_no_brackets():
    with pytest.raises(MethodError, match="no method 'gp2'"):
        parse_method("gp2")
    with pytest.raises(MethodError, match="no method 'ASHA6-FAST'"):
        parse_method("ASHA6-FAST")
