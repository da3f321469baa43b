"""The maximiser: against brute force in continuous and mixed domains, and in what it may never
return."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc

from scrimp.acquisition.acquisition import BoundAcquisition
from scrimp.acquisition.confidence import LowerConfidenceBound
from scrimp.acquisition.context import Context
from scrimp.acquisition.domain import INACTIVE, Condition, Domain, contains_rows
from scrimp.acquisition.improvement import ExpectedImprovement, LogExpectedImprovement
from scrimp.acquisition.maximize import MaximizeSettings, Search, maximize_acquisition
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.dense_posterior import random_posterior

KIND = Column((0.0, 0.5, 1.0), ordered=False)
TENTHS = Column(tuple(np.linspace(0, 1, 11).tolist()))
MANY = Column(tuple(np.linspace(0, 1, 64).tolist()))


class Score(BoundAcquisition):
    """A known function with a gradient by finite differences, which counts its calls."""

    def __init__(self, function):
        self.function, self.rows, self.calls = function, 0, 0

    def __call__(self, x):
        self.rows, self.calls = self.rows + len(x), self.calls + 1
        return self.function(x)

    def value_and_gradient(self, x):
        gradient = np.zeros_like(x)
        for j in range(x.shape[1]):
            shift = 1e-6 * np.eye(x.shape[1])[j]
            with np.errstate(invalid="ignore"):
                gradient[:, j] = (self.function(x + shift) - self.function(x - shift)) / 2e-6
        return self(x), gradient


def matern_posterior(seed, n, d):
    """A Matern process with random length-scales; every other one saw its inputs crowd around the
    best, as a study does."""
    rng = np.random.default_rng(seed)
    model = ExactGP.over((Column(),) * d)
    scales = np.exp(rng.uniform(np.log(0.15), np.log(1.0), d)) * np.sqrt(d / 6)
    state = {"parameters": model.vector.to_json(model.vector.initial), "explored": n}
    state["parameters"] |= {"length_scale": scales.tolist(), "noise": [1e-4]}
    x = rng.random((n, d))
    prior = model.restore(Data(x[:1], np.zeros(1)), state)
    if seed % 2:
        best, crowd = x[prior.sample(x, 1, rng)[0].argmin()], n // 2
        x[crowd:] = np.clip(
            best
            + rng.standard_normal((n - crowd, d)) * 10.0 ** rng.uniform(-2, -0.3, (n - crowd, 1)),
            0,
            1,
        )
    y = prior.sample(x, 1, rng)[0]
    return model.restore(Data(x, (y - y.mean()) / y.std()), state), scales


def brute_force(score, model, scales, rng, starts=18):
    """The best of many L-BFGS-B runs, from the best of 2,048 Sobol points, the best of 2,048 near
    good inputs, and others."""
    x, y = model.data.x, model.data.y
    d = x.shape[1]
    everywhere = qmc.Sobol(d, seed=int(rng.integers(2**31))).random(2048)
    good = x[np.argsort(y)[:8]][rng.integers(0, min(8, len(x)), 2048)]
    near = np.clip(
        good + 10.0 ** rng.uniform(-3, -0.3, (2048, 1)) * scales * rng.standard_normal((2048, d)),
        0,
        1,
    )
    best = -np.inf
    for rows in (everywhere, near):
        order = np.argsort(-score(rows))
        for start in rows[
            np.concatenate([order[: starts // 3], rng.choice(order[:500], starts // 6)])
        ]:
            best = max(best, climb(score, start, scales))
    return best


def climb(score, start, scales):
    def loss(u):
        value, gradient = score.value_and_gradient((u * scales)[None])
        return -value[0], -gradient[0] * scales

    bounds = [(0.0, 1.0 / scale) for scale in scales]
    return -minimize(
        loss, start / scales, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": 200}
    ).fun


def test_reaches_what_brute_force_reaches_in_95_of_100_posteriors():
    """40 posteriors, 20 to 100 observations in 2, 6 and 10 dimensions; brute force climbs 18 times
    from 4,096 points."""
    short = []
    for seed in range(40):
        n, d = [(20, 6), (60, 6), (100, 6), (40, 2), (50, 10)][seed % 5]
        model, scales = matern_posterior(seed, n, d)
        score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
        search = Search(model.data.x[np.argsort(model.data.y)[:5]], model.data.x, scales)
        found = maximize_acquisition(
            score, Domain((Column(),) * d), np.random.default_rng(seed), search
        )
        short.append(
            brute_force(score, model, scales, np.random.default_rng(seed + 1000)) - found.scores[0]
        )
    assert (np.array(short) < 0.01).mean() >= 0.95, np.round(short, 3)


@pytest.mark.parametrize("acquisition", [ExpectedImprovement(), LowerConfidenceBound()])
@pytest.mark.parametrize("seed", range(3))
def test_scores_in_any_units_are_maximised(acquisition, seed):
    model, scales = matern_posterior(seed, 40, 4)
    score = acquisition.bind({"loss": model}, Context(model.data.x))
    search = Search(model.data.x[np.argsort(model.data.y)[:5]], model.data.x, scales)
    found = maximize_acquisition(
        score, Domain((Column(),) * 4), np.random.default_rng(seed), search
    )
    best = brute_force(score, model, scales, np.random.default_rng(seed))
    assert found.scores[0] >= best - 1e-3 * abs(best)


MIXED = Domain((Column(), KIND, TENTHS, MANY), (Condition(0, parent=1, values=(0.5, 1.0)),))


def mixed_score(x):
    """Smooth in x0, rough in the category; x2 and x3 interact."""
    kind = np.round(2 * x[:, 1]).astype(int)
    level = np.array([0.0, -0.2, 0.3])[kind]
    return (
        level
        - 2 * (x[:, 0] - 0.23) ** 2
        - 3 * (x[:, 2] - 0.6 * x[:, 3]) ** 2
        - (x[:, 3] - np.array([0.9, 0.1, 0.4])[kind]) ** 2
    )


def exhaustive_best(domain, function, points=400):
    """The best over all discrete values and a fine grid of the single continuous column."""
    grids = [
        np.linspace(0, 1, points) if c.values is None else np.array(c.values)
        for c in domain.columns
    ]
    rows = np.stack([g.ravel() for g in np.meshgrid(*grids, indexing="ij")], axis=1)
    return function(np.where(domain.active(rows), rows, INACTIVE)).max()


@pytest.mark.parametrize("seed", range(8))
def test_reaches_the_best_of_a_mixed_and_conditional_domain(seed):
    found = maximize_acquisition(Score(mixed_score), MIXED, np.random.default_rng(seed))
    assert found.scores[0] >= exhaustive_best(MIXED, mixed_score) - 1e-4
    assert set(found.x[:, 1]) <= set(KIND.values)
    assert set(found.x[:, 2]) <= set(TENTHS.values)
    assert set(found.x[:, 3]) <= set(MANY.values)
    assert (found.x[found.x[:, 1] == 0.0, 0] == INACTIVE).all()


def test_never_rounds_a_continuous_optimum():
    """Between the tenths the score peaks at 0.25; the best legal value is the far one, which
    rounding would miss."""

    def score(x):
        return (
            np.exp(-((x[:, 0] - 0.25) ** 2) / 1e-4)
            + 0.5 * np.exp(-((x[:, 0] - 0.8) ** 2) / 1e-2)
            + 0 * x[:, 1]
        )

    found = maximize_acquisition(Score(score), Domain((TENTHS, Column())), np.random.default_rng(0))
    assert found.x[0, 0] == pytest.approx(0.8)


def test_switches_a_parent_on_to_reach_its_child():
    domain = Domain((KIND, Column(), MANY, MANY), (Condition(1, parent=0, values=(1.0,)),))

    def score(x):
        return (
            np.where(x[:, 0] == 1.0, 1.0 - 4 * (x[:, 1] - 0.9) ** 2, 0.2)
            - 0.1 * x[:, 2]
            - 0.1 * x[:, 3]
        )

    found = maximize_acquisition(
        Score(score),
        domain,
        np.random.default_rng(0),
        Search(settings=MaximizeSettings(candidates=4, starts=1)),
    )
    assert found.x[0, 0] == 1.0
    assert found.x[0, 1] == pytest.approx(0.9, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_never_returns_an_excluded_row(seed):
    domain, rng = Domain((KIND, TENTHS, TENTHS, MANY)), np.random.default_rng(seed)
    excluded = np.zeros((0, 4))
    for _ in range(40):
        found = maximize_acquisition(
            Score(lambda x: -x.sum(axis=1)),
            domain,
            rng,
            Search(excluded=excluded, anchors=excluded[:3]),
        )
        assert not contains_rows(found.x, excluded).any()
        excluded = np.concatenate([excluded, found.x[:1]])
    assert len(np.unique(excluded, axis=0)) == 40
    assert excluded.sum(axis=1).max() <= 0.5  # the forty best of 23,232, nearly


def test_repeats_are_allowed_when_nothing_is_excluded():
    evaluated = np.array([[0.0, 0.0]])
    found = maximize_acquisition(
        Score(lambda x: -x.sum(axis=1)),
        Domain((TENTHS, TENTHS)),
        np.random.default_rng(0),
        Search(evaluated),
    )
    np.testing.assert_array_equal(found.x[0], evaluated[0])


def test_a_climb_that_ends_on_an_excluded_row_gives_way_to_its_start():
    peak = np.array([[0.3, 0.7]])
    score = Score(lambda x: -((x - peak) ** 2).sum(axis=1))
    settings = MaximizeSettings(starts=1)
    found = maximize_acquisition(
        score,
        Domain((Column(), Column())),
        np.random.default_rng(0),
        Search(excluded=peak, settings=settings),
    )
    assert len(found.x) == 1
    assert 1e-6 < np.abs(found.x[0] - peak[0]).max() < 0.1


def test_a_small_domain_is_exhausted_row_by_row():
    domain = Domain((KIND, Column((0.0, 1.0))), (Condition(1, parent=0, values=(0.0,)),))
    seen = np.zeros((0, 2))
    for _ in range(4):
        found = maximize_acquisition(
            Score(lambda x: x.sum(axis=1)), domain, np.random.default_rng(0), Search(excluded=seen)
        )
        seen = np.concatenate([seen, found.x[:1]])
    assert {tuple(row) for row in seen} == {tuple(row) for row in domain.rows()}
    assert (
        len(
            maximize_acquisition(
                Score(lambda x: x.sum(axis=1)),
                domain,
                np.random.default_rng(0),
                Search(excluded=seen),
            ).x
        )
        == 0
    )


def test_a_pool_is_scored_whole_in_chunks_and_without_what_is_excluded():
    pool = np.random.default_rng(0).random((1000, 3))
    score, order = Score(lambda x: x[:, 0]), np.argsort(-pool[:, 0])
    search = Search(excluded=pool[order[:2]], settings=MaximizeSettings(chunk=300))
    found = maximize_acquisition(
        score, Domain((Column(),) * 3, pool=pool), np.random.default_rng(0), search
    )
    np.testing.assert_array_equal(found.x, pool[order[2:12]])
    assert (score.calls, score.rows) == (4, 998)


def test_rows_that_cannot_be_scored_come_last():
    score = Score(
        lambda x: np.where(x[:, 0] < 0.9, np.nan, np.where(x[:, 1] < 0.5, -np.inf, x.sum(axis=1)))
    )
    found = maximize_acquisition(score, Domain((TENTHS, TENTHS)), np.random.default_rng(0))
    np.testing.assert_allclose(found.x[0], 1.0)
    assert (
        len(
            maximize_acquisition(
                Score(lambda x: np.full(len(x), -np.inf)),
                Domain((Column(),)),
                np.random.default_rng(0),
            ).x
        )
        > 0
    )


def test_the_same_generator_gives_the_same_rows():
    model = random_posterior(0, n=20)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    domain = Domain((Column(), TENTHS, Column()))
    first, second = (
        maximize_acquisition(score, domain, np.random.default_rng(5)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.x, second.x)


def test_competitors_come_sorted_and_distinct():
    model, scales = matern_posterior(3, 40, 3)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    found = maximize_acquisition(
        score, Domain((Column(),) * 3), np.random.default_rng(0), Search(scales=scales)
    )
    assert len(found.x) > 1
    assert (np.diff(found.scores) <= 0.0).all()
    np.testing.assert_allclose(score(found.x), found.scores, rtol=1e-6)
    assert not any(
        contains_rows(found.x[[i]], np.delete(found.x, i, axis=0))[0] for i in range(len(found.x))
    )


def test_costs_one_large_call_and_few_small_ones():
    model, scales = matern_posterior(1, 50, 6)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    sizes = []

    class Counted(BoundAcquisition):
        def __call__(self, x):
            sizes.append(len(x))
            return score(x)

        def value_and_gradient(self, x):
            sizes.append(len(x))
            return score.value_and_gradient(x)

    maximize_acquisition(
        Counted(),
        Domain((Column(),) * 6),
        np.random.default_rng(0),
        Search(model.data.x[:5], model.data.x, scales),
    )
    assert sizes[0] == 768
    assert max(sizes[1:]) <= 10
    assert len(sizes) <= 62
