"""Runs of a study, their noise, and the gains that could be had from more of them."""

import numpy as np
import pytest

import scrimp
from scrimp.study.contest import Contest, Noise, Runs, expected_gain, noise_of

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def test_expected_gain_by_sampling() -> None:
    draws = np.random.default_rng(0).normal(0.3, 0.5, 400_000)
    # the standard error is 0.0004, five of them allowed
    assert expected_gain(0.3, 0.5) == pytest.approx(np.maximum(-draws, 0).mean(), abs=2e-3)
    assert expected_gain(0.3, 0.0) == 0.0 and expected_gain(-0.3, 0.0) == 0.3


def test_more_runs_of_both_gain_what_they_would_tell() -> None:
    noise = Noise(0.3, "3 runs", 50.0)
    contest = Contest(np.array([0.0, 0.1]), np.diag([0.03, 0.05]), 0.1, 1.0, noise)
    # r runs of each tell the difference up to a variance of 2 x 0.1 / r.
    told = 0.08**2 / (0.08 + 2 * 0.1 / 4)
    assert contest.gain(1, 4.0) == pytest.approx(expected_gain(0.1, told**0.5))
    assert contest.gain(1) == pytest.approx(expected_gain(0.1, 0.08**0.5))


def test_budgets_compare_whole_trainings_only() -> None:
    budget = scrimp.Budget("epoch", 1, 9)
    study = scrimp.create_study(
        "s", SPACE, method="asha", storage="memory://", seed=0, budget=budget
    )

    def train(trial: scrimp.Trial) -> None:
        for epoch in trial.steps():
            trial.report(trial.params["x"] + 1.0 / epoch)

    study.optimize(train, n_trials=25)
    runs = Runs.of(study.history)
    assert all(study.trials[number].budget == 9 for number in runs.trial)


def test_values_after_the_same_training_are_compared() -> None:
    """The verdict says after which: one trial was trained further, and its later value is not
    compared with the other's."""
    budget = scrimp.Budget("epoch", 1, 9)
    study = scrimp.create_study(
        "s", SPACE, method="random", storage="memory://", seed=0, budget=budget
    )
    for number, (x, last) in enumerate([(0.1, 9), (0.5, 4), (0.9, 4)]):
        study.enqueue({"x": x})
        trial = study.ask()
        for epoch in range(1, last + 1):
            study.report(trial, step=epoch, value=x + 1.0 / epoch)
        assert len(study.trials) == number + 1
    runs = Runs.of(study.history)
    assert runs.budget == 4 and sorted(runs.loss) == [0.35, 0.75, 1.15]
    text = str(study.verdict())
    assert "trial 0 (x=0.1), value 0.35 after 4 epochs" in text and "0.2111" not in text


def of(rows: list[tuple[int, int, float]]) -> Runs:
    """Runs from (configuration, seed, loss)."""
    place, seed, loss = (np.array(column) for column in zip(*rows, strict=True))
    configs = tuple({"x": float(number)} for number in range(place.max() + 1))
    return Runs(np.arange(len(rows)), place, seed, loss.astype(float), loss * np.nan, configs, 1.0)


def test_noise_is_pooled_within_configurations() -> None:
    noise = noise_of(of([(0, -1, 1.0), (0, -1, 3.0), (1, -1, 10.0), (1, -1, 10.0), (2, -1, 5.0)]))
    assert noise is not None and noise.freedom == 2.0 and noise.std == pytest.approx(1.0)
    assert noise.source == "4 runs of 2 repeated configurations"
    assert noise_of(of([(0, -1, 1.0), (1, -1, 2.0)])) is None


def test_a_noise_that_a_model_has_raised_says_so() -> None:
    measured = Noise(0.1, "4 runs of 2 repeated configurations", 2.0)
    raised = measured.raised(0.4)
    assert raised.std == pytest.approx(((2 * 0.01 + 4 * 0.16) / 6) ** 0.5)
    assert raised.source.endswith("configurations and, since these are few, a model of all results")
    assert measured.raised(0.05) is measured


def test_effects_of_seeds_are_shared_if_they_explain_the_noise() -> None:
    rng = np.random.default_rng(0)
    effect = rng.standard_normal(6)
    paired = [
        (place, seed, place + effect[seed] + 0.01 * rng.standard_normal())
        for place in (0, 1)
        for seed in range(6)
    ]
    noise = noise_of(of(paired))
    assert noise is not None and noise.shared == pytest.approx(noise.std, rel=0.01)
    alone = [(place, seed, float(rng.standard_normal())) for place in (0, 1) for seed in range(6)]
    free = noise_of(of(alone))
    assert free is not None and free.shared < free.std


def test_few_runs_count_beside_the_bound_of_a_model() -> None:
    agreed = Noise(0.001, "2 runs", 1.0)
    assert agreed.raised(1.0).std == pytest.approx(np.sqrt(0.8), rel=1e-3)
    assert agreed.raised(0.0) == agreed
