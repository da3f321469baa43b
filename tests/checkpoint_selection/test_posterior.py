"""The posterior of cells and averages against one dense Gaussian, and what follows from it."""

from dataclasses import replace

import numpy as np
import pandas
import pytest

import scrimp
from scrimp.checkpoint_selection.methods import find_method
from scrimp.checkpoint_selection.posterior import posterior_of
from scrimp.checkpoint_selection.selector import Selector
from scrimp.errors import StudyError
from scrimp.study_log.decision_record import Fit


def test_equals_a_dense_gaussian(full_table, partial_table, row_means, dense_rows):
    table = partial_table(full_table(size=9, tasks=4, weights={"task1": 3.0}), 14)
    means = row_means(table)
    belief, dense = posterior_of(means), dense_rows(table, means.fitted)
    np.testing.assert_allclose(belief.mean, dense.mean.reshape(4, 9).T, atol=1e-9)
    np.testing.assert_allclose(belief.std**2, np.diag(dense.covariance).reshape(4, 9).T, atol=1e-9)
    np.testing.assert_allclose(belief.average_mean, dense.rows @ dense.mean, atol=1e-9)
    np.testing.assert_allclose(
        belief.average_std**2, np.diag(dense.rows @ dense.covariance @ dense.rows.T), atol=1e-9
    )
    assert (belief.std[table.seen] == 0.0).all() and (belief.std[~table.seen] > 0.0).all()


def test_standard_errors_leave_doubt_at_measured_cells(
    full_table, partial_table, row_means, dense_rows, with_errors
):
    table = with_errors(partial_table(full_table(size=9, tasks=4), 20))
    means = row_means(table)
    belief, dense = posterior_of(means), dense_rows(table, means.fitted)
    np.testing.assert_allclose(belief.mean, dense.mean.reshape(4, 9).T, atol=1e-9)
    np.testing.assert_allclose(belief.std**2, np.diag(dense.covariance).reshape(4, 9).T, atol=1e-9)
    whole = dense.rows @ dense.covariance @ dense.rows.T
    np.testing.assert_allclose(belief.average_covariance, whole, atol=1e-9)
    assert (belief.std > 0.0).all()


def test_the_noise_free_function_its_covariance_and_places_between(
    full_table, partial_table, row_means
):
    table = partial_table(full_table(size=9, tasks=4), 20)
    means = row_means(table)
    belief = posterior_of(means)
    assert (belief.latent_std[table.seen] > 0.0).all()
    assert (belief.latent_mean[table.seen] != table.scores[table.seen]).all()
    covariance = belief.covariance(300, "task2")
    assert covariance[2, 2] == pytest.approx(belief.latent_std[2, 2] ** 2)
    at = belief.predict([250.0, 300.0])
    assert at.mean.shape == at.std.shape == (2, 4) and at.average_std.shape == (2,)
    # At a checkpoint the prediction has the smooth curve; only the jitter of the row is its own.
    np.testing.assert_allclose(at.mean[1], means.fitted.mean(smooth=True)[2], atol=1e-9)
    assert at.average_mean[0] == pytest.approx(at.mean[0] @ table.weights)
    for steps in ([50.0], [901.0], [[300.0]]):
        with pytest.raises(StudyError, match="from 100 to 900"):
            belief.predict(steps)


def test_a_prediction_is_what_an_unmeasured_checkpoint_there_would_have(full_table, partial_table):
    for method in ("kg", "ei-icm", "independent", "kg:log"):
        name, _, coordinate = method.partition(":")
        options = {"coordinate": coordinate or "step"}
        table = partial_table(full_table(size=9, tasks=4), 20)
        selector = Selector(find_method(name, options))
        fitted = selector.believe(table).fitted
        belief = posterior_of(selector.believe(table), options["coordinate"])
        grown = table.with_checkpoints([250])
        memory = Fit(20, fitted.state)
        wide = posterior_of(selector.believe(grown, memory), options["coordinate"])
        at = belief.predict([250])
        np.testing.assert_allclose(at.mean[0], wide.latent_mean[-1], atol=1e-8)
        np.testing.assert_allclose(at.std[0], wide.latent_std[-1], atol=1e-8)


def test_learned_hyperparameters(full_table, partial_table, row_means):
    means = row_means(partial_table(full_table(), 40))
    belief = posterior_of(means)
    recorded = means.fitted.state["parameters"]
    assert belief.length_scale == pytest.approx(np.exp(recorded["log_shared_length"][0]))
    assert belief.hyperparameters["noise"] == pytest.approx(np.exp(recorded["log_noise"][0]))
    np.testing.assert_allclose(belief.noise, np.sqrt(means.fitted.noise))
    assert len(belief.hyperparameters["task_noise"]) == 6
    loose = posterior_of(Selector().believe(replace(partial_table(full_table(), 40), steps=None)))
    assert loose.length_scale is None
    with pytest.raises(StudyError, match="with an order"):
        loose.predict([300])


@pytest.mark.parametrize("method", ["kg", "ei-icm", "independent"])
def test_the_answer_is_the_arg_max_of_the_average(method, full_table, partial_table):
    table = partial_table(full_table(), 40)
    selector = Selector(find_method(method))
    belief, answer = posterior_of(selector.believe(table)), selector.recommend(table)
    looked_at = table.seen.any(axis=1)
    best = int(np.argmax(np.where(looked_at, belief.average_mean, -np.inf)))
    assert answer.checkpoint == belief.checkpoints[best]
    assert answer.expected_score == pytest.approx(belief.average_mean[best])
    assert answer.standard_error == pytest.approx(belief.average_std[best], rel=1e-6)
    second = int(np.argmax(np.where(looked_at, belief.smooth_average, -np.inf)))
    assert answer.underlying == belief.checkpoints[second]


def test_frames_and_words(full_table, partial_table, row_means):
    belief = posterior_of(row_means(partial_table(full_table(size=6, tasks=3), 9)))
    frame, averages = belief.dataframe(), belief.dataframe(averages=True)
    assert (
        list(frame.columns) == ["checkpoint", "task", "mean", "std", "measured"]
        and len(frame) == 18
    )
    grid = frame.pivot(index="checkpoint", columns="task", values="mean")
    np.testing.assert_array_equal(grid.to_numpy(), belief.mean)
    assert (
        isinstance(averages, pandas.DataFrame)
        and averages["measured"].sum() == 9 == frame["measured"].sum()
    )
    assert "6 checkpoints x 3 tasks" in repr(belief) and "best average" in repr(belief)


def test_lower_is_better_is_the_same_as_telling_the_negative(full_table, partial_table):
    plain = partial_table(full_table(), 40)
    flipped = plain.with_settings(directions={"task2": "minimize"})
    signs = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
    flipped = type(flipped)(**{**flipped.__dict__, "scores": plain.scores * signs})
    for method in ("kg", "ei-icm"):
        selector = Selector(find_method(method))
        one, other = (posterior_of(selector.believe(table)) for table in (plain, flipped))
        np.testing.assert_allclose(other.average_mean, one.average_mean, atol=1e-8)
        np.testing.assert_allclose(other.average_std, one.average_std, atol=1e-8)
        np.testing.assert_allclose(other.mean, one.mean * signs, atol=1e-8)
        assert (other.std >= 0.0).all()
        ways = [
            selector.decide(table, [], np.random.default_rng(0), 3).cells
            for table in (plain, flipped)
        ]
        assert ways[0] == ways[1]
        fits = [selector.believe(table).fitted for table in (plain, flipped)]
        matrix = fits[0].task_correlations() * np.outer(signs, signs)
        np.testing.assert_allclose(fits[1].task_correlations(), matrix, atol=1e-6)


def test_ei_icm_as_published_is_the_kronecker_product_alone() -> None:
    """K_x (x) L L' over all pairs plus noise, around one constant: no level per task."""
    steps, tasks = list(range(100, 1100, 100)), list("abcd")
    selection = scrimp.create_selection(
        "s", checkpoints=steps, tasks=tasks, method="ei-icm:published", storage="memory://", seed=0
    )
    rng = np.random.default_rng(0)
    scores = 0.5 + 0.3 * np.sin(np.arange(10) / 3)[:, None] * rng.random(4)
    for _ in range(16):
        step, task = selection.ask()
        selection.tell(step, task, float(scores[steps.index(step), tasks.index(task)]))
    belief = selection.posterior()
    learned, units = belief.hyperparameters, belief.means.fitted.units
    loadings = np.array([learned[f"loading_{curve}"] for curve in range(4)]).T
    place = np.linspace(0.0, 1.0, 10)
    curve = np.exp(-0.5 * ((place[:, None] - place) / learned["length"]) ** 2)
    prior = np.kron(curve, loadings @ loadings.T)
    seen = np.flatnonzero(selection.scores.seen)
    noisy = prior[np.ix_(seen, seen)] + learned["noise"] ** 2 * np.eye(len(seen))
    gain = np.linalg.solve(noisy, prior[seen]).T
    mean = gain @ (scores.ravel()[seen] - units.offset) + units.offset
    std = units.unit * np.sqrt(np.diag(prior - gain @ prior[seen]))
    np.testing.assert_allclose(belief.latent_mean.ravel(), mean, atol=1e-9)
    np.testing.assert_allclose(belief.latent_std.ravel(), std, atol=1e-9)
