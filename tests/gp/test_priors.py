import numpy as np
import pytest
from scipy import stats

from scrimp.gp.priors import (
    IDENTITY,
    LOG,
    LOGIT,
    Gamma,
    Hyperparameter,
    LogNormal,
    LogNormals,
    Normal,
    ParameterVector,
    Uniform,
    joined_parameters,
)
from scrimp.testing.kernels import close, numerical_gradient

DENSITIES = [
    (Normal(0.3, 1.7), stats.norm(0.3, 1.7)),
    (LogNormal(-4.0, 1.0), stats.lognorm(1.0, scale=np.exp(-4.0))),
    (LogNormal(1.4, 1.7), stats.lognorm(1.7, scale=np.exp(1.4))),
    (Gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3.0)),
    (Gamma.with_mean(0.1, 0.1), stats.gamma(0.1, scale=1.0)),
    (Uniform(0.2, 3.0), stats.uniform(0.2, 2.8)),
]


@pytest.mark.parametrize(("density", "reference"), DENSITIES)
def test_densities_agree_with_scipy_and_gradients_with_differences(density, reference):
    values = np.array([0.25, 0.5, 1.0, 2.0, 2.9])
    np.testing.assert_allclose(density.log_density(values), reference.logpdf(values), rtol=1e-12)
    close(
        density.gradient(values), numerical_gradient(lambda v: density.log_density(v).sum(), values)
    )


@pytest.mark.parametrize(("density", "reference"), DENSITIES)
def test_draws_follow_the_density(density, reference):
    draws = density.sample(2000, np.random.default_rng(0))
    assert stats.kstest(draws, reference.cdf).pvalue > 0.01  # one fixed seed, level 1 %


@pytest.mark.parametrize(
    "density",
    [d for d, _ in DENSITIES if not isinstance(d, Uniform) and d != Gamma.with_mean(0.1, 0.1)],
)
def test_nothing_is_likelier_than_the_mode(density):
    around = density.mode * np.array([0.9, 0.99, 1.01, 1.1])
    assert (density.log_density(around) < density.log_density(np.array([density.mode]))).all()


def test_uniform_is_impossible_outside():
    assert np.isneginf(Uniform(0.0, 1.0).log_density(np.array([-0.1, 1.1]))).all()


@pytest.mark.parametrize("encoding", [IDENTITY, LOG, LOGIT])
def test_encodings_invert_and_know_their_slope(encoding):
    bounds = (0.1, 4.0)
    values = np.array([0.2, 1.0, 3.7])
    coordinates = encoding.encode(values, bounds)
    np.testing.assert_allclose(encoding.decode(coordinates, bounds), values, rtol=1e-12)
    numerical = numerical_gradient(lambda t: encoding.decode(t, bounds).sum(), coordinates)
    close(encoding.slope(values, bounds), numerical)


def test_logit_keeps_values_at_the_bounds_finite():
    assert np.isfinite(LOGIT.encode(np.array([0.0, 1.0]), (0.0, 1.0))).all()


def test_start_is_moved_inside_the_bounds():
    assert Hyperparameter("a", LogNormal(0.0, 1.0), bounds=(1.0, 2.0)).start == 1.0
    assert Hyperparameter("a", LogNormal(0.0, 1.0), bounds=(1.0, 2.0), initial=1.5).start == 1.5


@pytest.fixture
def vector():
    return ParameterVector(
        (
            Hyperparameter("mean", Normal(0.0, 1.0), bounds=(-3.0, 3.0), encoding=IDENTITY),
            Hyperparameter("length_scale", LogNormal(0.5, 1.0), bounds=(0.01, 10.0), size=3),
            Hyperparameter("share", Uniform(0.0, 1.0), bounds=(0.0, 1.0), encoding=LOGIT, size=2),
        )
    )


def test_vector_strings_parameters_together(vector):
    values = np.array([0.4, 0.3, 1.0, 5.0, 0.2, 0.9])
    np.testing.assert_allclose(vector.decode(vector.encode(values)), values, rtol=1e-12)
    expected = (
        stats.norm.logpdf(0.4) + stats.lognorm(1.0, scale=np.exp(0.5)).logpdf(values[1:4]).sum()
    )
    assert vector.log_density(values) == pytest.approx(expected, rel=1e-12)
    close(vector.gradient(values), numerical_gradient(vector.log_density, values))
    numerical = numerical_gradient(lambda t: vector.decode(t).sum(), vector.encode(values))
    close(vector.slopes(values), numerical)


def test_vector_draws_stay_inside_the_bounds(vector):
    for seed in range(20):
        draw = vector.sample(np.random.default_rng(seed))
        assert (draw >= vector.lower).all() and (draw <= vector.upper).all()


def test_json_round_trip_and_refusal_of_another_model(vector):
    values = np.array([0.4, 0.3, 1.0, 5.0, 0.2, 0.9])
    named = vector.to_json(values)
    assert named == {"mean": [0.4], "length_scale": [0.3, 1.0, 5.0], "share": [0.2, 0.9]}
    np.testing.assert_array_equal(vector.from_json(named), values)
    assert vector.from_json({**named, "length_scale": [0.3]}) is None
    assert vector.from_json({"mean": [0.4]}) is None


def test_names_must_differ(vector):
    with pytest.raises(ValueError, match="repeat"):
        ParameterVector((*vector.parameters, vector.parameters[0]))
    both = joined_parameters(vector.parameters, vector.parameters[:1], ("left", "right"))
    assert [parameter.name for parameter in both] == [
        "left.mean",
        "left.length_scale",
        "left.share",
        "right.mean",
    ]
    assert ParameterVector(both).size == 7


def test_several_log_normals_have_centres_of_their_own():
    density, values = LogNormals((0.5, -1.0, 2.0), 1.3), np.array([0.7, 2.0, 5.0])
    each = [LogNormal(mu, 1.3) for mu in density.mu]
    expected = [float(one.log_density(value)) for one, value in zip(each, values, strict=True)]
    np.testing.assert_allclose(density.log_density(values), expected, rtol=1e-12)
    close(
        density.gradient(values), numerical_gradient(lambda v: density.log_density(v).sum(), values)
    )
    draws = np.stack([density.sample(3, np.random.default_rng(seed)) for seed in range(400)])
    np.testing.assert_allclose(np.log(draws).mean(axis=0), density.mu, atol=0.25)
    assert density.mode == LogNormal(0.5, 1.3).mode
