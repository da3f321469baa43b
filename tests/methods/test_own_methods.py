"""The list of methods: parts that exist and take their presets, papers that one word restores."""

import importlib

import pytest

import scrimp
from scrimp.methods.named_methods import build_policy, method_names, parse_method
from scrimp.methods.own_methods import OWN, PUBLISHED
from scrimp.plugins.settings import is_visible, settings_of
from scrimp.study_log.problem import Budget, Problem
from tests.test_departures import WITHOUT_A_PAPER

PROBLEM = Problem(
    scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Int(1, 9)), budget=Budget("epoch", 1, 27)
)

SYNE_TUNE = (
    "margin=0.01,margin_unit=metric,fresh_fits=true,refit_steps=50,cap=false,"
    "initial_scoring=thompson_indep,design=random"
)
DENSITIES = (
    "share=0.15,candidates=64,spread=observed,least_bandwidth=0.001,widening=3,weighting=equal,"
    "uniform=0,least_good=none,avoid_running=false,design=random,max_data=none"
)
HYPER_TUNE = (
    "wait_for_full=true,cutoff=delayed,combine=linear,least_weight=0.0,random_fraction=0.3,"
    "fresh_fits=true,refit_steps=50,cap=false"
)
EGO = "incumbent=observed,refit_share=0,kernel=rbf-ard"
IN_FULL = {
    "gp": f"gp-ei:{EGO},design=random",
    "parego": f"parego:acquisition=ei,transform=plain,patience=0,{EGO},design=random",
    "nsga2": "nsga2:population=100,spread=20",
    "gp-ei": f"gp-ei:{EGO}",
    "gp-pi": "gp-pi:incumbent=observed,refit_share=0",
    "gp-ucb": "gp-ucb:schedule=growing,refit_share=0",
    "tpe": (
        "tpe:multivariate=false,spread=neighbours,share=0.15,weighting=equal,avoid_running=false,"
        "initial=20,design=random,max_data=none"
    ),
    "asha": "asha:cutoff=top",
    "asha-stopping": "asha-stopping",
    "hyperband": "hyperband:cutoff=top,bracket_rule=in-turn",
    "sync-sh": "sync-sh:rounding=down",
    "sync-hyperband": "sync-hyperband:rounding=down",
    "bohb": f"bohb:{DENSITIES}",
    "sync-bohb": f"sync-bohb:rounding=down,{DENSITIES}",
    "dehb": "dehb:rounding=down,repeats=true,vacancies=random",
    "median": "median:compare=best,among=ended,least=1,comparisons=none",
    "mobster-joint": (
        f"mobster-joint:random_fraction=0.0,{SYNE_TUNE},resource_encoding=centred,"
        "resource_kernel=exp-decay-sum"
    ),
    "mobster-indep": f"mobster-indep:{SYNE_TUNE}",
    "sync-mobster": f"sync-mobster:rounding=down,{SYNE_TUNE}",
    "hypertune-indep": f"hypertune-indep:{HYPER_TUNE},brackets=none",
    "hypertune-joint": f"hypertune-joint:{HYPER_TUNE},brackets=none",
    "hypertune4-indep": f"hypertune4-indep:{HYPER_TUNE}",
    "dyhpo": (
        "dyhpo:model=deep_kernel,probability_sh=0.0,increment=1,incumbent=observed,initial=1,"
        "refit_every=1,refit_steps=50,cap=false,candidates=2000,max_data=none,allowance=none,"
        "design=random"
    ),
    "tst-r": "tst-r:normalise=min-max,incumbent=observed,initial=1,kernel=rbf-ard",
    "tst-m": (
        "tst-m:normalise=min-max,incumbent=observed,initial=1,kernel=rbf-ard,distance=euclidean,"
        "bandwidth=0.1"
    ),
    "taf-r": "taf-r:normalise=min-max,initial=1,kernel=rbf-ard",
    "taf-m": ("taf-m:normalise=min-max,initial=1,kernel=rbf-ard,distance=euclidean,bandwidth=0.1"),
    "taf-rgpe": "taf-rgpe:initial=1",
    "taf-poe": "taf-poe:initial=1",
    "rgpe": "rgpe:samples=1000,improvement=noisy,least_weight=0.0",
    "rmogp": "rmogp:samples=1000,least_weight=0.0",
    "pogpe": "pogpe:experts=all,initial=1,kernel=rbf-ard,least_weight=0.0",
    "portfolio": "portfolio:values=observed",
}
"""The published form of each method, setting by setting."""


def parts_of(name: str) -> list[type]:
    entry = OWN[name]
    found = []
    for path in [entry.policy] if entry.policy else [entry.suggester, entry.scheduler]:
        assert isinstance(path, str)  # so that a name costs no import
        module, _, part = path.partition(":")
        found.append(getattr(importlib.import_module(module), part))
    return found


@pytest.mark.parametrize("name", OWN)
def test_parts_exist_and_take_their_presets(name: str) -> None:
    assert bool(OWN[name].policy) != bool(OWN[name].suggester)
    taken = {setting for part in parts_of(name) for setting in settings_of(part)}
    published = PUBLISHED.get(name, "")
    assert set(OWN[name].presets) <= taken
    assert isinstance(published, str) or set(published) <= taken


@pytest.mark.parametrize("name", IN_FULL)
def test_one_word_restores_the_paper(name: str) -> None:
    restored = build_policy(PROBLEM, parse_method(f"{name}:published"))
    assert restored == build_policy(PROBLEM, parse_method(IN_FULL[name]))
    usual = build_policy(PROBLEM, parse_method(name))
    assert (restored == usual) == (name == "asha-stopping")


def test_every_method_with_a_paper_has_the_preset() -> None:
    without = {name for name in method_names() if not isinstance(PUBLISHED.get(name), dict)}
    unexplained = without - WITHOUT_A_PAPER - set(PUBLISHED)
    assert not unexplained, (
        f"{sorted(unexplained)}: give each its paper's settings in PUBLISHED, or a text there that"
        " says why there is no preset, or name it in WITHOUT_A_PAPER of tests/test_departures.py"
    )
    differ = set(IN_FULL) ^ (set(method_names()) - without)
    assert not differ, (
        f"{sorted(differ)}: IN_FULL of this file lists the settings of every preset in PUBLISHED"
    )


def test_settings_of_papers_are_those_that_papers_need() -> None:
    """A setting that lists leave out is part of a published form, or of a second one of the same
    method (the other version of a paper, or the code of its authors)."""
    second = {"full_rungs", "pending", "variance", "draws", "ties", "denoise"}
    hidden = {
        name
        for method in OWN
        for part in parts_of(method)
        for name, item in settings_of(part).items()
        if not is_visible(item)
    }
    restored = {name for found in PUBLISHED.values() if isinstance(found, dict) for name in found}
    assert hidden - second <= restored
