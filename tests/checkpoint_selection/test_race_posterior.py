"""The statement about the leader of a race: dense formulas, and coverage."""

import numpy as np
import pytest

from scrimp.checkpoint_selection import race_posterior as module
from scrimp.checkpoint_selection.question_race import QuestionRace, Questions, paired_scores
from scrimp.checkpoint_selection.race_posterior import race_posterior
from tests.checkpoint_selection.test_question_race import answers, play


@pytest.mark.parametrize("ordered", [True, False])
def test_the_posterior_is_that_of_the_dense_formula(ordered: bool) -> None:
    sizes = (60, 90)
    race = play(QuestionRace(Questions(sizes), 12, 300.0, seed=0), answers(4, sizes))
    stated = race_posterior(race, ordered)
    paired, variance = paired_scores(race)
    noise = module._sampling_error(variance, ordered)
    densities = []
    for prior, log_density in module._priors(12, ordered):
        total = prior + noise
        _, determinant = np.linalg.slogdet(total)
        densities.append(
            (log_density - 0.5 * paired @ np.linalg.solve(total, paired) - 0.5 * determinant, prior)
        )
    prior = max(densities, key=lambda each: each[0])[1]
    gain = prior @ np.linalg.inv(prior + noise)
    np.testing.assert_allclose(stated.mean, gain @ paired, atol=1e-7)
    np.testing.assert_allclose(stated.covariance, prior - gain @ prior, atol=1e-7)


def test_the_interval_covers_the_score_over_all_questions() -> None:
    sizes = (150, 200)
    covered = 0
    for seed in range(60):
        table = answers(seed, sizes)
        race = play(QuestionRace(Questions(sizes), 12, 400.0, seed=seed), table)
        stated = race_posterior(race, ordered=False)
        truth = np.mean([part[stated.row].mean() for part in table])
        low, high = stated.interval
        covered += low <= truth <= high
        assert 0.0 <= stated.probability_best <= 1.0 and stated.expected_loss >= 0.0
    # 54 of 60 are expected; 47 or fewer have a probability of 0.3 %.
    assert covered >= 48
