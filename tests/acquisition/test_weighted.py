"""Constraints and costs as a study's decisions see them: in the units the user reports, not in
those of a model."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

import scrimp
from scrimp.acquisition.acquisition import Acquisition, Context, fantasise
from scrimp.acquisition.improvement import ExpectedImprovement, LogExpectedImprovement
from scrimp.acquisition.several_models import ThompsonSampling
from scrimp.acquisition.weighted import (
    BoundMixture,
    BoundProduct,
    Constrained,
    CostAware,
    Guided,
    ProbabilityWithin,
    bind_logarithm,
    weighted,
)
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.study_log.events import Decided
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import AcquisitionBattery, finite_differences, random_posterior
from scrimp.testing.models import close, numerical_gradient

LINE = scrimp.Space(x=scrimp.Float(0, 1))
POOL = scrimp.Pool(LINE, [{"x": x / 14} for x in range(15)])


def bumpy(x: float) -> float:
    return math.sin(6 * x) + 0.5 * x


def told(study: scrimp.Study, count: int, price: Any) -> scrimp.Study:
    for _ in range(count):
        trial = study.ask()
        x = trial.params["x"]
        study.tell(trial, {"loss": bumpy(x), "price": price(x)})
    return study


def tried(space: Any, price: Any, count: int, **question: Any) -> list[float]:
    """What a study with that price tries, in order."""
    study = scrimp.create_study(
        "c", space, metric="loss", **{"storage": "memory://", "seed": 4, **question}
    )
    return [trial.params["x"] for trial in told(study, count, price).trials]


def test_wraps_in_what_there_are_models_of() -> None:
    loss = {"loss": random_posterior(1)}
    limited = {**loss, "constraint:memory": random_posterior(2)}
    plain = LogExpectedImprovement()
    assert weighted(plain, loss) is plain
    assert weighted(plain, limited) == Constrained(plain)
    assert weighted(plain, {**limited, "cost": random_posterior(3)}, 0.5) == CostAware(
        Constrained(plain), 0.5
    )
    assert weighted(ThompsonSampling(), limited) == ThompsonSampling()  # it weighs by itself


def matern52(a: np.ndarray, b: np.ndarray, scale: float) -> np.ndarray:
    s = math.sqrt(5.0) * np.abs(a[:, None] - b[None]) / scale
    return (1 + s + s**2 / 3) * np.exp(-s)


def by_hand(
    state: Any, x: np.ndarray, y: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Mean and deviation at ``at`` by dense algebra from the recorded hyperparameters, and the
    recorded last step."""
    *caps, scaling = state["steps"]
    for cap in caps:
        y = np.minimum(y, cap["cap"])
    z = (y - scaling["centre"]) / scaling["spread"]
    values = {name: numbers[0] for name, numbers in state["inner"]["parameters"].items()}
    mean, size, length, noise = (
        values[key] for key in ("mean", "output_scale", "length_scale", "noise")
    )
    covariance = size * matern52(x, x, length) + noise * np.eye(len(x))
    cross = size * matern52(at, x, length)
    believed = mean + cross @ np.linalg.solve(covariance, z - mean)
    variance = size - np.einsum("ij,ji->i", cross, np.linalg.solve(covariance, cross.T))
    return believed, np.sqrt(variance), scaling


@pytest.mark.parametrize("exponent", [1.0, 0.5])
def test_a_study_divides_the_improvement_by_a_power_of_the_cost(exponent: float) -> None:
    """The recorded score against numbers computed by hand from the recorded model; the cost varies
    20-fold."""
    method = scrimp.Method("gp", transform="standardise", cost_exponent=exponent, patience=0)
    study = scrimp.create_study(
        "c", LINE, method=method, metric="loss", cost="price", storage="memory://", seed=1
    )
    told(study, 9, lambda x: 20.0**x)
    chosen = np.array([study.ask().params["x"]])
    x = np.array([trial.params["x"] for trial in study.trials[:9]])
    record = [event.record for event in study.history.events if isinstance(event, Decided)][-1]
    loss, cost = (study.history.recorded.fit[name].state for name in ("loss", "cost"))
    y = np.array([bumpy(one) for one in x])
    mean, deviation, _ = by_hand(loss, x, y, chosen)
    best = by_hand(loss, x, y, x)[0].min()
    z = (best - mean) / deviation
    improvement = deviation * (norm.pdf(z) + z * norm.cdf(z))
    log_cost, _, scaling = by_hand(cost, x, x * math.log(20.0), chosen)
    seconds = np.exp(scaling["centre"] + scaling["spread"] * log_cost)
    np.testing.assert_allclose(seconds, 20.0**chosen, rtol=0.5)  # natural units: 1 to 20
    assert record.reason.score == pytest.approx(
        math.log(improvement[0] / seconds[0] ** exponent), abs=1e-5
    )


def test_a_nearly_constant_cost_changes_no_decision() -> None:
    plain = tried(POOL, lambda x: 1.0, 12, method="gp")
    assert tried(POOL, lambda x: 100.0 + x, 12, method="gp", cost="price") == plain
    assert tried(POOL, lambda x: 100.0**x, 12, method="gp", cost="price") != plain


@pytest.mark.parametrize("method", ["rgpe", "auto:patience=0"])
def test_a_nearly_constant_cost_changes_no_decision_of_a_method_that_learns(
    method: str, tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    past = scrimp.create_study("past", POOL, method="sobol", metric="loss", storage=url, seed=0)
    told(past, 10, lambda x: 1.0)

    def here(name: str, price: Any, **question: Any) -> list[float]:
        settings = {"learn_from": ["past"], "method": method, "storage": url, "seed": 4, **question}
        study = scrimp.create_study(name, POOL, metric="loss", **settings)
        return [trial.params["x"] for trial in told(study, 8, price).trials]

    assert here("cost", lambda x: 100.0 - x, cost="price") == here("plain", lambda x: 1.0)


@pytest.mark.parametrize(
    "question", [{"constraints": {"size": scrimp.AtMost(0.7)}}, {"cost": "size"}]
)
def test_thompson_sampling_works_with_constraints_and_costs(question: dict[str, Any]) -> None:
    study = scrimp.create_study(
        "t",
        LINE,
        method="gp:acquisition=thompson",
        metric="loss",
        storage="memory://",
        seed=0,
        **question,
    )
    for _ in range(14):
        trial = study.ask()
        x = trial.params["x"]
        study.tell(trial, {"loss": (x - 0.9) ** 2, "size": 0.01 + x})
    assert not study.history.degraded
    if "constraints" in question:  # without them it would run to 0.9; the limit stands at 0.69
        assert study.best_params["x"] == pytest.approx(0.69, abs=0.03)
        assert np.median([trial.params["x"] for trial in study.trials[8:]]) < 0.75


def test_a_cap_on_far_out_values_never_hides_the_limit() -> None:
    """Most trials lie far below the limit and close together: those above it must still count as
    violations."""
    limit = {"memory_gb": scrimp.AtMost(16)}
    study = scrimp.create_study(
        "m", LINE, metric="loss", constraints=limit, storage="memory://", seed=0
    )
    for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.95, 1.0):
        study.enqueue({"x": x})
    for _ in range(11):
        trial = study.ask()
        x = trial.params["x"]
        study.tell(trial, {"loss": -x, "memory_gb": 2.0 + 0.05 * x if x < 0.8 else 30.0})
    suggester = study.suggester
    assert isinstance(suggester, BayesianSuggester)
    models = suggester.belief(study.history, study.history.rng("test")).models.fitted
    assert (
        models["constraint:memory_gb"].mean(np.array([[0.97]]))[0, 0] > 0.0
    )  # it knows what lies beyond the limit
    assert study.ask().params["x"] < 0.93


def test_an_equality_is_learned_from_both_sides() -> None:
    """The unconstrained optimum is far away; x + y = 0.8 holds on a line, and the best point of the
    line is found."""
    space = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))
    rule = {"sum": scrimp.Equals(0.8, tolerance=0.02)}
    study = scrimp.create_study(
        "e", space, metric="loss", constraints=rule, storage="memory://", seed=0
    )
    for _ in range(24):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(
            trial, {"loss": (x - 0.6) ** 2 + 0.5 * (y - 0.2) ** 2 - 0.1 * (x + y), "sum": x + y}
        )
    late = [trial.params["x"] + trial.params["y"] for trial in study.trials[10:]]
    assert (
        np.median(np.abs(np.array(late) - 0.8)) < 0.03
    )  # random configurations are 0.3 away in the middle
    assert abs(sum(study.best_params.values()) - 0.8) <= 0.02
    assert study.best_value < -0.075  # the best feasible value is -0.082, at about (0.61, 0.21)


X = np.random.default_rng(8).random((5, 3))
PENDING = np.random.default_rng(9).random((2, 3))


def factor(seed, fantasies):
    model = random_posterior(seed)
    grown = (
        fantasise(model, PENDING, fantasies, np.random.default_rng(seed))
        if fantasies > 1
        else model
    )
    return bind_logarithm(LogExpectedImprovement(), {"loss": grown}, Context(model.data.x))


def test_multiplies_fantasy_by_fantasy_and_averages_last():
    a, b, single = factor(1, 4), factor(2, 4), factor(3, 1)
    product = BoundProduct((a, b, single))
    expected = (np.exp(a.terms(X)) * np.exp(b.terms(X)) * np.exp(single.terms(X))).mean(axis=1)
    np.testing.assert_allclose(np.exp(product(X)), expected, rtol=1e-10)
    np.testing.assert_allclose(
        product.value_and_gradient(X)[1], finite_differences(product, X), rtol=1e-5, atol=1e-7
    )


def test_weights_of_minus_infinity_leave_fantasies_out():
    a = factor(1, 4)
    product = BoundProduct((a,), np.array([0.0, -np.inf, 0.0, -np.inf]))
    np.testing.assert_allclose(
        np.exp(product(X)), np.exp(a.terms(X))[:, [0, 2]].sum(axis=1) / 4, rtol=1e-10
    )


def test_different_numbers_of_fantasies_are_refused():
    with pytest.raises(MethodError, match=r"\[3, 4\] fantasies"):
        BoundProduct((factor(1, 4), factor(2, 3)))(X)


@pytest.fixture(params=[1, 5])
def bound(request):
    rng = np.random.default_rng(0)
    x, later = rng.random((12, 2)), rng.random((2, 2))
    models = []
    for k in range(3):
        fitted = ExactGP.over((Column(), Column())).fit(
            Data(x, np.sin((3 + k) * x[:, 0]) + x[:, 1]), rng
        )
        if request.param > 1:
            fitted = fitted.condition(Data(later, fitted.sample(later, request.param, rng).T))
        models.append({"loss": fitted})
    context = Context(x)
    parts = {
        kind: tuple(acquisition.bind(model, context) for model in models)
        for kind, acquisition in (
            ("log", LogExpectedImprovement()),
            ("plain", ExpectedImprovement()),
        )
    }
    return BoundMixture(parts["log"], (0.5, 0.2, 0.3)), parts["plain"]


def test_is_the_weighted_sum_of_improvements(bound):
    mixture, plain = bound
    x = np.random.default_rng(1).random((6, 2))
    expected = sum(weight * part(x) for weight, part in zip(mixture.weights, plain, strict=True))
    np.testing.assert_allclose(np.exp(mixture(x)), expected, rtol=1e-9)


def test_gradient(bound):
    x = np.random.default_rng(2).random((4, 2))
    value, gradient = bound[0].value_and_gradient(x)
    np.testing.assert_allclose(value, bound[0](x), rtol=1e-10)
    close(gradient, numerical_gradient(lambda z: float(bound[0](z).sum()), x), 1e-5)


class TestTwoSided(AcquisitionBattery):
    """A band is `ProbabilityWithin`, which is no acquisition by itself: it prefers the middle."""

    def acquisition(self) -> Acquisition:
        return Constrained()

    def models(self):
        return {"loss": random_posterior(1), "constraint:memory": random_posterior(1)}

    def context(self, models):
        y = models["loss"].data.y
        band = {"constraint:memory": (-0.4, 0.4)}
        return Context(models["loss"].data.x, feasible=np.abs(y) <= 0.4, bands=band)


CASES = [
    (mean, std, low, high)
    for mean in (0.0, 0.3, -5.0, 40.0)
    for std in (1e-3, 1.0, 20.0)
    for low, high in ((-0.5, 0.5), (-1e-7, 1e-7), (0.2, 0.3), (-math.inf, 0.1))
]


@pytest.mark.parametrize(("mean", "std", "low", "high"), CASES)
def test_against_many_digits(mean: float, std: float, low: float, high: float) -> None:
    with mpmath.workdps(60):

        def log_probability(m: mpmath.mpf, s: mpmath.mpf) -> mpmath.mpf:
            a, b = (-mpmath.inf if math.isinf(low) else (low - m) / s), (high - m) / s
            if a > 0:
                a, b = -b, -a  # erfc keeps digits below the mean
            lower = mpmath.mpf(0) if a == -mpmath.inf else mpmath.erfc(-a / mpmath.sqrt(2))
            return mpmath.log((mpmath.erfc(-b / mpmath.sqrt(2)) - lower) / 2)

        m, s, step = mpmath.mpf(mean), mpmath.mpf(std), mpmath.mpf(std) * mpmath.mpf(10) ** -15
        expected = log_probability(m, s)
        by_mean = (log_probability(m + step, s) - log_probability(m - step, s)) / (2 * step)
        by_std = (log_probability(m, s + step) - log_probability(m, s - step)) / (2 * step)
    band = ProbabilityWithin(low, high)
    value, d_mean, d_std = band.alpha_and_derivatives(np.array(mean), np.array(std), np.zeros(1))
    assert float(value) == pytest.approx(float(expected), rel=1e-8, abs=1e-9)
    assert float(d_mean) == pytest.approx(float(by_mean), rel=1e-5, abs=1e-7)
    assert float(d_std) == pytest.approx(float(by_std), rel=1e-5, abs=1e-7)


ROWS = np.random.default_rng(8).random((6, 3))


def near_the_origin(x):
    """belief = exp(-2 |x|^2)."""
    return -2.0 * (x**2).sum(axis=1), -4.0 * x


class TestGuided(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return Guided(LogExpectedImprovement(), near_the_origin)


def test_is_the_acquisition_times_a_power_of_the_belief():
    loss = random_posterior(1)
    context = Context(loss.data.x)
    plain = LogExpectedImprovement().bind({"loss": loss}, context)(ROWS)
    guided = Guided(LogExpectedImprovement(), near_the_origin, strength=3.0).bind(
        {"loss": loss}, context
    )(ROWS)
    np.testing.assert_allclose(
        guided - plain, -6.0 * (ROWS**2).sum(axis=1) / len(loss.data.x), rtol=1e-9
    )
