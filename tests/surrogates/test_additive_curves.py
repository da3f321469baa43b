"""Curves reduced to ends, against the dense process of all observations."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.errors import StudyError
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.marginal_likelihood import SearchSettings
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.additive_curves import AdditiveCurves, Observed
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery, close, numerical_gradient

COLUMNS = (Column(), Column())
COUNT = 9
STEPS = tuple((np.arange(1, COUNT + 1) / COUNT).tolist())


def model_of(kind):
    prior = MeanAndKernel(Scaled(Matern52(COLUMNS)))
    if kind == "decay":
        return AdditiveCurves(prior, DecayResidual(), STEPS)
    return AdditiveCurves(prior, InnovationResidual(), STEPS, unit=COUNT)


@pytest.fixture(params=["decay", "innovations"])
def model(request):
    return model_of(request.param)


@pytest.mark.parametrize("kind", ["decay", "innovations"])
class TestAdditiveCurves(SurrogateBattery):
    """The battery's last column plays the budget."""

    @pytest.fixture
    def columns(self):
        return (*COLUMNS, Column(STEPS))

    @pytest.fixture
    def surrogate(self, kind):
        return model_of(kind)


@pytest.fixture
def data():
    """Curves of several lengths, one with a gap, one that ran to the end; known noise at some
    observations."""
    rng = np.random.default_rng(0)
    configs = rng.random((7, 2))
    lengths = (3, 5, 3, 1, 9, 5, 2)
    rows = [
        [*configs[i], STEPS[j]] for i in range(7) for j in range(lengths[i]) if (i, j) != (1, 2)
    ]
    x = np.array(rows)[rng.permutation(len(rows))]
    noise = np.where(x[:, 0] < 0.4, 0.05, 0.0)
    return Data(
        x,
        np.sin(4 * x[:, 0]) + 1.5 * np.exp(-3 * x[:, 2]) + 0.1 * rng.standard_normal(len(x)),
        noise,
    )


@pytest.fixture
def values(model):
    vector = model.vector
    moved = vector.encode(vector.initial) + np.random.default_rng(2).uniform(-0.6, 0.6, vector.size)
    return np.append(np.clip(vector.decode(moved), vector.lower, vector.upper)[:-1], 0.05)


def dense(model, values, x1, x2):
    """Mean of f at x1, and the covariances of f(x1), y(x2) of the process written out entry by
    entry.

    Returns mean (n,), Cov(f1, f2), Cov(f1, y2), Cov(y1, y2) without known noise; equal rows share
    curves and noise draws.
    """
    prior, moments = model.parts(values)
    s1, s2 = (np.rint(x[:, 2] * COUNT).astype(int) - 1 for x in (x1, x2))
    same = (x1[:, None, :2] == x2[None, :, :2]).all(-1)
    plain = prior.covariance(x1[:, :2].copy(), x2[:, :2].copy())
    kinds = [
        plain + same * part[np.ix_(s1, s2)]
        for part in (moments.latent, moments.cross, moments.observed)
    ]
    return prior.mean(x1[:, :2]) + moments.mean[s1], *kinds


def test_posterior_and_likelihood_are_those_of_the_dense_process(model, data, values):
    fitted = model.restore(data, {"parameters": model.vector.to_json(values), "explored": 1})
    rng = np.random.default_rng(5)
    new = np.column_stack([rng.random((4, 2)), [STEPS[0], STEPS[3], STEPS[8], STEPS[8]]])
    new = np.vstack([new, new[:1]])
    new[-1, 2] = STEPS[6]  # a second step of an unseen configuration
    old = np.column_stack(
        [np.repeat(data.x[:6, :2], 2, axis=0), np.resize([STEPS[8], STEPS[1], STEPS[5]], 12)]
    )
    x = np.vstack([new, old])
    mean, _, _, covariance = dense(model, values, data.x, data.x)
    full = covariance + np.diag(data.noise)
    prior_mean, latent, _, _ = dense(model, values, x, x)
    cross = dense(model, values, x, data.x)[2]
    solved = np.linalg.solve(full, np.column_stack([data.y - mean, cross.T]))
    posterior = fitted.posterior(x, joint=True)
    np.testing.assert_allclose(
        posterior.mean[:, 0], prior_mean + cross @ solved[:, 0], rtol=1e-8, atol=1e-9
    )
    expected = latent - cross @ solved[:, 1:]
    np.testing.assert_allclose(posterior.covariance, expected, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(posterior.variance, expected.diagonal(), rtol=1e-8, atol=1e-8)
    residual = data.y - mean
    likelihood = -0.5 * (
        residual @ solved[:, 0] + np.linalg.slogdet(full)[1] + len(residual) * np.log(2 * np.pi)
    )
    assert fitted.log_marginal_likelihood == pytest.approx(likelihood, rel=1e-9)
    assert model.log_posterior(data).log_density(values) == pytest.approx(
        likelihood + model.vector.log_density_and_gradient(values)[0], rel=1e-9
    )


def test_likelihood_gradient(model, data, values):
    posterior = model.log_posterior(data)
    close(
        posterior.value_and_gradient(values)[1], numerical_gradient(posterior.log_density, values)
    )
    many = model.log_posterior(
        Data(data.x, np.stack([data.y, data.y + 0.3, 0.5 * data.y], axis=1), data.noise)
    )
    close(many.value_and_gradient(values)[1], numerical_gradient(many.log_density, values))


def backward_recursion(values, curves, prior):
    """The published recursion of the innovations model, with the innovation variance of unobserved
    steps corrected.

    From the last observed step back: v = 1, w = y; then e = 1 + gamma a, v <- e v, w <- e w + (y
    before) - y + a.
    """
    power, log_amplitude, bend, noise = values[-4:]
    steps = np.arange(1.0, COUNT + 1)
    a = -power * np.exp(log_amplitude) * steps ** (-power - 1)
    total, ends, variances = 0.0, [], []
    for y in curves:
        last = len(y)
        v, w = [1.0], [y[-1]]
        for j in range(1, last):
            e = 1 + bend * a[last - j]
            v.append(e * v[-1])
            w.append(e * w[-1] + y[last - 1 - j] - y[last - j] + a[last - j])
        v, w = np.array(v), np.array(w)
        c, d = a[last:].sum(), bend**2 * noise * (a[last:] ** 2).sum()
        s = v @ v / noise
        end = v @ w / noise / s
        total += -0.5 * (
            w @ w / noise
            - s * end**2
            + np.log(s)
            + last * np.log(noise)
            + (last - 1) * np.log(2 * np.pi)
        )
        ends.append(end + c)
        variances.append(1 / s + d)
    return total, np.array(ends), np.array(variances)


def test_innovations_follow_the_published_recursion():
    model = model_of("innovations")
    rng = np.random.default_rng(3)
    configs = rng.random((5, 2))
    curves = [rng.standard_normal(m) for m in (1, 4, 9, 4, 2)]
    x = np.array([[*configs[i], STEPS[j]] for i in range(5) for j in range(len(curves[i]))])
    values = model.vector.initial.copy()
    values[-4:] = 0.8, -0.3, 1.4, 0.2
    prior, _ = model.parts(values)
    total, ends, variances = backward_recursion(values, curves, prior)
    covariance = prior.covariance(configs, configs) + np.diag(variances)
    gap = ends - prior.mean(configs)
    expected = total - 0.5 * (
        gap @ np.linalg.solve(covariance, gap)
        + np.linalg.slogdet(covariance)[1]
        + 5 * np.log(2 * np.pi)
    )
    fitted = model.restore(
        Data(x, np.concatenate(curves)), {"parameters": model.vector.to_json(values), "explored": 1}
    )
    assert fitted.log_marginal_likelihood == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(fitted.ends.data.y[:, 0], ends, rtol=1e-8)
    np.testing.assert_allclose(fitted.ends.data.noise, variances, rtol=1e-8)


def test_a_fit_improves_and_other_records_are_refused(model, data):
    fitted = model.fit(data, np.random.default_rng(0))
    posterior = model.log_posterior(data)
    best = model.vector.from_json(fitted.state["parameters"])
    assert posterior.log_density(best) > posterior.log_density(model.vector.initial) + 1.0
    with pytest.raises(StudyError, match="fit again"):
        model.restore(data, {"parameters": {"mean": [0.0]}, "explored": 1})
    part = posterior.part(12)
    assert 5 <= part.size < posterior.size and np.isfinite(part.value_and_gradient(best)[0])


def test_draws_need_one_set_of_targets(model, data):
    fitted = model.fit(data, np.random.default_rng(0)).condition(Data(data.x[:1], np.zeros((1, 3))))
    with pytest.raises(ValueError, match="3 fantasies"):
        fitted.sample(data.x, 1, np.random.default_rng(0))


def test_starts_race_on_whole_curves_even_where_these_are_longer_than_asked_for(model):
    """A part is made of whole curves: here two of nine steps each, where 4 rows are asked for."""
    rows = np.concatenate(
        [
            np.column_stack([np.tile(row, (9, 1)), STEPS])
            for row in np.random.default_rng(7).random((3, 2))
        ]
    )
    whole = Data(rows, np.sin(4 * rows[:, 0]) + np.exp(-3 * rows[:, 2]))
    raced = replace(model, search=SearchSettings(race_rows=4, iterations=5)).fit(
        whole, np.random.default_rng(0)
    )
    assert np.isfinite(raced.log_marginal_likelihood)


def test_curves_at_the_same_steps_share_a_group_whatever_the_order_of_rows() -> None:
    steps = np.array([0.25, 0.5, 1.0])
    x = np.array([[0.1, 0.5], [0.2, 0.25], [0.1, 0.25], [0.2, 0.5], [0.3, 0.25]])
    observed = Observed.of(Data(x, np.arange(5.0)), steps)
    assert observed.configs.tolist() == [[0.1], [0.2], [0.3]]
    found = {tuple(group.steps.tolist()): group for group in observed.groups}
    assert set(found) == {(0, 1), (0,)}
    assert found[0, 1].rows.tolist() == [[2, 1], [0, 3]] and found[0, 1].curves.tolist() == [0, 1]
    assert found[0,].rows.tolist() == [[4]]


def test_known_noise_sets_curves_apart() -> None:
    x = np.array([[0.1, 1.0], [0.2, 1.0], [0.3, 1.0]])
    observed = Observed.of(Data(x, np.zeros(3), np.array([0.1, 0.2, 0.1])), np.array([1.0]))
    assert sorted(len(group.curves) for group in observed.groups) == [1, 2]
