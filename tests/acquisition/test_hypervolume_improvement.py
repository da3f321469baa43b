"""Log EHVI: against sums over all subsets in mpmath, Monte Carlo, finite differences, and the
battery."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations

import mpmath
import numpy as np
import pytest

from scrimp.acquisition.acquisition import Acquisition
from scrimp.acquisition.constrained import Constrained
from scrimp.acquisition.context import Context
from scrimp.acquisition.cost_aware import CostAware
from scrimp.acquisition.hypervolume_improvement import (
    LogHypervolumeImprovement,
    OpenRegion,
    log_hypervolume_improvement,
    thinned_front,
)
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.acquisition.pending import fantasise
from scrimp.errors import MethodError
from scrimp.fronts.boxes import open_boxes
from scrimp.fronts.hypervolume import default_reference, hypervolume
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.power_transform import YeoJohnson
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_transform import Standardise, Transformed
from scrimp.testing.acquisitions import AcquisitionBattery
from scrimp.testing.dense_posterior import DensePosterior, random_posterior


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
    def acquisition(self) -> Acquisition:
        return LogHypervolumeImprovement(tuple(models_of(2)), best=(-0.3, -np.inf))

    def test_ranking_does_not_depend_on_the_units_of_the_loss(self) -> None:
        """A goal is in the units of the metric."""


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


@dataclass(frozen=True)
class MeansOnly(DensePosterior):
    """A model that gives no variances."""

    def posterior(self, x, *, joint=False):
        return replace(super().posterior(x, joint=joint), variance=None)


def test_means_alone_are_refused():
    models = models_of(2)
    models["loss"] = MeansOnly(models["loss"].data, models["loss"].scales)
    bound = LogHypervolumeImprovement(tuple(models)).bind(models, Context(models["loss"].data.x))
    with pytest.raises(MethodError, match="standard deviations"):
        bound(np.zeros((1, 3)))
