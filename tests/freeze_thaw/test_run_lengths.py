"""How long runs will be: exact where a parameter says it, and the full budget where runs do not end
by themselves."""

import numpy as np

from scrimp.freeze_thaw.run_lengths import expected_ends


def test_a_length_that_follows_from_the_configuration_is_learned_from_a_few_runs() -> None:
    rng = np.random.default_rng(0)
    x = rng.random((200, 4))
    lengths = 100.0 * np.exp(-1.5 * x[:, 0] - 0.5 * x[:, 2])
    predicted = expected_ends(x[:25], lengths[:25], x, 100.0)
    assert np.abs(np.log(predicted / lengths)).max() < 0.1
    assert predicted.max() <= 100.0


def test_runs_that_go_on_to_the_full_budget_change_nothing() -> None:
    x = np.random.default_rng(0).random((6, 2))
    np.testing.assert_array_equal(expected_ends(x[:0], np.zeros(0), x, 50.0), 50.0)
    np.testing.assert_array_equal(expected_ends(x[:3], np.full(3, 50.0), x, 50.0), 50.0)
