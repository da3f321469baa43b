"""Every kernel by name in every method that takes one, and kernels of one's own that look at some
of the columns."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.gp import stationary as catalog
from scrimp.gp.budget_priors import RESOURCE_KERNELS
from scrimp.gp.kernel import OnColumns, Scaled
from scrimp.gp.stationary import RBF, Matern52
from scrimp.methods.named_methods import build_policy, method_names
from scrimp.plugins.settings import flat_settings
from scrimp.study_log.decision_record import Modelled

SPACE = scrimp.Space(
    x=scrimp.Float(0, 1), y=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b"])
)
BUDGET = scrimp.Budget("epoch", 1, 9)
SINGLE = ["gp", "gp-ei"]
BY_RUNG = ["mobster-indep", "sync-mobster", "hypertune-indep", "hypertune4-indep"]
JOINT = ["mobster-joint", "hypertune-joint", "dyhpo"]
TRANSFER = [
    "pogpe",
    "portfolio",
    "rgpe",
    "rmogp",
    "taf-m",
    "taf-poe",
    "taf-r",
    "taf-rgpe",
    "tst-m",
    "tst-r",
]
"""Tried with their past in tests/methods/test_own_methods_published.py."""


@pytest.fixture
def own_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels of a user's own, for one test."""
    some = {
        "on-the-first": lambda columns: Scaled(OnColumns(RBF(columns[:1]), (0,))),
        "each-its-own": lambda columns: (
            Scaled(OnColumns(Matern52(columns[:1]), (0,)))
            + Scaled(OnColumns(Matern52(columns[1:]), tuple(range(1, len(columns)))))
            if len(columns) >= 3
            else Scaled(Matern52(columns))
        ),
    }
    names = catalog._FACTORIES.copy()
    for name, factory in some.items():
        names.add(name, factory)
    monkeypatch.setattr(catalog, "_FACTORIES", names)


def decide(method: scrimp.Method, budget: scrimp.Budget | None = BUDGET) -> scrimp.Study:
    """A small study up to two decisions by the model."""
    study = scrimp.create_study(
        "k", SPACE, method=method, budget=budget, storage="memory://", seed=0
    )
    modelled = 0
    for _ in range(20):
        trial = study.ask()
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            value = (trial.params["x"] - 0.6) ** 2 + 0.3 * trial.params["y"] + 1 / step
            study.report(trial, step=step, value=value)
        modelled += isinstance(study.history.recorded.reason, Modelled)
        if modelled >= 2:
            break
    assert modelled >= 2 and not study.history.degraded
    return study


def settings_of(method: str) -> set[str]:
    policy = build_policy(
        scrimp.study_log.problem.Problem(SPACE, budget=BUDGET), scrimp.Method(method)
    )
    part: Any = policy.chooser or policy
    return set(flat_settings(part))


def test_all_methods_with_a_kernel_are_tried_here() -> None:
    with_kernel = {
        name for name in method_names() if name != "auto" and "kernel" in settings_of(name)
    }
    assert with_kernel == {"gp", "gp-ei", "gp-pi", "gp-ucb", "parego", *BY_RUNG, *JOINT, *TRANSFER}
    joint = {name for name in with_kernel if "resource_kernel" in settings_of(name)}
    assert joint >= set(JOINT)


@pytest.mark.parametrize("kernel", sorted(catalog._FACTORIES))
@pytest.mark.parametrize("method", [*SINGLE[:1], "mobster-indep", "mobster-joint"])
def test_every_kernel_in_every_kind_of_model(method: str, kernel: str) -> None:
    decide(scrimp.Method(method, kernel=kernel, initial=3), None if method in SINGLE else BUDGET)


@pytest.mark.parametrize("kernel", RESOURCE_KERNELS)
@pytest.mark.parametrize("method", JOINT)
def test_every_resource_kernel_in_every_method_that_takes_one(method: str, kernel: str) -> None:
    decide(scrimp.Method(method, resource_kernel=kernel, initial=3))


@pytest.mark.usefixtures("own_kernels")
@pytest.mark.parametrize("kernel", ["on-the-first", "each-its-own"])
@pytest.mark.parametrize("method", [*SINGLE, *BY_RUNG, *JOINT])
def test_kernels_over_some_columns_work_everywhere(method: str, kernel: str) -> None:
    decide(scrimp.Method(method, kernel=kernel, initial=3), None if method in SINGLE else BUDGET)


def test_what_a_model_sees_is_explained_from_its_own_words() -> None:
    """The length-scales are recorded by the model; along x values change fastest."""
    study = decide(
        scrimp.Method("mobster-joint", resource_kernel="matern52", initial=6, random_fraction=0.0)
    )
    decided = study.history.recorded.fit["gp_multitask"].length_scales
    assert len(decided) == 3 and all(
        np.isfinite(scale) for scale in decided
    )  # the budget's own is not among them
