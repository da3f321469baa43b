"""The first configurations: the guess, then an even spread, none twice."""

import numpy as np
import pytest

import scrimp
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.untried_configs import first_configs, guess


def history_of(space: scrimp.Space, told: int = 0) -> scrimp.Study:
    study = scrimp.create_study("s", space, method="sobol", storage="memory://", seed=5)
    for _ in range(told):
        study.tell(study.ask(), 1.0)
    return study


def test_without_priors_there_is_no_guess() -> None:
    assert guess(history_of(scrimp.Space(x=scrimp.Float(0, 1))).history) is None


def test_the_guess_completes_the_priors_and_leaves_out_what_is_inactive() -> None:
    space = scrimp.Space(
        kind=scrimp.Categorical(["a", "b"], prior=("a", "high")),
        only_b=scrimp.Float(0, 1, prior=(0.9, "low"), when={"kind": "b"}),
        free=scrimp.Int(1, 9),
    )
    config = guess(history_of(space).history)
    assert (
        config is not None
        and config["kind"] == "a"
        and "only_b" not in config
        and 1 <= config["free"] <= 9
    )


def test_guesses_on_pools_and_under_conditions() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1, prior=(0.33, "medium")))
    pool = scrimp.Pool(space, [{"x": number / 10} for number in range(11)])
    assert guess(history_of(pool).history) == {"x": 0.3}
    conditional = scrimp.Space(
        solver=scrimp.Categorical(["adam", "sgd"]),
        momentum=scrimp.Float(0, 0.99, prior=(0.9, "high"), when={"solver": "sgd"}),
    )
    assert guess(history_of(conditional).history) == {"solver": "sgd", "momentum": 0.9}


def test_the_design_is_even_and_counts_what_lacks() -> None:
    study = history_of(scrimp.Space(x=scrimp.Float(0, 1)), told=3)
    rng = np.random.default_rng(0)
    assert first_configs(study.history, lacking=0, count=4, rng=rng) == []
    assert len(first_configs(study.history, lacking=2, count=4, rng=rng)) == 2
    values = sorted(
        trial.params["x"] for trial in history_of(scrimp.Space(x=scrimp.Float(0, 1)), told=8).trials
    )
    assert (
        max(np.diff([0.0, *values, 1.0])) < 0.3
    )  # eight random points leave a larger gap nine times in ten


def test_random_draws_may_take_the_place_of_the_sequence() -> None:
    study = history_of(scrimp.Space(x=scrimp.Float(0, 1, prior=(0.25, "low"))))
    drawn = first_configs(study.history, 4, 4, np.random.default_rng(0), "random")
    assert drawn[0] == {"x": 0.25} and len({config["x"] for config in drawn}) == 4
    assert drawn != first_configs(study.history, 4, 4, np.random.default_rng(0))
    with pytest.raises(scrimp.errors.MethodError, match="design is 'grid'"):
        BayesianSuggester(design="grid")
