"""The three rules against drawing by dilution, by hand."""

import numpy as np
import pytest

from scrimp.transfer.dilution import drop_probabilities, keep_by_chance, keep_by_percentile


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


def test_chance_keeps_what_has_probability_zero_and_drops_what_has_one() -> None:
    rng = np.random.default_rng(0)
    kept = np.array([keep_by_chance(np.array([0.0, 1.0, 0.3]), rng) for _ in range(2000)])
    assert kept[:, 0].all() and not kept[:, 1].any()
    # 2000 draws at 0.7: standard error 0.0102, five of them allowed
    assert abs(kept[:, 2].mean() - 0.7) < 0.052
