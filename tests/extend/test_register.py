"""One way to register every kind, with duplicates refused everywhere; two modules hold all that an
author imports."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp import extend, testing
from scrimp.acquisition import named_acquisitions as catalog
from scrimp.errors import AddressError, MethodError
from scrimp.extend import (
    KINDS,
    ExactGP,
    LogNormal,
    MeanStdAcquisition,
    RandomSuggester,
    RunToEnd,
    Scaled,
    register,
)
from scrimp.gp import stationary as kernels
from scrimp.gp.stationary import Matern32
from scrimp.methods import named_methods as methods
from scrimp.methods.policy import Scheduled
from scrimp.storage import open as storages
from scrimp.storage.memory import MemoryStorage
from scrimp.suggesters import curve_models, model_settings

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, names in (
        (catalog, "_FACTORIES"),
        (kernels, "_FACTORIES"),
        (model_settings, "_SURROGATES"),
        (curve_models, "_MODELS"),
        (model_settings, "_COSTS"),
        (methods, "_METHODS"),
        (storages, "SCHEMES"),
    ):
        monkeypatch.setattr(module, names, getattr(module, names).copy())


@dataclass(frozen=True)
class Lower(MeanStdAcquisition):
    kappa: float = 2.0

    def alpha(self, mean, std, incumbent):
        return self.kappa * std - mean

    def derivatives(self, mean, std, incumbent):
        return -1.0, self.kappa


@dataclass(frozen=True)
class Lazy(RandomSuggester):
    patience: int = 1


@dataclass(frozen=True)
class ToTheEnd(RunToEnd):
    hurry: bool = False


def other(*arguments: Any) -> Any:
    raise AssertionError("never called")


THINGS = {
    "acquisition": Lower,
    "kernel": lambda columns: Scaled(Matern32(columns)),
    "surrogate": lambda columns: ExactGP.over(columns, "rbf-ard"),
    "curve-model": lambda columns, shares: ExactGP.over((*columns, extend.Column())),
    "cost": lambda params: 1.0 + params["x"],
    "method": Lazy,
    "storage": lambda url, rest, shown: MemoryStorage(),
}


def test_every_kind_has_an_example_here() -> None:
    assert set(THINGS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_name_is_given_once_in_every_kind(kind: str) -> None:
    register(kind, "mine", THINGS[kind])
    register(kind, "mine", THINGS[kind])
    with pytest.raises(
        (MethodError, AddressError), match=r"'mine' is already registered by .*test_register"
    ):
        register(kind, "mine", ToTheEnd if kind == "method" else other)


def test_what_was_registered_is_used_by_name() -> None:
    for kind, thing in THINGS.items():
        register(kind, "mine", thing)
    for parts in ("kernel=mine", "surrogate=mine", "cost_function=mine", "cost_surrogate=mine"):
        method = f"gp:acquisition=mine,{parts},initial=2"
        cost = "seconds" if parts.startswith("cost_surrogate") else None
        study = scrimp.create_study("s", SPACE, method=method, cost=cost, storage="mine://", seed=0)
        study.optimize(lambda trial: (trial.params["x"] - 0.3) ** 2, n_trials=4)
        assert len(study.trials) == 4 and not study.history.degraded


@pytest.mark.parametrize(
    ("thing", "parts"),
    [
        (Lazy, (RunToEnd(), Lazy(patience=3))),
        ((ToTheEnd, Lazy), (ToTheEnd(), Lazy(patience=3))),
    ],
)
def test_methods_are_made_of_classes_with_presets(thing: Any, parts: tuple[Any, Any]) -> None:
    register("method", "mine", thing, patience=3)
    policy = methods.build_policy(
        scrimp.study_log.problem.Problem(SPACE), methods.parse_method("mine")
    )
    assert isinstance(policy, Scheduled) and (policy.scheduler, policy.suggester) == parts
    with pytest.raises(MethodError, match="no setting 'hast'"):
        methods.build_policy(
            scrimp.study_log.problem.Problem(SPACE), methods.parse_method("mine:hast=1")
        )


def test_a_scheduler_alone_draws_at_random_and_may_need_budgets() -> None:
    register("method", "mine", ToTheEnd, needs_budget=True)
    with pytest.raises(MethodError, match="spends training budgets"):
        scrimp.create_study("s", SPACE, method="mine", storage="memory://")
    study = scrimp.create_study(
        "s", SPACE, method="mine", budget=scrimp.Budget("epoch", 1, 3), storage="memory://"
    )
    assert isinstance(study.suggester, RandomSuggester)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("colour", "mine", Lower), "no kind 'colour' of extension; register one of acquisition"),
        (("method", "mine", Lower), "policies, suggesters or schedulers, or a pair"),
        (("method", "mine", (Lazy, ToTheEnd)), "a pair"),
        (("kernel", "mine", LogNormal(0.0, 1.0)), "the class, or a function"),
    ],
)
def test_mistakes_are_named(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(MethodError, match=words):
        register(*arguments)
    with pytest.raises(MethodError, match="only methods have presets"):
        register("acquisition", "mine", Lower, kappa=3.0)


def test_all_that_an_author_imports_is_there() -> None:
    assert all(getattr(extend, name) is not None for name in extend.__all__)
    assert extend.__all__ == sorted(
        extend.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )
    assert all(callable(getattr(testing, name)) for name in testing.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        testing.Nothing


def test_importing_scrimp_loads_neither() -> None:
    code = (
        "import sys, scrimp; print('scrimp.extend' in sys.modules, 'scrimp.testing' in sys.modules,"
        " 'scipy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert done.stdout.split() == ["False", "False", "False"]
