"""Settings that bring published methods back, each in a study: it decides otherwise with the
published value, and with its default written out exactly as without it."""

from functools import lru_cache

import numpy as np
import pytest

import scrimp

SPACE = scrimp.Space(x=scrimp.Float(0, 1), k=scrimp.Int(1, 4))
GRID = scrimp.Space(x=scrimp.Int(1, 4), k=scrimp.Int(1, 4))
BUDGET = scrimp.Budget("epoch", 1, 9)


def value(params, epoch):
    """Curves that cross: what is best after one epoch is not best after nine."""
    x = float(params["x"])
    return (x - 0.3) ** 2 + 0.1 * params["k"] + 0.5 / epoch ** (0.3 + x % 1.0)


def objective(trial):
    for epoch in trial.steps():
        trial.report(value=value(trial.params, epoch))


@pytest.fixture(scope="module")
def storage(tmp_path_factory):
    """A storage with two past studies."""
    url = f"sqlite:///{tmp_path_factory.mktemp('past')}/past.db"
    for number in range(2):
        study = scrimp.create_study(
            f"past{number}", SPACE, method="sobol", storage=url, seed=number
        )
        rng = np.random.default_rng(number)
        for trial in study.ask(count=60):
            study.tell(trial, value(trial.params, 9) + rng.normal(0, 0.3))
    return url


@lru_cache(maxsize=64)
def decided(text, trials, budget=True, space=SPACE):
    """What a study of this method decides: configurations and how far each was trained."""
    study = scrimp.create_study(
        "s", space, method=text, budget=BUDGET if budget else None, storage="memory://", seed=3
    )
    if budget:
        study.optimize(objective, n_trials=trials)
    else:
        for _ in range(trials):
            trial = study.ask()
            study.tell(trial, value(trial.params, 9))
    return [(trial.config, trial.budget, trial.status) for trial in study.trials]


@pytest.mark.parametrize(
    ("default", "published"),
    [
        ("gp-ucb:schedule=constant", "gp-ucb:schedule=growing"),
        ("gp-ei:design=sobol", "gp-ei:design=random"),
        ("tpe:multivariate=true", "tpe:multivariate=false"),
        ("tpe:spread=range", "tpe:spread=neighbours"),
        ("tpe:design=sobol", "tpe:design=random"),
    ],
)
def test_without_budgets(default, published):
    assert decided(default, 9, False) == decided(default.partition(":")[0], 9, False)
    assert decided(published, 9, False) != decided(default, 9, False)


@pytest.mark.parametrize(
    ("default", "published"),
    [
        ("asha:full_rungs=false", "asha:full_rungs=true"),
        ("hyperband:bracket_rule=random", "hyperband:bracket_rule=in-turn"),
        ("bohb:multivariate=true", "bohb:multivariate=false"),
        ("median:among=all,comparisons=100", "median:among=ended,least=1"),
        ("median:among=all,comparisons=100", "median:comparisons=2"),
        ("dehb:vacancies=parent,repeats=false", "dehb:vacancies=random"),
    ],
)
def test_of_schedulers_and_densities(default, published):
    assert decided(default, 30) == decided(default.partition(":")[0], 30)
    assert decided(published, 30) != decided(default, 30)


def test_children_may_repeat_what_was_tried():
    """Sixteen configurations: without repeats they come to an end, with them they do not."""
    known = [tuple(config.values()) for config, _, _ in decided("dehb", 24, True, GRID)]
    assert len(known) == len(set(known)) == 16
    repeated = [tuple(one.values()) for one, _, _ in decided("dehb:repeats=true", 24, True, GRID)]
    assert len(repeated) == 24 and len(set(repeated)) < 24


@pytest.mark.parametrize(
    ("default", "published", "trials"),
    [
        (
            "mobster-joint:initial_scoring=acq_func",
            "mobster-joint:initial_scoring=thompson_indep",
            14,
        ),
        ("mobster-joint:fresh_fits=false", "mobster-joint:fresh_fits=true", 10),
        ("mobster-joint:resource_encoding=share", "mobster-joint:resource_encoding=centred", 9),
        (
            "mobster-joint:resource_kernel=matern52-res-warp",
            "mobster-joint:resource_kernel=exp-decay-sum",
            9,
        ),
        ("mobster-joint:design=sobol", "mobster-joint:design=random", 3),
        ("mobster-joint:model=gp_multitask", "mobster-joint:model=deep_kernel", 8),
        (
            "hypertune-indep:weighting=draws,least_weight=0.01",
            "hypertune-indep:weighting=cubed",
            22,
        ),
        ("hypertune-indep:full_rungs=false,cutoff=quantile", "hypertune-indep:full_rungs=true", 9),
        ("hypertune-indep:model=gp_independent", "hypertune-indep:model=forest", 8),
        ("hypertune-indep:design=sobol,fresh_fits=false", "hypertune-indep:design=random", 3),
        ("dyhpo:model=gp_multitask,allowance=halving", "dyhpo:model=deep_kernel", 8),
        ("dyhpo:model=gp_multitask,allowance=halving", "dyhpo:allowance=none", 8),
        ("dyhpo:design=sobol,fresh_fits=false", "dyhpo:design=random", 3),
    ],
)
def test_of_models_of_budgets(default, published, trials):
    assert decided(default, trials) == decided(default.partition(":")[0], trials)
    assert decided(published, trials) != decided(default, trials)


@pytest.mark.parametrize(
    ("default", "published"),
    [
        ("rgpe:improvement=ei,refit_share=0.05", "rgpe:improvement=noisy"),
        ("tst-r:kernel=matern52-ard", "tst-r:kernel=rbf-ard"),
        ("portfolio:values=predicted", "portfolio:values=observed"),
    ],
)
def test_with_past_studies(storage, default, published):
    def tried(text):
        study = scrimp.create_study(
            text, SPACE, method=text, learn_from=["past0", "past1"], storage=storage, seed=3
        )
        for _ in range(7):
            trial = study.ask()
            study.tell(trial, value(trial.params, 9))
        return [trial.config for trial in study.trials]

    usual = tried(default.partition(":")[0])
    assert tried(default) == usual
    assert tried(published) != usual
