import numpy as np
import pytest

from scrimp.errors import MethodError
from scrimp.gp.budget_priors import RESOURCE_KERNELS, InverseLargest, ShiftedBudget, budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.decay import same_rows
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.kernel import Scaled
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.testing.models import KernelBattery, SurrogateBattery, close, numerical_gradient, rows

COLUMNS = (Column(), Column(), Column((0.0, 0.5, 1.0), ordered=False))
FOLDS = 9.0


@pytest.fixture
def x():
    rng = np.random.default_rng(3)
    configs = rows(COLUMNS, 6, rng)
    budgets = np.array([1.0, 3.0, 9.0]) / 9.0
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0), (3, 0), (4, 0), (4, 1), (5, 0)]
    return np.array([[*configs[i], budgets[j]] for i, j in places])


@pytest.fixture(params=RESOURCE_KERNELS)
def name(request):
    return request.param


@pytest.fixture
def prior(name):
    return moved(budget_prior(name, COLUMNS, folds=FOLDS))


@pytest.fixture(params=[False, True], ids=["plain", "warped"])
def any_prior(name, request):
    return moved(budget_prior(name, COLUMNS, folds=FOLDS, warped=request.param))


def moved(start):
    """The prior with parameters away from where they start."""
    vector = ParameterVector(start.parameters)
    shifted = vector.encode(vector.initial) + np.random.default_rng(1).uniform(
        -0.5, 0.5, vector.size
    )
    return start.with_values(np.clip(vector.decode(shifted), vector.lower, vector.upper))


def values_by_name(prior):
    return ParameterVector(prior.parameters).to_json(prior.values)


def matern(difference, scales):
    s = np.sqrt(5.0 * sum(d / scale**2 for d, scale in zip(difference, scales, strict=True)))
    return (1.0 + s + s**2 / 3.0) * np.exp(-s)


def squares(x1, x2, budget=False):
    """Squared differences column by column; categories are 0 or 1 apart."""
    parts = [(x1[:, None, k] - x2[None, :, k]) ** 2 for k in (0, 1)]
    parts.append((x1[:, None, 2] != x2[None, :, 2]).astype(float))
    return [*parts, (x1[:, None, 3] - x2[None, :, 3]) ** 2] if budget else parts


def dense(name, v, x1, x2):
    """Mean of x1 and covariance of x1 with x2, entry by entry from the published formulas."""
    one = {key: value[0] for key, value in v.items()}
    rho, other = x1[:, 3], x2[:, 3]
    if name.startswith("matern52"):
        if name.endswith("warp"):
            a, b = one["warping_a"], one["warping_b"]

            def bend(r):
                r = 1e-9 + (1 - 2e-9) * r
                return 1 - (1 - r**a) ** b

            x1, x2 = x1.copy(), x2.copy()
            x1[:, 3], x2[:, 3] = bend(x1[:, 3]), bend(x2[:, 3])
        scales = v["length_scale"]
        return np.full(len(x1), one["mean"]), one["output_scale"] * matern(
            squares(x1, x2, budget=True), scales
        )
    if name == "cross-validation":
        left = one["left.output_scale"] * matern(squares(x1, x2), v["left.length_scale"])
        right = one["right.output_scale"] * matern(squares(x1, x2), [one["right.length_scale"]] * 3)
        return np.full(len(x1), one["mean"]), left + right / (
            FOLDS * np.maximum(rho[:, None], other)
        )
    if "decay_size" not in one:
        raise AssertionError(f"write the formula of {name!r} in dense()")
    plain = one["output_scale"] * matern(squares(x1, x2), v["length_scale"])
    m, g = one["mean"], one["decay_size"]
    d = {"exp-decay-sum": 0.0, "freeze-thaw": 0.0, "exp-decay-delta1": 1.0}.get(
        name, one.get("decay_share")
    )
    beta = one["decay_shape"] / one["decay_rate"]

    def kappa(r):
        return (beta / (beta + r)) ** one["decay_shape"]

    both = kappa(rho[:, None] + other)
    deviation = (g - d * m) ** 2 * (both - np.outer(kappa(rho), kappa(other)))
    if name == "freeze-thaw":
        deviation = deviation * (x1[:, None, :3] == x2[None, :, :3]).all(-1)
    factor = 1 - d * (kappa(rho)[:, None] + kappa(other) - d * both)
    return m + kappa(rho) * (g - d * m), plain * factor + deviation


def test_is_the_published_formula(name, prior, x):
    mean, covariance = dense(name, values_by_name(prior), x, x)
    np.testing.assert_allclose(prior.mean(x), mean, rtol=1e-12)
    np.testing.assert_allclose(prior.covariance(x, x.copy()), covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(prior.covariance(x, x), covariance, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(prior.variance(x), covariance.diagonal(), rtol=1e-8)
    np.testing.assert_allclose(
        prior.covariance(x[:4], x[4:]), covariance[:4, 4:], rtol=1e-8, atol=1e-10
    )
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def test_pullback_to_parameters(any_prior, x):
    prior = any_prior
    rng = np.random.default_rng(0)
    d_mean, d_covariance = rng.standard_normal(len(x)), rng.standard_normal((len(x), len(x)))
    mean, covariance, pull = prior.value_and_pullback(x)
    np.testing.assert_allclose(mean, prior.mean(x), rtol=1e-12)
    np.testing.assert_allclose(covariance, prior.covariance(x, x), rtol=1e-12, atol=1e-14)

    def total(values):
        moved = prior.with_values(values)
        return float(d_mean @ moved.mean(x) + (d_covariance * moved.covariance(x, x)).sum())

    covariance[:] = np.nan  # it is the caller's to overwrite
    close(pull(d_mean, d_covariance), numerical_gradient(total, prior.values))


def test_pullback_to_the_first_argument(any_prior, x):
    prior = any_prior
    rng = np.random.default_rng(0)
    first, second = x[:4].copy(), x[3:]
    d_mean, d_variance, d_cross = (
        rng.standard_normal(4),
        rng.standard_normal(4),
        rng.standard_normal((4, len(second))),
    )
    mean, variance, cross, pull = prior.cross_and_pullback(first, second)
    np.testing.assert_allclose(mean, prior.mean(first), rtol=1e-12)
    np.testing.assert_allclose(variance, prior.variance(first), rtol=1e-12)
    np.testing.assert_allclose(cross, prior.covariance(first, second), rtol=1e-12, atol=1e-14)
    gradient = pull(d_mean, d_variance, d_cross)

    def total(z, column):
        moved = first.copy()
        moved[:, column] = z
        return float(
            d_mean @ prior.mean(moved)
            + d_variance @ prior.variance(moved)
            + (d_cross * prior.covariance(moved, second)).sum()
        )

    # A step away from an equal row is a jump for separate curves. No search moves along the budget.
    moving = () if getattr(prior, "separate", False) else (0, 1)
    for column in moving:
        close(
            gradient[:, column],
            numerical_gradient(lambda z, c=column: total(z, c), first[:, column]),
        )
    assert (gradient[:, 2] == 0.0).all()


def test_matrices_are_those_of_equal_rows():
    x1, x2 = np.array([[0.1, 0.2], [0.3, 0.4]]), np.array([[0.3, 0.4], [0.1, 0.4], [0.1, 0.2]])
    assert same_rows(x1, x2).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_unknown_names_are_refused():
    with pytest.raises(MethodError, match="choose one of exp-decay-sum"):
        budget_prior("exp-decay", COLUMNS)


class TestInverseLargest(KernelBattery):
    @pytest.fixture
    def columns(self):
        return (Column(),)

    @pytest.fixture
    def kernel(self):
        return Scaled(InverseLargest(5.0))

    @pytest.fixture
    def x(self, columns, rng):
        return rows(columns, 12, rng)  # none twice: at equal budgets there is a kink


class TestShiftedBudget(SurrogateBattery):
    @pytest.fixture
    def columns(self):
        return (Column(), Column(), Column((0.1, 0.3, 1.0)))

    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP(ShiftedBudget(budget_prior("exp-decay-sum", columns[:-1]), 0.02))


@pytest.mark.parametrize("name", RESOURCE_KERNELS)
def test_is_the_inner_prior_elsewhere(name):
    rng = np.random.default_rng(0)
    inner = budget_prior(name, (Column(),), folds=9.0)
    shifted = ShiftedBudget(inner, 0.05)
    x = np.column_stack([rng.random(6), rng.choice([0.2, 0.5, 1.0], 6)])
    moved = x - [0.0, 0.05]
    np.testing.assert_array_equal(shifted.mean(x), inner.mean(moved))
    np.testing.assert_array_equal(shifted.covariance(x, x), inner.covariance(moved, moved))
    changed = shifted.with_values(shifted.values * 1.1)
    np.testing.assert_array_equal(changed.values, inner.values * 1.1)
