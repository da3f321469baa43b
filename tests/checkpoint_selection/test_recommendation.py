"""Losses by sampling, and answers with and without a model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from scrimp.checkpoint_selection.methods import find_method
from scrimp.checkpoint_selection.recommendation import (
    Recommendation,
    expected_losses,
    recommend_measured,
)
from scrimp.checkpoint_selection.row_means import RowMeans
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.checkpoint_selection.selector import Selector
from scrimp.checkpoint_selection.task_grid import TaskGrid
from scrimp.checkpoint_selection.task_grid_models import SharedCurve


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
    first, why, sure, sampling, second, warning = answer.words
    assert sampling == "sampling error is not included: no score has a standard error"
    assert (
        first == "take checkpoint 30: mean score 0.61 ± 0.004"
        and "highest expected mean over all tasks" in why
    )
    assert (
        sure == "within 0.002 of the best with probability 0.70; expected loss 0.001; runner-up 10"
    )
    assert (
        second.startswith("second opinion: the smoothed curve")
        and "peaks at 20; prefer it only if" in second
    )
    assert warning == "warning: 61 is large" and str(answer).splitlines()[1].startswith("  why:")
    assert repr(answer).startswith("Recommendation(take checkpoint=30, expected_score=0.61")
    assert "second opinion underlying=20" in repr(answer)
    assert "peaks at the same checkpoint" in replace(answer, underlying=30).words[4]
    some = replace(answer, scores=9, scores_with_error=4).words[3]
    assert some.startswith("sampling error is included for 4 of 9 scores")
    assert (
        "is included, from the standard errors"
        in replace(answer, scores=9, scores_with_error=9).words[3]
    )


def test_it_never_prints_certainty():
    sure = Recommendation(30, 20, 0.61, 0.0, 0.0, 0.9997, 10, 12.0, 0.002)
    assert "0.61\n" in str(sure) and "±" not in str(sure) and "probability >0.99" in str(sure)
    assert "probability <0.01" in str(replace(sure, probability_best=0.0003))
    assert "probability 0.99;" in str(replace(sure, probability_best=0.99))


def test_standard_errors_count_without_being_asked(full_table, with_errors):
    """A complete table whose scores are all uncertain leaves doubt about the answer."""
    table = with_errors(full_table(), 0.05)
    answer = Selector().recommend(table)
    assert answer.standard_error > 0.004 and answer.probability_best < 0.95
    assert answer.scores_with_error == answer.scores == 72
    exact = Selector(stderr=False).recommend(table)
    assert exact.standard_error == pytest.approx(0.0, abs=1e-9)
    assert exact.scores_with_error == 0
    # An uncertain lucky score counts less than the curve.
    lucky = table.scores.copy()
    lucky[0] += 0.2
    told = replace(
        table, scores=lucky, errors=np.where(np.arange(12)[:, None] == 0, 0.2, 0.001 * table.errors)
    )
    assert Selector(stderr=False).recommend(told).checkpoint == 100
    assert Selector().recommend(told).checkpoint != 100


def test_without_a_model_the_standard_errors_of_the_mean_combine(full_table, with_errors):
    table = with_errors(full_table(), 0.05)
    answer = recommend_measured(table, 0.002)
    row = table.checkpoints.index(answer.checkpoint)
    assert answer.standard_error == pytest.approx(np.sqrt(np.square(table.errors[row]).sum()) / 6)
    assert recommend_measured(table, 0.002, stderr=False).standard_error is None


def test_the_smooth_answer_is_the_arg_max_of_the_smooth_curve(full_table, partial_table):
    for method in ("kg", "ei-icm", "independent"):
        selector = Selector(find_method(method), answer="smooth")
        table = partial_table(full_table(seed=4), 30, seed=2)
        answer, means = selector.recommend(table), selector.believe(table)
        best = int(np.argmax(means.underlying))
        assert answer.checkpoint == table.checkpoints[best]
        assert answer.expected_score == pytest.approx(means.underlying[best])
        assert answer.standard_error > 0.0 and "smooth curve" in answer.words[1]
        assert not any("second opinion" in line for line in answer.words)


def test_the_covariance_of_the_smooth_curve_against_a_dense_gaussian(full_table, partial_table):
    means = Selector().believe(partial_table(full_table(size=8, tasks=3), 12))
    fitted, table = means.fitted, means.table
    prior, unit = fitted.solution.prior, fitted.units.unit
    rows, columns = np.nonzero(table.seen)
    together = (
        prior.shared[np.ix_(rows, rows)]
        + (columns[:, None] == columns) * prior.own[np.ix_(rows, rows)]
    )
    together += np.diag(prior.noise[columns])
    # Cov(S_k, y_c), with S_k the weighted sum of smooth curve and own parts.
    shared = fitted.smooth_covariance[:, rows]
    cross = shared + table.weights[columns] * prior.own[:, rows]
    before = fitted.smooth_covariance + np.square(table.weights).sum() * prior.own
    expected = (before - cross @ np.linalg.solve(together, cross.T)) * unit**2
    np.testing.assert_allclose(means.underlying_covariance, expected, atol=1e-9)


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
    selector = Selector(find_method("ei-icm"))
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


@pytest.mark.parametrize(
    ("steps", "choice"), [(True, "the first of them"), (False, "one of them at random")]
)
def test_equal_scores_are_called_tied(steps, choice):
    names = [10, 20, 30] if steps else ["a", "b", "c"]
    table = ScoreTable.empty(names, ["x", "y"], ordered=steps)
    cells = [(name, task, 0.5, None) for name in names[:2] for task in "xy"]
    table = table.with_scores([*cells, (names[2], "x", 0.4, None), (names[2], "y", 0.4, None)])
    for answer in (Selector().recommend(table), recommend_measured(table, 0.002)):
        assert answer.tied == 1
        assert "it and 1 other share the highest" in str(answer) and choice in str(answer)
    alone = table.with_scores([(names[0], "x", 0.6, None)], replacing=True)
    assert "it has the highest" in str(Selector().recommend(alone))


def test_ignored_standard_errors_are_not_called_missing(full_table, with_errors):
    table = with_errors(full_table(), 0.05)
    text = "sampling error is not included: the standard errors told are ignored"
    for method in ("kg", "stride"):
        assert text in str(Selector(find_method(method), stderr=False).recommend(table))
        assert text not in str(Selector(find_method(method)).recommend(table))
