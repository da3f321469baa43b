"""The maximiser: against brute force in continuous and mixed domains, and in what it may never
return."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import qmc

from scrimp.acquisition.acquisition import BoundAcquisition, Context
from scrimp.acquisition.domain import INACTIVE_VALUE, Condition, Domain, contains_rows
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
)
from scrimp.acquisition.maximize import (
    AscentSettings,
    MaximizeSettings,
    Search,
    _candidates,
    _Climb,
    _propose,
    _solved,
    ascend,
    maximize_acquisition,
)
from scrimp.gp.columns import Column
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import random_posterior

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
    return function(np.where(domain.active(rows), rows, INACTIVE_VALUE)).max()


@pytest.mark.parametrize("seed", range(8))
def test_reaches_the_best_of_a_mixed_and_conditional_domain(seed):
    found = maximize_acquisition(Score(mixed_score), MIXED, np.random.default_rng(seed))
    assert found.scores[0] >= exhaustive_best(MIXED, mixed_score) - 1e-4
    assert set(found.x[:, 1]) <= set(KIND.values)
    assert set(found.x[:, 2]) <= set(TENTHS.values)
    assert set(found.x[:, 3]) <= set(MANY.values)
    assert (found.x[found.x[:, 1] == 0.0, 0] == INACTIVE_VALUE).all()


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


@pytest.mark.parametrize("seed", range(4))
def test_never_returns_the_discrete_values_of_a_cell(seed):
    """The whole score lies in one cell, which candidates, anchors and moves would all find."""
    domain, rng = Domain((KIND, Column(), TENTHS)), np.random.default_rng(seed)
    best = np.array([[0.5, 0.3, 0.7]])

    def score(x):
        return -10 * np.abs(x[:, 0] - 0.5) - np.abs(x[:, 2] - 0.7) - (x[:, 1] - 0.3) ** 2

    found = maximize_acquisition(Score(score), domain, rng, Search(anchors=best, cells=best))
    assert not contains_rows(found.x[:, [0, 2]], best[:, [0, 2]]).any()
    np.testing.assert_allclose(found.x[0, [0, 1]], [0.5, 0.3], atol=1e-3)
    assert abs(found.x[0, 2] - 0.7) == pytest.approx(0.1)


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


def test_starts_that_crowd_around_one_maximum_leave_room_for_the_next():
    score = Score(lambda x: np.cos(4.0 * np.pi * x[:, 0]) * (1.0 - 0.1 * x[:, 0]))
    search = Search(settings=MaximizeSettings(starts=2))
    found = maximize_acquisition(score, Domain((Column(),)), np.random.default_rng(0), search)
    np.testing.assert_allclose(found.x[:, 0], [0.0, 0.5], atol=0.01)


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


TIGHT = AscentSettings(rounds=400, gain=1e-12)


def counted(function):
    def call(x):
        call.sizes.append(len(x))
        return function(x)

    call.sizes = []
    return call


def lbfgs(function, x):
    """Minus the score by SciPy from one start."""

    def loss(row):
        value, gradient = function(row[None])
        return -value[0], -gradient[0]

    result = minimize(
        loss,
        x,
        jac=True,
        bounds=[(0.0, 1.0)] * len(x),
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-15},
    )
    return result.x, -result.fun


@pytest.mark.parametrize("seed", range(5))
def test_finds_the_maximum_of_a_concave_quadratic_in_the_box(seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((5, 5))
    curvature, centre = (
        root @ root.T + 0.1 * np.eye(5),
        rng.uniform(-0.5, 1.5, 5),
    )  # the free maximum may lie outside

    def score(x):
        gap = x - centre
        return -0.5 * ((gap @ curvature) * gap).sum(axis=1), -gap @ curvature

    x, value = ascend(score, rng.random((4, 5)), np.ones((4, 5), dtype=bool), np.ones(5), TIGHT)
    best_x, best = lbfgs(score, np.full(5, 0.5))
    np.testing.assert_allclose(value, best, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(x, np.tile(best_x, (4, 1)), atol=1e-4)


def test_follows_a_curved_valley():
    def score(x):
        a, b = 4 * x[:, 0] - 2, 4 * x[:, 1] - 2
        value = -((1 - a) ** 2 + 100 * (b - a * a) ** 2)
        by_a, by_b = 2 * (1 - a) + 400 * a * (b - a * a), -200 * (b - a * a)
        return value, 4 * np.stack([by_a, by_b], axis=1)

    starts = np.random.default_rng(0).random((8, 2))
    x, value = ascend(score, starts, np.ones((8, 2), dtype=bool), np.full(2, 0.5), TIGHT)
    np.testing.assert_allclose(x, 0.75, atol=1e-4)
    assert (value > -1e-8).all()


@pytest.mark.parametrize("seed", range(6))
def test_climbs_log_improvement_as_high_as_scipy_does_from_the_same_start(seed):
    model, rng = random_posterior(seed, n=30, d=4), np.random.default_rng(seed)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    starts = rng.random((10, 4))
    function = counted(score.value_and_gradient)
    x, value = ascend(
        function, starts, np.ones((10, 4), dtype=bool), model.length_scales, AscentSettings()
    )
    np.testing.assert_allclose(score(x), value, rtol=1e-9)
    ours, theirs = (
        np.sort(value),
        np.sort([lbfgs(score.value_and_gradient, start)[1] for start in starts]),
    )
    assert ours[-1] > theirs[-1] - 0.01
    assert np.median(ours) > np.median(theirs) - 0.5
    assert len(function.sizes) <= 61  # one call per round serves all starts
    assert function.sizes[-1] < 10  # those that are done have left the batch


def test_held_columns_do_not_move_and_rows_without_free_columns_stay():
    def score(x):
        return x.sum(axis=1), np.ones_like(x)

    free = np.array([[True, False], [False, False], [True, True]])
    x, value = ascend(score, np.full((3, 2), 0.3), free, np.ones(2), TIGHT)
    np.testing.assert_allclose(x, [[1.0, 0.3], [0.3, 0.3], [1.0, 1.0]])
    np.testing.assert_allclose(value, [1.3, 0.6, 2.0])


def test_never_goes_down_nor_leaves_the_cube_and_bears_infinite_scores():
    rng = np.random.default_rng(0)

    def score(x):
        rough = np.sin(40 * x).sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            value = np.where(x[:, 0] > 0.6, -np.inf, rough)
        return value, np.where(x[:, :1] > 0.6, np.nan, 40 * np.cos(40 * x))

    starts = rng.random((20, 3))
    before = score(starts)[0]
    x, value = ascend(
        score, starts, np.ones((20, 3), dtype=bool), np.full(3, 0.1), AscentSettings()
    )
    assert (value >= before).all()
    assert ((x >= 0.0) & (x <= 1.0)).all()
    np.testing.assert_array_equal(score(x)[0], value)


@pytest.mark.parametrize(
    ("angle", "steep", "growth"), [(0.78, 100.0, 1.0), (0.6, 100.0, 5.0), (0.78, 1e10, 0.1)]
)
def test_climbs_a_ridge_that_is_nowhere_concave_along_its_length(angle, steep, growth):
    along, across = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])

    def score(x):
        a, b = (x - 0.1) @ along, (x - 0.1) @ across
        rise = np.exp(growth * a)
        by_x = (growth * rise)[:, None] * along - (2.0 * steep * b)[:, None] * across
        return rise - steep * b**2, by_x

    starts, free = np.array([[0.1, 0.1], [0.11, 0.1]]), np.ones((2, 2), dtype=bool)
    longer = AscentSettings(rounds=200)  # the curvature falls at each step, until it is singular
    x, value = ascend(score, starts, free, np.full(2, 0.01), longer)
    np.testing.assert_allclose(score(x)[0], value, rtol=1e-9)
    assert (value > score(starts)[0]).all()
    assert ((x >= 0.0) & (x <= 1.0)).all()


def test_a_singular_curvature_gives_the_shortest_step_and_others_theirs():
    matrices, right = np.array([np.ones((2, 2)), 2.0 * np.eye(2)]), np.array([[1.0, 1.0]] * 2)
    np.testing.assert_allclose(_solved(matrices, right), np.full((2, 2), 0.5))


def test_gives_the_same_answer_whatever_else_is_in_the_batch():
    model = random_posterior(0, n=30, d=4)
    score = LogExpectedImprovement().bind({"loss": model}, Context(model.data.x))
    starts, free = np.random.default_rng(1).random((6, 4)), np.ones((6, 4), dtype=bool)
    together, _ = ascend(
        score.value_and_gradient, starts, free, model.length_scales, AscentSettings()
    )
    alone = [
        ascend(
            score.value_and_gradient, starts[[i]], free[[i]], model.length_scales, AscentSettings()
        )[0][0]
        for i in range(6)
    ]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_a_step_is_the_best_inside_the_cube_where_one_column_meets_its_bound():
    """The unbounded step (1, -0.2) leaves the cube; with the first column at its bound, the other
    one has to turn around."""
    curvature = np.array([[2.0, 1.2], [1.2, 1.5]])
    gradient, start, scales = curvature @ [1.0, -0.2], np.full((1, 2), 0.5), np.ones(2)
    state = _Climb(
        start,
        np.zeros(1),
        gradient[None],
        np.ones((1, 2), dtype=bool),
        curvature[None],
        np.ones(1),
        np.zeros(1, dtype=bool),
    )
    best = minimize(
        lambda s: 0.5 * s @ curvature @ s - gradient @ s,
        np.zeros(2),
        bounds=[(-0.5, 0.5)] * 2,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-12},
    ).x
    np.testing.assert_allclose(_propose(state, scales, 10.0)[0], 0.5 + best, atol=1e-6)
    np.testing.assert_allclose(best, [0.5, 0.2], atol=1e-6)
    short = _propose(state, scales, 0.1)[0] - 0.5
    assert np.linalg.norm(short) == pytest.approx(0.1)


def test_candidates_lie_near_and_far_around_the_anchors():
    """A quarter is drawn around the anchors, at distances from 0.003 to 0.5 scales."""
    domain, anchors = Domain((Column(),) * 3), np.full((2, 3), 0.5)
    search = Search(anchors=anchors, scales=np.full(3, 0.4))
    rows = _candidates(domain, np.random.default_rng(0), search, joint=False)
    assert len(rows) == 512
    apart = np.abs(rows[-128:] - 0.5).max(axis=1) / 0.4
    assert (apart < 0.01).sum() > 10 and (apart > 0.2).sum() > 10
    assert np.median(apart) < 0.15 and np.abs(rows[:384] - 0.5).max(axis=1).mean() > 0.3
