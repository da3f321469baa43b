"""The statement about the leader of a race: dense formulas, and coverage."""

from typing import Literal

import numpy as np
import pytest
from scipy.stats import hypergeom

import scrimp
from scrimp.checkpoint_selection import race_posterior as module
from scrimp.checkpoint_selection.answer_book import Questions
from scrimp.checkpoint_selection.race_posterior import race_posterior
from tests.checkpoint_selection.test_question_race import answers, new_race, play


@pytest.mark.parametrize("ordered", [True, False])
def test_the_posterior_is_that_of_the_dense_formula(ordered: bool) -> None:
    sizes = (60, 90)
    race = play(new_race(Questions(sizes), 12, 300.0, seed=0), answers(4, sizes))
    stated = race_posterior(race, ordered)
    paired, variance = race.book.paired_scores(race.contenders, race.noise, ordered)
    noise = module._sampling_error(variance, ordered)
    densities = []
    for prior, log_density in module._priors(12, ordered):
        total = prior + noise
        _, determinant = np.linalg.slogdet(total)
        densities.append(
            (log_density - 0.5 * paired @ np.linalg.solve(total, paired) - 0.5 * determinant, prior)
        )
    top = max(density for density, _ in densities)
    likely = [each for each in densities if each[0] > top + np.log(0.03)]
    weights = np.exp([density - top for density, _ in likely])
    weights /= weights.sum()
    gains = [prior @ np.linalg.inv(prior + noise) for _, prior in likely]
    means = [gain @ paired for gain in gains]
    mean = np.average(means, axis=0, weights=weights)
    second = sum(
        weight * (prior - gain @ prior + np.outer(each, each))
        for weight, gain, each, (_, prior) in zip(weights, gains, means, likely, strict=True)
    )
    np.testing.assert_allclose(stated.mean, mean, atol=1e-7)
    np.testing.assert_allclose(stated.covariance, second - np.outer(mean, mean), atol=1e-7)


def test_the_score_is_less_the_luck_of_the_row_and_its_error_has_two_parts() -> None:
    """The sampling of the questions not asked, and what the posterior leaves open. Of a task that
    was asked whole, nothing is left to sample."""
    sizes = (10, 200)
    race = play(new_race(Questions(sizes), 12, 200.0, seed=0), answers(4, sizes))
    stated = race_posterior(race, ordered=False)
    row, (whole, asked) = stated.row, race.counts[stated.row]
    assert whole == 10 and 0 < asked < 200
    first, second = (
        race.book.answers(np.array([row]), task, count)[0] for task, count in ((0, 10), (1, asked))
    )
    own = race.shares @ [first.mean(), second.mean()]
    paired, _ = race.book.paired_scores(race.contenders, race.noise)
    luck = paired[row] - stated.mean[row]
    assert stated.score == pytest.approx(own - luck) and abs(luck) > 1e-3
    spread = (second.var() * asked + 3.0 * own * (1.0 - own)) / (asked + 3.0)
    sampling = race.shares[1] ** 2 * spread / asked * (1.0 - asked / 200)
    assert stated.standard_error**2 == pytest.approx(sampling + stated.covariance[row, row])


def test_the_interval_covers_the_score_over_all_questions() -> None:
    sizes = (150, 200)
    covered = 0
    for seed in range(60):
        table = answers(seed, sizes)
        race = play(new_race(Questions(sizes), 12, 400.0, seed=seed), table)
        stated = race_posterior(race, ordered=False)
        truth = np.mean([part[stated.row].mean() for part in table])
        low, high = stated.interval
        covered += low <= truth <= high
        assert 0.0 <= stated.probability_best <= 1.0 and stated.expected_loss >= 0.0
    # 54 of 60 are expected; 47 or fewer have a probability of 0.3 %.
    assert covered >= 48


@pytest.mark.parametrize(
    ("share", "direction"), [(0.1, "maximize"), (0.2, "maximize"), (0.2, "minimize")]
)
def test_answers_that_are_all_alike_do_not_promise_a_perfect_score(
    share: float, direction: Literal["minimize", "maximize"]
) -> None:
    """With n of 300 answers alike, K others have been missed with a probability of
    hypergeom(0; 300, K, n). The interval holds the K that are missed in 5 % of cases or more."""
    selection = scrimp.create_selection(
        "s",
        checkpoints=range(1, 9),
        tasks={"easy": 300},
        directions={"easy": direction},
        storage="memory://",
        seed=0,
    )
    alike = 1.0 if direction == "maximize" else 0.0
    answer = selection.run(
        lambda checkpoint, task, questions: [alike] * len(questions), share=share
    )
    (asked,) = (
        int(trial.budget)
        for trial in selection.history.trials
        if trial.config["checkpoint"] == answer.checkpoint
    )
    assert 40 < asked < 300
    assert answer.interval is not None and answer.expected_score == alike
    low, high = answer.interval
    others = np.arange(300 - asked)
    missed = hypergeom(300, others, asked).pmf(0)
    assert max(alike - low, high - alike) == pytest.approx(
        others[missed >= 0.05].max() / 300, rel=0.3
    )
    assert 0.0 <= low <= high <= 1.0
