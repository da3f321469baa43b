"""Losses by sampling, and answers with and without a model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.selection.recommendation import Recommendation, expected_losses, recommend_measured
from scrimp.selection.row_means import RowMeans
from scrimp.selection.score_table import ScoreTable
from scrimp.selection.selector import Selector, SelectorSettings
from scrimp.selection.task_grid import TaskGrid
from scrimp.selection.task_grid_models import SharedCurve


def test_losses_of_two_alternatives_equal_the_formula():
    covariance = np.array([[0.5, 0.1], [0.1, 0.3]])
    draws = expected_losses(np.array([1.0, 0.8]), covariance, 0, np.random.default_rng(0), 200_000)
    spread = np.sqrt(0.5 + 0.3 - 0.2)
    u = -0.2 / spread
    assert draws.mean() == pytest.approx(-0.2 * norm.cdf(u) + spread * norm.pdf(u), rel=0.02)
    assert (draws <= 0.1).mean() == pytest.approx(norm.cdf(0.3 / spread), abs=0.005)


def test_without_a_model_the_best_complete_row_is_taken():
    table = ScoreTable.empty([10, 20, 30], ["a", "b"])
    assert recommend_measured(table, 0.002).checkpoint == 30
    table = table.with_scores([(10, "a", 0.5, None), (10, "b", 0.7, None), (20, "a", 0.9, None)])
    answer = recommend_measured(table, 0.002)
    assert answer.checkpoint == answer.underlying == 10
    assert answer.expected_score == pytest.approx(0.6)
    assert answer.runner_up is None
    assert answer.expected_loss is None
    better = table.with_score(20, "b", 0.4)
    assert recommend_measured(better, 0.002).checkpoint == 20
    assert recommend_measured(better, 0.002).runner_up == 10


def test_it_says_in_words_which_to_take_and_why():
    answer = Recommendation(30, 20, 0.61, 0.004, 0.001, 0.7, 10, 12.0, 0.002, ("61 is large",))
    first, why, sure, second, warning = answer.words
    assert (
        first == "take checkpoint 30: mean score 0.61 ± 0.004"
        and "highest expected mean over all tasks" in why
    )
    assert (
        sure == "within 0.002 of the best with probability 0.70; expected loss 0.001; runner-up 10"
    )
    assert (
        second.startswith("second opinion: the smooth curve")
        and "best at 20; prefer it only if" in second
    )
    assert warning == "warning: 61 is large" and str(answer).splitlines()[1].startswith("  why:")
    assert repr(answer).startswith("Recommendation(take checkpoint=30, expected_score=0.61")
    assert "second opinion underlying=20" in repr(answer)
    assert "has its best there too" in replace(answer, underlying=30).words[3]


def test_a_complete_table_leaves_no_doubt(full_table):
    table = full_table()
    answer = Selector().recommend(table)
    means = table.scores @ table.weights
    assert answer.checkpoint == table.checkpoints[int(np.argmax(means))]
    assert answer.runner_up == table.checkpoints[int(np.argsort(-means)[1])]
    assert answer.expected_score == pytest.approx(means.max())
    assert answer.standard_error == pytest.approx(0.0, abs=1e-9)
    assert answer.expected_loss == pytest.approx(0.0, abs=1e-9)
    assert answer.probability_best == 1.0
    assert answer.spent == table.scores.size


def test_doubt_shrinks_with_cells(full_table, partial_table):
    full = full_table(size=20, tasks=10)
    few, many = (Selector().recommend(partial_table(full, count)) for count in (15, 150))
    assert few.expected_loss > many.expected_loss > 0.0
    assert few.standard_error > many.standard_error > 0.0
    assert 0.0 < few.probability_best < 1.0
    assert many.probability_best > few.probability_best


def test_of_ei_icm_the_model_of_kg_says_how_sure_the_answer_is(full_table, partial_table):
    table = partial_table(full_table(size=20, tasks=10), 40)
    selector = Selector(SelectorSettings(method="ei-icm"))
    answer, own, judge = (
        selector.recommend(table),
        selector.believe(table),
        Selector().believe(table),
    )
    best, everything = table.checkpoints.index(answer.checkpoint), np.arange(20)
    sure, own_word = (
        expected_losses(
            means.measured, means.covariance_of(everything), best, np.random.default_rng(3), 20_000
        )
        for means in (judge, own)
    )
    assert answer.probability_best == pytest.approx((sure <= 0.002).mean(), abs=0.03)
    assert answer.expected_loss == pytest.approx(sure.mean(), rel=0.1)
    assert own_word.mean() < 0.7 * sure.mean()  # it would claim more than it knows
    assert answer.expected_score == own.measured[best]
    assert answer.standard_error == pytest.approx(
        np.sqrt(own.covariance_of(everything)[best, best])
    )


def test_an_answer_was_looked_at():
    """A curve that rises to a gap and falls after it: the model promises most within, where nobody
    looked."""
    steps, rows = list(range(100, 1300, 100)), [0, 1, 2, 3, 8, 9, 10, 11]
    table = ScoreTable.empty(steps, ["a", "b"])
    table = table.with_scores(
        [
            (steps[row], task, 0.9 - 0.02 * (row - 5.5) ** 2, None)
            for row in rows
            for task in ("a", "b")
        ]
    )
    selector = Selector()
    means = RowMeans.of(table, TaskGrid(SharedCurve()).fit(selector._data(table)))
    promised = int(np.argmax(means.measured))
    assert not table.seen[promised].any() and not table.seen[int(np.argmax(means.underlying))].any()
    answer = selector.recommend(table)
    assert answer.checkpoint in (400, 900) and answer.underlying in (400, 900)
    assert answer.runner_up == steps[promised]
    assert answer.expected_loss > 0.0
