"""Every weight against the formula written out by hand on small cases."""

import itertools

import numpy as np
import pytest

from scrimp.surrogates.budget_levels import discordant_pairs
from scrimp.transfer.weights import (
    WeightRule,
    best_shares,
    bootstrap_losses,
    discordance,
    distance_weights,
    drop_probabilities,
    epanechnikov,
    feature_distances,
    keep_by_percentile,
    rank_distances,
)


def test_epanechnikov_is_zero_from_the_bandwidth_on() -> None:
    """The published code takes u < 1, where the paper prints <=."""
    assert epanechnikov(np.array([0.0, 0.2, 0.999, 1.0, 3.0])) == pytest.approx(
        [0.75, 0.72, 0.00149925, 0.0, 0.0]
    )


def test_distance_weights_by_hand() -> None:
    """Distances 0, half the bandwidth and beyond: 0.75, 0.5625, 0, and 0.75 for the new
    study."""
    weights = distance_weights(np.array([0.0, 0.05, 0.2]), bandwidth=0.1)
    assert weights == pytest.approx(np.array([0.75, 0.5625, 0.0, 0.75]) / 2.0625)


def test_the_new_study_counts_alone_when_all_others_are_far() -> None:
    assert distance_weights(np.array([0.5, 0.1]), bandwidth=0.1).tolist() == [0.0, 0.0, 1.0]


def test_feature_distances_scale_every_feature_over_all_studies() -> None:
    past = np.array([[0.0, 5.0], [10.0, 5.0]])
    # first feature: range 0..10, second constant; the new study has 4
    assert feature_distances(past, np.array([4.0, 5.0])) == pytest.approx(
        [0.4 / np.sqrt(2), 0.6 / np.sqrt(2)]
    )


def test_rank_distance_by_hand() -> None:
    """Losses 1 < 2 < 3; the first model agrees, the second reverses all, the third swaps one pair
    of three."""
    losses = np.array([1.0, 2.0, 3.0])
    predictions = np.array([[0.1, 9.0, 5.0], [0.2, 8.0, 4.0], [0.3, 7.0, 6.0]])
    assert discordant_pairs(predictions.T, losses).tolist() == [0.0, 3.0, 1.0]
    assert rank_distances(predictions, losses) == pytest.approx([0.0, 1.0, 1.0 / 3.0])


def test_before_two_evaluations_every_past_study_counts_like_the_new_one() -> None:
    nothing = rank_distances(np.array([[1.0, 2.0]]), np.array([0.5]))
    assert distance_weights(nothing, 0.1) == pytest.approx([1 / 3, 1 / 3, 1 / 3])


def _ranking_loss(f: np.ndarray, y: np.ndarray) -> int:
    return sum(
        (f[j] < f[k]) != (y[j] < y[k]) for j, k in itertools.product(range(len(y)), repeat=2)
    )


def test_discordance_sums_to_the_ranking_loss() -> None:
    rng = np.random.default_rng(0)
    y, f = rng.random(6), rng.random((6, 3))
    f[2, 0] = f[4, 0]  # a tie is no smaller
    assert discordance(f.T, y).sum(axis=(1, 2)).tolist() == [
        _ranking_loss(f[:, i], y) for i in range(3)
    ]


def test_leave_one_out_compares_predictions_with_losses_themselves() -> None:
    y, left_out = np.array([1.0, 2.0, 3.0]), np.array([1.5, 0.5, 2.5])
    # f_-0 = 1.5: below 2 and 3 as it should; but 1.5 < 1 is false and 1 < 1 is false: right. f_-1 =
    # 0.5 < 1 though 2 > 1: wrong, 0.5 < 2 though not 2 < 2: wrong. f_-2 = 2.5 < 3 though not 3 < 3:
    # wrong.
    wrong = discordance(left_out, y, against=y)
    assert wrong.tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 1]]


def test_bootstrap_losses_equal_the_losses_of_the_resampled_data() -> None:
    rng = np.random.default_rng(1)
    y, f = rng.random(5), rng.random((5, 2))
    drawn = bootstrap_losses(discordance(f.T, y), 7, np.random.default_rng(3))
    taken = np.random.default_rng(3).multinomial(5, np.full(5, 0.2), size=7)
    for draw, counts in enumerate(taken):
        rows = np.repeat(np.arange(5), counts)
        assert drawn[:, draw].tolist() == [_ranking_loss(f[rows, i], y[rows]) for i in range(2)]


def test_sampled_losses_are_losses_of_the_draws() -> None:
    rng = np.random.default_rng(2)
    y, draws = rng.random(4), rng.random((2, 3, 4))
    expected = [[_ranking_loss(draws[i, s], y) for s in range(3)] for i in range(2)]
    assert discordance(draws, y).sum(axis=(2, 3)).tolist() == expected


def test_best_shares_by_hand() -> None:
    """Four draws: past wins, target wins, all three tie, the two past studies tie."""
    losses = np.array([[1.0, 5.0, 2.0, 1.0], [3.0, 5.0, 2.0, 1.0], [2.0, 4.0, 2.0, 3.0]])
    assert best_shares(losses) == pytest.approx(
        [(1 + 1 / 3 + 1 / 2) / 4, (1 / 3 + 1 / 2) / 4, (1 + 1 / 3) / 4]
    )
    assert best_shares(losses, ties="target") == pytest.approx(
        [(1 + 1 / 2) / 4, (1 / 2) / 4, 2 / 4]
    )


def test_a_dropped_study_never_wins_and_weights_are_normalised_again() -> None:
    """One published implementation drops without renormalising; here the weights always sum to
    1."""
    losses = np.array([[1.0, 0.0], [3.0, 5.0], [2.0, 4.0]])
    assert best_shares(losses, np.array([False, True])).tolist() == [0.0, 0.0, 1.0]
    assert best_shares(losses, np.array([False, False])).sum() == 1.0


def test_a_hundred_draws_suffice() -> None:
    """Weights by 100 draws lie within 0.15 of those by 10,000, in each of 20 cases of 8 models and
    12 evaluations."""
    rng = np.random.default_rng(4)
    for case in range(20):
        y = rng.random(12)
        f = y[:, None] + rng.random(8) * rng.standard_normal((12, 8))
        wrong = discordance(f.T, y)
        few = best_shares(bootstrap_losses(wrong, 100, np.random.default_rng(case)))
        many = best_shares(bootstrap_losses(wrong, 10_000, np.random.default_rng(1000 + case)))
        assert np.abs(few - many).max() < 0.15


# --- dilution ---


def test_percentile_rule_uses_the_median_of_the_past_and_keeps_only_below() -> None:
    """The target's losses are 0..100, so their 95th percentile is 95. Median 94 stays, 95 goes: the
    rule drops at equality."""
    target = np.arange(101.0)
    below, at = np.full(101, 94.0), np.full(101, 95.0)
    below[:50] = 1e6  # the median, not the mean: half of the draws may be terrible
    losses = np.stack([below, at, np.full(101, 200.0), target])
    assert keep_by_percentile(losses).tolist() == [True, False, False]
    assert keep_by_percentile(losses, equal=True).tolist() == [
        True,
        True,
        False,
    ]  # as the paper prints it


def test_drop_probability_by_hand() -> None:
    losses = np.array([[1.0, 1.0, 1.0, 5.0], [9.0, 9.0, 9.0, 9.0], [2.0, 2.0, 2.0, 2.0]])
    # wins 3/4 and 0; n = 10 of H = 40
    assert drop_probabilities(losses, 10, 40) == pytest.approx([1 - 0.75 * 0.75, 1.0])
    assert drop_probabilities(losses, 10, 40, alpha=1.0) == pytest.approx(
        [1 - 0.75 * 0.75 / 2, 1.0]
    )


def test_equal_losses_are_no_win() -> None:
    assert drop_probabilities(np.full((2, 5), 3.0), 0, 10).tolist() == [1.0]


def test_at_the_horizon_everything_is_dropped_and_beyond_it_too() -> None:
    losses = np.array([[0.0, 0.0], [1.0, 1.0]])
    assert drop_probabilities(losses, 10, 10).tolist() == [1.0]
    assert drop_probabilities(losses, 99, 10).tolist() == [1.0]
    assert drop_probabilities(losses, 0, 10).tolist() == [0.0]


def test_a_past_study_is_dropped_with_its_probability() -> None:
    rng = np.random.default_rng(0)
    losses = np.array([[1.0, 1.0], [9.0, 9.0], [2.0, 2.0]])
    rule = WeightRule(dilution="probabilistic", horizon=10)
    kept = np.array([rule._kept(losses, 3, rng) for _ in range(2000)])
    # 2000 draws at 0.7: standard error 0.0102, five of them allowed
    assert abs(kept[:, 0].mean() - 0.7) < 0.052 and not kept[:, 1].any()
    assert all(rule._kept(losses, 0, rng)[0] for _ in range(100))


def test_one_pair_of_results_is_enough_to_tell_past_studies_apart() -> None:
    predictions = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert rank_distances(predictions, np.array([0.1, 0.2])).tolist() == [0.0, 1.0]
    assert rank_distances(predictions[:1], np.array([0.1])).tolist() == [0.0, 0.0]
