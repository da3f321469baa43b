"""Constrained improvement: against the direct formula, Monte Carlo, explicit sums and finite
differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

from scrimp.acquisition.acquisition import Acquisition, Context, fantasise
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LowerConfidenceBound,
    ProbabilityOfImprovement,
    expected_improvement,
)
from scrimp.acquisition.several_models import ThompsonSampling
from scrimp.acquisition.weighted import Constrained, Limit, believed_feasible, limits_of
from scrimp.errors import MethodError
from scrimp.surrogates.surrogate import Data
from scrimp.testing.acquisitions import (
    AcquisitionBattery,
    SampledPosterior,
    finite_differences,
    random_posterior,
)

X = np.random.default_rng(8).random((6, 3))


def three_models():
    """A loss and two violations at the same inputs."""
    loss = random_posterior(1)
    violations = [random_posterior(seed) for seed in (11, 12)]
    others = [replace(v, observations=Data(loss.data.x, v.data.y)) for v in violations]
    return {"loss": loss, "constraint:memory": others[0], "constraint:time": others[1]}


def known(models):
    """Feasible where all observed violations are at most 0."""
    violations = np.stack([model.data.y for name, model in models.items() if name != "loss"])
    return Context(models["loss"].data.x, feasible=(violations <= 0.0).all(axis=0))


class TestConstrained(AcquisitionBattery):
    def acquisition(self) -> Acquisition:
        return Constrained()

    def models(self):
        return three_models()

    def context(self, models):
        return known(models)


class TestNothingFeasible(TestConstrained):
    def context(self, models):
        return Context(
            models["loss"].data.x, feasible=np.zeros(len(models["loss"].data), dtype=bool)
        )


def deviations(model, x):
    posterior = model.posterior(x)
    return posterior.mean, np.sqrt(posterior.variance)[:, None]


def test_is_improvement_on_the_best_feasible_times_the_probabilities():
    models = three_models()
    context = known(models)
    assert 0 < context.feasible.sum() < len(context.feasible)
    best = models["loss"].posterior(context.evaluated[context.feasible]).mean.min()
    mean, std = deviations(models["loss"], X)
    expected = expected_improvement(mean, std, best)
    for name in ("constraint:memory", "constraint:time"):
        mean, std = deviations(models[name], X)
        expected = expected * norm.cdf(-mean / std)
    np.testing.assert_allclose(
        np.exp(Constrained().bind(models, context)(X)), expected[:, 0], rtol=1e-9
    )
    plain = Constrained(ExpectedImprovement()).bind(models, context)
    np.testing.assert_allclose(np.exp(plain(X)), expected[:, 0], rtol=1e-9)


def test_agrees_with_monte_carlo_over_outcomes():
    models, rng = three_models(), np.random.default_rng(0)
    context = known(models)
    best = models["loss"].posterior(context.evaluated[context.feasible]).mean.min()
    score = Constrained().bind(models, context)
    many = rng.random((500, 3))
    point = many[[score(many).argmax()]]
    outcome = {name: model.sample(point, 400_000, rng)[:, 0] for name, model in models.items()}
    gains = (
        np.maximum(best - outcome["loss"], 0.0)
        * (outcome["constraint:memory"] <= 0)
        * (outcome["constraint:time"] <= 0)
    )
    value = float(np.exp(score(point)[0]))
    assert (gains > 0).sum() > 1000
    assert abs(value - gains.mean()) < 5 * gains.std() / np.sqrt(len(gains))


def test_probability_of_feasibility_alone_while_nothing_is_feasible():
    models = three_models()
    context = replace(known(models), feasible=np.zeros(12, dtype=bool))
    expected = np.zeros(len(X))
    for name in ("constraint:memory", "constraint:time"):
        mean, std = deviations(models[name], X)
        expected = expected + norm.logcdf(-mean / std)[:, 0]
    np.testing.assert_allclose(Constrained().bind(models, context)(X), expected, rtol=1e-9)


def varied(model):
    return SampledPosterior(
        (model, replace(model, amplitude=2.0), replace(model, scales=0.6 * model.scales))
    )


def test_averages_over_the_product_of_all_samples_and_over_paired_fantasies():
    pending = np.random.default_rng(2).random((2, 3))
    plain = three_models()
    models = {
        name: fantasise(varied(model), pending, 4, np.random.default_rng(i))
        for i, (name, model) in enumerate(plain.items())
    }
    context = replace(known(plain), pending=pending)
    rows = np.concatenate([context.evaluated[context.feasible], pending])
    total = np.zeros(len(X))
    for f in range(4):
        holds = np.ones(len(rows), dtype=bool)
        for name in ("constraint:memory", "constraint:time"):
            means = np.mean(
                [member.posterior(pending).mean[:, f] for member in models[name].members], axis=0
            )
            holds[-2:] &= means <= 0.0
        for loss in models["loss"].members:
            best = loss.posterior(rows[holds]).mean[:, f].min()
            mean, std = deviations(loss, X)
            gain = expected_improvement(mean[:, f], std[:, 0], best)
            for memory in models["constraint:memory"].members:
                for time in models["constraint:time"].members:
                    (m1, s1), (m2, s2) = deviations(memory, X), deviations(time, X)
                    total += gain * norm.cdf(-m1[:, f] / s1[:, 0]) * norm.cdf(-m2[:, f] / s2[:, 0])
    score = Constrained().bind(models, context)
    np.testing.assert_allclose(np.exp(score(X)), total / (4 * 27), rtol=1e-9)
    np.testing.assert_allclose(
        score.value_and_gradient(X)[1], finite_differences(score, X), rtol=1e-5, atol=1e-7
    )


def test_fantasies_in_which_a_pending_input_is_feasible_are_left_out_while_nothing_is():
    plain = three_models()
    del plain["constraint:time"]
    many = np.random.default_rng(2).random((500, 3))
    pending = many[[np.abs(plain["constraint:memory"].posterior(many).mean[:, 0]).argmin()]]
    memory = fantasise(plain["constraint:memory"], pending, 40, np.random.default_rng(1))
    context = Context(plain["loss"].data.x, pending, feasible=np.zeros(12, dtype=bool))
    solved = memory.posterior(pending).mean[0] <= 0.0
    assert 0 < solved.sum() < 40
    mean, std = deviations(memory, X)
    expected = (norm.cdf(-mean / std) * ~solved).mean(axis=1)
    score = Constrained().bind({"loss": plain["loss"], "constraint:memory": memory}, context)
    np.testing.assert_allclose(np.exp(score(X)), expected, rtol=1e-9)
    np.testing.assert_allclose(
        score.value_and_gradient(X)[1], finite_differences(score, X), rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize(("shift", "feasible"), [(-100.0, True), (100.0, False)])
def test_fantasies_that_all_agree_on_a_pending_input_all_count(shift, feasible):
    plain = three_models()
    memory = replace(
        plain["constraint:memory"],
        observations=Data(plain["loss"].data.x, plain["constraint:memory"].data.y + shift),
    )
    pending = plain["loss"].data.x[:1] + 1e-3
    grown = fantasise(memory, pending, 6, np.random.default_rng(1))
    assert ((grown.posterior(pending).mean <= 0.0) == feasible).all()
    context = Context(plain["loss"].data.x, pending, feasible=np.zeros(12, dtype=bool))
    score = Constrained().bind({"loss": plain["loss"], "constraint:memory": grown}, context)
    mean, std = deviations(grown, X)
    expected = logsumexp(norm.logcdf(-mean / std), axis=1) - np.log(6.0)
    np.testing.assert_allclose(score(X), expected, rtol=1e-9, atol=1e-12)


def test_a_violation_is_the_distance_outside_the_band():
    memory = three_models()["constraint:memory"]
    band = Limit(memory, -1.0, 2.0)
    values = np.array([-3.0, -1.0, 0.0, 1.5, 2.0, 5.0])
    np.testing.assert_allclose(band.violation(values), [2.0, 0.0, -1.0, -0.5, 0.0, 3.0])
    open_below = Limit(memory, -np.inf, 2.0)
    np.testing.assert_allclose(open_below.violation(values), values - 2.0)


def test_pending_inputs_are_feasible_inside_every_band_and_nowhere_else():
    models = three_models()
    pending = np.random.default_rng(5).random((40, 3))
    memory, time = (models[name].mean(pending)[:, 0] for name in sorted(models)[:2])
    low, high = np.quantile(memory, [0.3, 0.7])
    context = replace(known(models), bands={"constraint:memory": (float(low), float(high))})
    limits = limits_of(models, context)
    expected = (memory >= low) & (memory <= high) & (time <= 0.0)
    assert 0 < expected.sum() < 40 and (memory < low).any() and (memory > high).any()
    np.testing.assert_array_equal(believed_feasible(limits, pending)[:, 0], expected)


@pytest.mark.parametrize("inner", [ProbabilityOfImprovement(), LowerConfidenceBound()])
def test_wraps_other_acquisitions(inner):
    models = three_models()
    context = known(models)
    alone = inner.logarithm().bind(models, context)(X)
    feasibility = Constrained().bind(models, replace(context, feasible=np.zeros(12, dtype=bool)))(X)
    np.testing.assert_allclose(
        Constrained(inner).bind(models, context)(X), alone + feasibility, rtol=1e-9
    )


def test_refuses_what_has_no_logarithm():
    models = three_models()
    with pytest.raises(MethodError, match="cannot be weighted"):
        Constrained(ThompsonSampling()).bind(models, known(models))


def test_missing_models_and_missing_knowledge_are_refused():
    models = three_models()
    with pytest.raises(MethodError, match="constraint:<name>"):
        Constrained().bind({"loss": models["loss"]}, known(models))
    with pytest.raises(MethodError, match="feasible=None"):
        Constrained().bind(models, Context(models["loss"].data.x))
