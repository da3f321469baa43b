"""Log EHVI: against sums over all subsets in mpmath, Monte Carlo, finite differences, and the
battery."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import mpmath
import numpy as np
import pytest
from scipy.special import logsumexp

from scrimp.acquisition.acquisition import Acquisition, Context, fantasise
from scrimp.acquisition.hypervolume_improvement import (
    MAX_UNCERTAIN_ROWS,
    LogHypervolumeImprovement,
    OpenRegion,
    Strips,
    drawn_exactly,
    log_cleared,
    log_cleared_and_derivatives,
    log_hypervolume_improvement,
    thinned_front,
    uncertain_rows,
)
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.weighted import Constrained, CostAware
from scrimp.errors import MethodError
from scrimp.fronts.hypervolume import default_reference, hypervolume, open_boxes
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Hyperparameter, LogNormal
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_steps import Standardise, Winsorise, YeoJohnson
from scrimp.surrogates.target_transform import Transformed
from scrimp.testing.acquisitions import (
    AcquisitionBattery,
    SampledPosterior,
    random_posterior,
    rescaled,
)


def models_of(count: int):
    """A loss for each objective at the same inputs."""
    first = random_posterior(1)
    others = [random_posterior(seed) for seed in range(21, 20 + count)]
    rest = [replace(one, observations=Data(first.data.x, one.data.y)) for one in others]
    return {"loss": first} | {f"loss:{k}": model for k, model in enumerate(rest)}


class TestTwoObjectives(AcquisitionBattery):
    count = 2

    def acquisition(self) -> Acquisition:
        return LogHypervolumeImprovement(tuple(models_of(self.count)))

    def models(self):
        return models_of(self.count)


class TestFourObjectives(TestTwoObjectives):
    count = 4


class TestWithGoals(TestTwoObjectives):
    """The goal lies between the best loss, -1.16, and the reference, -0.81."""

    goal = -1.0

    def acquisition(self) -> Acquisition:
        return LogHypervolumeImprovement(tuple(models_of(2)), best=(self.goal, -np.inf))

    def test_ranking_does_not_depend_on_the_units_of_the_loss(self) -> None:
        """The goal is in the units of the metric, so it is scaled with it."""
        models, x = self.models(), self.rows(30)
        scaled = {**models, "loss": rescaled(models["loss"])}
        acquisition = LogHypervolumeImprovement(
            tuple(models), best=(10.0 * self.goal + 3.0, -np.inf)
        )
        scores = acquisition.bind(scaled, self.context(models))(x)
        np.testing.assert_allclose(scores, self.bound()(x) + np.log(10.0), rtol=1e-6)


class TestWithConstraintsAndCost(TestTwoObjectives):
    def acquisition(self) -> Acquisition:
        return CostAware(Constrained(LogHypervolumeImprovement(("loss", "loss:0"))))

    def models(self):
        models = models_of(2)
        others = [random_posterior(seed) for seed in (41, 42)]
        inputs = models["loss"].data.x
        limit, cost = (replace(one, observations=Data(inputs, one.data.y)) for one in others)
        return {**models, "constraint:memory": limit, "cost": cost}

    def context(self, models):
        return Context(models["loss"].data.x, feasible=models["constraint:memory"].data.y <= 0.0)


def by_subsets(means, stds, front, reference):
    """EHVI as the volume of the candidate's own region less what all subsets of the front share
    with it, in 120 digits."""

    @cache
    def improvement(mean, std, edge):
        z = (mpmath.mpf(edge) - mean) / std
        return std * (mpmath.npdf(z) + z * mpmath.ncdf(z))

    total = mpmath.mpf(0)
    for size in range(len(front) + 1):
        for chosen in combinations(range(len(front)), size):
            part = mpmath.mpf((-1) ** size)
            for j, (mean, std) in enumerate(zip(means, stds, strict=True)):
                part *= improvement(mean, std, reference[j])
                if size:
                    low = max(front[i][j] for i in chosen)
                    own = improvement(mean, std, reference[j])
                    part *= (own - improvement(mean, std, low)) / own
            total += part
    return mpmath.log(total)


@pytest.mark.parametrize("m", range(2, 7))
def test_agrees_with_the_sum_over_all_subsets(m):
    rng = np.random.default_rng(m)
    front = rng.random((4, m))
    reference = np.full(m, 1.1)
    region = OpenRegion.of(open_boxes(front, reference))
    for mean in (rng.random(m), rng.random(m) - 1.0, rng.random(m) + 3.0):
        std = rng.uniform(0.5, 1.0, m)
        value = log_hypervolume_improvement(mean[:, None], std[:, None], region)[0, 0]
        with mpmath.workdps(120):
            exact = float(by_subsets(mean, std, front, reference))
        assert value == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_is_the_average_of_what_draws_add():
    rng = np.random.default_rng(0)
    front, reference = np.array([[0.1, 0.8], [0.4, 0.5], [0.9, 0.2]]), np.ones(2)
    mean, std = np.array([0.4, 0.35]), np.array([0.2, 0.3])
    before = hypervolume(front, reference)
    gains = [
        hypervolume(np.vstack([front, mean + std * rng.standard_normal(2)]), reference) - before
        for _ in range(1500)
    ]
    region = OpenRegion.of(open_boxes(front, reference))
    value = np.exp(log_hypervolume_improvement(mean[:, None], std[:, None], region)[0, 0])
    assert value == pytest.approx(np.mean(gains), abs=4 * np.std(gains) / np.sqrt(1500))


def test_the_front_is_what_the_models_believe():
    models = models_of(3)
    rows = models["loss"].data.x
    losses = np.hstack([model.mean(rows) for model in models.values()])
    region = OpenRegion.of(open_boxes(losses, default_reference(losses)))
    x = np.random.default_rng(0).random((5, 3))
    posteriors = [model.posterior(x) for model in models.values()]
    expected = log_hypervolume_improvement(
        [one.mean[:, 0] for one in posteriors],
        [np.sqrt(one.variance) for one in posteriors],
        region,
    )
    bound = LogHypervolumeImprovement(tuple(models)).bind(models, Context(rows))
    np.testing.assert_allclose(bound(x), expected[:, 0], rtol=1e-9)


def test_joined_fantasies_have_what_each_has_alone():
    rng = np.random.default_rng(0)
    fronts = [rng.random((size, 3)) for size in (6, 1, 9)]
    regions = [OpenRegion.of(open_boxes(front, np.full(3, 1.1))) for front in fronts]
    means = [rng.normal(0.5, 1.0, (4, 3)) for _ in range(3)]
    means[0][0] = 40.0  # far off: narrow strips
    stds = [rng.uniform(1e-3, 1.0, 4) for _ in range(3)]
    joined = log_hypervolume_improvement(means, stds, OpenRegion.joined(regions))
    for place, region in enumerate(regions):
        own = log_hypervolume_improvement([mean[:, place] for mean in means], stds, region)
        assert joined[:, place].tolist() == own[:, 0].tolist()


def test_a_given_reference_counts():
    models = models_of(2)
    x, context = np.random.default_rng(0).random((20, 3)), Context(models["loss"].data.x)
    corner = LogHypervolumeImprovement(tuple(models), reference=(-5.0, -5.0))
    expected = sum(
        LogExpectedImprovement().alpha(one.mean[:, 0], np.sqrt(one.variance), np.array(-5.0))
        for one in (model.posterior(x) for model in models.values())
    )
    # nothing comes near: all that counts is beyond the reference in both
    np.testing.assert_allclose(corner.bind(models, context)(x), expected, rtol=1e-9)


@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (1, 3), (3, 3)])
def test_posterior_samples_are_combined_one_by_one(sizes):
    plain = models_of(2)
    samples = [
        tuple(replace(model, amplitude=1.0 + 0.5 * k) for k in range(size))
        for model, size in zip(plain.values(), sizes, strict=True)
    ]
    models = dict(zip(plain, map(SampledPosterior, samples), strict=True))
    context, x = Context(plain["loss"].data.x), np.random.default_rng(0).random((5, 3))
    acquisition = LogHypervolumeImprovement(tuple(models))
    alone = [
        acquisition.bind(
            dict(zip(plain, [own[k % len(own)] for own in samples], strict=True)), context
        )(x)
        for k in range(max(sizes))
    ]
    expected = logsumexp(alone, axis=0) - np.log(len(alone))
    np.testing.assert_allclose(acquisition.bind(models, context)(x), expected, rtol=1e-9)


def test_a_reference_beyond_the_cap_of_the_targets_counts_whole():
    """Models cap diverged targets; a box up to a reference above the cap keeps its whole volume."""
    rng = np.random.default_rng(0)
    x, places, reference = rng.random((20, 3)), rng.random((30, 3)), np.array([50.0, 80.0])
    targets = [np.sin(4.0 * x[:, 0]) + x[:, 1], np.cos(3.0 * x[:, 1]) + x[:, 2]]
    models, losses, means, stds = {}, [], [], []
    for name, y in zip(("loss", "loss:0"), targets, strict=True):
        steps = (Winsorise(), Standardise())
        model = Transformed(ExactGP.over((Column(),) * 3), steps).fit(Data(x, y), rng)
        assert model.target_units(model.model_units(Data(x[:1], np.array([50.0]))).y)[0] < 3.0
        posterior, centre, spread = model.posterior(places), y.mean(), y.std()
        models[name] = model
        losses.append(model.mean(x)[:, 0] * spread + centre)
        means.append(posterior.mean[:, 0] * spread + centre)
        stds.append(np.sqrt(posterior.variance) * spread)
    region = OpenRegion.of(open_boxes(np.stack(losses, axis=1), reference))
    expected = log_hypervolume_improvement(means, stds, region)[:, 0]
    bound = LogHypervolumeImprovement(tuple(models), reference=tuple(reference.tolist()))
    found = bound.bind(models, Context(x))(places)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_beyond_a_goal_nothing_counts():
    region = [
        OpenRegion.of(open_boxes(np.array([[0.5, 0.5]]), np.ones(2)), best)
        for best in (None, np.array([0.25, -np.inf]), np.array([0.25, 0.25]))
    ]
    there = [np.array([-3.0])] * 2, [np.array([1e-3])] * 2
    gains = [np.exp(log_hypervolume_improvement(*there, one)[0, 0]) for one in region]
    np.testing.assert_allclose(gains, [4 * 4 - 0.25, 0.75 * 4 - 0.25, 0.75**2 - 0.25], rtol=1e-6)


def test_reached_goals_leave_more_to_wish_for():
    models = models_of(2)
    context = Context(models["loss"].data.x)
    reached = LogHypervolumeImprovement(tuple(models), best=(1e6, 1e6)).bind(models, context)
    free = LogHypervolumeImprovement(tuple(models)).bind(models, context)
    x = np.random.default_rng(0).random((5, 3))
    np.testing.assert_allclose(reached(x), free(x))


def test_pending_inputs_belong_to_the_front_of_their_fantasy():
    models = models_of(2)
    context = Context(models["loss"].data.x)
    acquisition = LogHypervolumeImprovement(tuple(models))
    x = np.random.default_rng(0).random((200, 3))
    best = x[[acquisition.bind(models, context)(x).argmax()]]
    grown = {
        name: fantasise(model, best, 16, np.random.default_rng(k))
        for k, (name, model) in enumerate(models.items())
    }
    after = acquisition.bind(grown, replace(context, pending=best))
    assert after(best)[0] < acquisition.bind(models, context)(best)[0] - 2.0


def test_the_reference_lies_beyond_the_evaluated_front_whatever_is_pending():
    """A pending input that is believed to be far better in one metric and far worse in the other
    stretches the front, not the reference."""
    plain, pending = models_of(2), np.full((1, 3), 0.5)
    evaluated = plain["loss"].data.x
    models = {
        name: model.condition(Data(pending, np.array([end])))
        for (name, model), end in zip(plain.items(), (-9.0, 9.0), strict=True)
    }
    known = np.column_stack([model.mean(evaluated)[:, 0] for model in models.values()])
    given = LogHypervolumeImprovement(tuple(models), tuple(default_reference(known)))
    context, x = Context(evaluated, pending=pending), np.random.default_rng(0).random((20, 3))
    found = LogHypervolumeImprovement(tuple(models)).bind(models, context)(x)
    np.testing.assert_allclose(found, given.bind(models, context)(x))


def test_bent_targets_count_by_the_units_of_the_metric():
    """Of two losses that are alike, one is learned through a power: the scores hardly differ."""
    rng = np.random.default_rng(0)
    x = rng.random((30, 3))
    y = np.exp(2.0 * x[:, 0] + x[:, 1])
    plain = Transformed(ExactGP.over((Column(),) * 3), (Standardise(),)).fit(Data(x, y), rng)
    bent = Transformed(
        ExactGP.over((Column(),) * 3), (Standardise(), YeoJohnson(), Standardise())
    ).fit(Data(x, y), rng)
    other = Transformed(ExactGP.over((Column(),) * 3), (Standardise(),)).fit(
        Data(x, -y + x[:, 2]), rng
    )
    acquisition, places = LogHypervolumeImprovement(("loss", "loss:0")), rng.random((50, 3))
    scores = [
        acquisition.bind({"loss": one, "loss:0": other}, Context(x))(places)
        for one in (plain, bent)
    ]
    width = [np.log(model.target_slope(np.zeros(1)))[0] for model in (plain, other)]
    direct = np.exp(scores[0] - sum(width)).max()  # in standard deviations of the targets
    assert 0 < direct < 10
    assert np.corrcoef(scores)[0, 1] > 0.6


def test_all_equal_and_one_point():
    for rows in (np.full((1, 3), 0.5), np.full((4, 3), 0.5)):
        models = {
            name: replace(random_posterior(1), observations=Data(rows, np.zeros(len(rows))))
            for name in ("loss", "loss:0")
        }
        bound = LogHypervolumeImprovement(tuple(models)).bind(models, Context(rows))
        value, gradient = bound.value_and_gradient(np.random.default_rng(0).random((5, 3)))
        assert np.isfinite(value).all() and np.isfinite(gradient).all()


def test_a_long_front_is_thinned_to_what_adds_most():
    directions = np.abs(np.random.default_rng(0).standard_normal((60, 4)))
    front = 1.0 - directions / np.linalg.norm(directions, axis=1, keepdims=True)
    left = thinned_front(front, np.ones(4))
    assert len(left) == 40
    assert hypervolume(left, np.ones(4)) > 0.97 * hypervolume(front, np.ones(4))


def test_means_alone_are_refused():
    models = models_of(2)
    models["loss"] = replace(models["loss"], means_only=True)
    with pytest.raises(MethodError, match="standard deviations"):
        LogHypervolumeImprovement(tuple(models)).bind(models, Context(models["loss"].data.x))


CASES = [
    (mean, std, low, low + width)
    for mean in (-60.0, -3.0, 0.2, 10.0, 400.0)
    for std in (1.0, 0.3)
    for low, width in ((-1.0, 2.0), (0.0, 1e-3), (0.5, 1e-9), (-2.0, 0.05), (-np.inf, 0.0))
]


def exact(mean, std, low, high):
    """log(EI(high) - EI(low)) in 150 digits."""

    def improvement(edge):
        z = (edge - mpmath.mpf(mean)) / std
        return std * (mpmath.npdf(z) + z * mpmath.ncdf(z))

    if np.isinf(low):
        return mpmath.log(improvement(mpmath.mpf(1.0)))
    return mpmath.log(improvement(mpmath.mpf(high)) - improvement(mpmath.mpf(low)))


@pytest.mark.parametrize(("mean", "std", "low", "high"), CASES)
def test_agrees_with_mpmath(mean, std, low, high):
    high = 1.0 if np.isinf(low) else high
    strips = Strips.between(np.array([low]), np.array([high]))
    value, by_mean, by_std = log_cleared_and_derivatives(np.array([mean]), np.array([std]), strips)
    with mpmath.workdps(150):
        assert value[0, 0] == pytest.approx(float(exact(mean, std, low, high)), rel=1e-9, abs=1e-9)
        step = mpmath.mpf(10) ** -60
        slopes = [
            (exact(mean + a * step, std + b * step, low, high) - exact(mean, std, low, high)) / step
            for a, b in ((1, 0), (0, 1))
        ]
    np.testing.assert_allclose(
        [by_mean[0, 0], by_std[0, 0]], [float(s) for s in slopes], rtol=1e-8, atol=1e-12
    )


def test_strips_share_their_edges():
    lower, upper = np.array([-np.inf, 0.0, 1.0, -np.inf]), np.array([0.0, 1.0, 3.0, 3.0])
    strips = Strips.between(lower, upper)
    assert strips.edges.tolist() == [0.0, 1.0, 3.0]
    mean, std = np.array([0.5, -4.0]), np.array([1.0, 0.5])
    parts = np.exp(log_cleared(mean, std, strips))
    np.testing.assert_allclose(parts[:, :3].sum(axis=1), parts[:, 3], rtol=1e-12)
    for k in range(4):
        alone = Strips.between(lower[[k]], upper[[k]])
        np.testing.assert_allclose(np.exp(log_cleared(mean, std, alone))[:, 0], parts[:, k])


RNG = np.random.default_rng(5)
X = RNG.random((14, 2))
NAMES = ("loss", "loss:b")
REFERENCE = (2.5, 2.5)


def fitted(y):
    noise = Hyperparameter("noise", LogNormal(np.log(0.2), 0.1), bounds=(0.1, 0.4))
    gp = replace(ExactGP.over((Column(), Column())), noise=noise)
    model = Transformed(gp, (Standardise(),))
    return model.fit(Data(X, y), np.random.default_rng(0))


@pytest.fixture(scope="module")
def models():
    noise = 0.3 * RNG.standard_normal((14, 2))
    first = fitted(X[:, 0] ** 2 + X[:, 1] + noise[:, 0])
    return {"loss": first, "loss:b": fitted((X[:, 0] - 1) ** 2 + X[:, 1] + noise[:, 1])}


def test_draws_have_the_moments_of_the_joint_posterior_and_are_met_exactly(models):
    model, rows = models["loss"], np.concatenate([X[:5], RNG.random((2, 2))])
    drawn = drawn_exactly(model, rows, 4096, np.random.default_rng(0))
    values = drawn.data.y[-len(rows) :]
    wanted = model.posterior(rows, joint=True)
    assert np.abs(values.mean(axis=1) - wanted.mean[:, 0]).max() < 0.01
    assert np.abs(np.cov(values) - wanted.covariance).max() < 0.02
    exact = drawn_exactly(model, rows, 8, np.random.default_rng(0))
    assert np.abs(exact.mean(rows) - exact.data.y[-len(rows) :]).max() < 1e-2
    assert exact.posterior(rows).variance.max() < 1e-5


def test_the_average_over_draws_is_that_of_brute_force(models):
    """Improvements of joint draws over the evaluated, pending and candidate inputs, one by one."""
    pending, candidates = np.array([[0.4, 0.1]]), np.array([[0.5, 0.05], [0.9, 0.3], [0.1, 0.0]])
    rows = np.concatenate([X, pending])
    drawn = {
        name: drawn_exactly(model, rows, 256, np.random.default_rng(seed))
        for seed, (name, model) in enumerate(models.items())
    }
    context = Context(evaluated=X, pending=pending)
    score = LogHypervolumeImprovement(NAMES, REFERENCE).bind(drawn, context)
    found = np.exp(score(candidates))
    reference, draws = np.array(REFERENCE), 1500
    rng = np.random.default_rng(9)
    every = np.concatenate([rows, candidates])
    losses = np.stack(
        [m.target_units(m.sample(every, draws, rng)) for m in models.values()], axis=-1
    )
    gains = np.empty((draws, len(candidates)))
    for draw, values in enumerate(losses):
        before = hypervolume(values[: len(rows)], reference)
        for place, own in enumerate(values[len(rows) :]):
            gains[draw, place] = (
                hypervolume(np.vstack([values[: len(rows)], own]), reference) - before
            )
    expected, error = gains.mean(axis=0), gains.std(axis=0) / np.sqrt(draws)
    assert (np.abs(found - expected) < 4 * error + 0.1 * expected).all()
    plain = LogHypervolumeImprovement(NAMES, REFERENCE).bind(models, Context(evaluated=X))
    assert (np.exp(plain(candidates)) > 1.2 * expected).any()  # a front of means promises more


def test_the_gradient_is_that_of_finite_differences(models):
    drawn = {
        name: drawn_exactly(model, X[:6], 4, np.random.default_rng(1))
        for name, model in models.items()
    }
    score = LogHypervolumeImprovement(NAMES, REFERENCE).bind(drawn, Context(evaluated=X))
    x, step = np.random.default_rng(2).random((4, 2)), 1e-6
    _, gradient = score.value_and_gradient(x)
    for column in range(2):
        moved = np.zeros(2)
        moved[column] = step
        slope = (score(x + moved) - score(x - moved)) / (2 * step)
        assert np.allclose(gradient[:, column], slope, rtol=1e-4, atol=1e-5)


def test_only_what_may_be_on_a_front_is_drawn(models):
    repeated = np.concatenate([X, X])
    rows = uncertain_rows(list(models.values()), repeated, np.random.default_rng(0))
    assert 0 < len(rows) <= min(len(X), MAX_UNCERTAIN_ROWS)
    assert len(np.unique(rows, axis=0)) == len(rows)
    worst = X[np.argmax(X[:, 1])]
    assert not (rows == worst).all(axis=1).any()
