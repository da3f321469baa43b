import numpy as np
import pytest
from scipy import stats

from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import (
    Flat,
    Gamma,
    Hyperparameter,
    LogNormal,
    Normal,
    ParameterVector,
    Parametrised,
    joined_parameters,
)
from scrimp.gp.kernel import Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import Matern52
from scrimp.testing.models import close, numerical_gradient

DENSITIES = [
    (Normal(0.3, 1.7), stats.norm(0.3, 1.7)),
    (LogNormal(-4.0, 1.0), stats.lognorm(1.0, scale=np.exp(-4.0))),
    (LogNormal(1.4, 1.7), stats.lognorm(1.7, scale=np.exp(1.4))),
    (Gamma(2.5, 3.0), stats.gamma(2.5, scale=1 / 3.0)),
    (Gamma(0.1, 1.0), stats.gamma(0.1, scale=1.0)),
]


def log_density(density, values):
    return density.log_density_and_gradient(values)[0]


@pytest.mark.parametrize(("density", "reference"), DENSITIES)
def test_densities_agree_with_scipy_and_gradients_with_differences(density, reference):
    values = np.array([0.25, 0.5, 1.0, 2.0, 2.9])
    found, gradient = density.log_density_and_gradient(values)
    np.testing.assert_allclose(found, reference.logpdf(values), rtol=1e-12)
    close(gradient, numerical_gradient(lambda v: log_density(density, v).sum(), values))


@pytest.mark.parametrize(("density", "reference"), DENSITIES)
def test_draws_follow_the_density(density, reference):
    draws = density.sample(2000, np.random.default_rng(0))
    assert stats.kstest(draws, reference.cdf).pvalue > 0.01  # one fixed seed, level 1 %


@pytest.mark.parametrize(
    "density",
    [d for d, _ in DENSITIES if d != Gamma(0.1, 1.0)],
)
def test_nothing_is_likelier_than_the_mode(density):
    around = density.mode * np.array([0.9, 0.99, 1.01, 1.1])
    assert (log_density(density, around) < log_density(density, np.array([density.mode]))).all()


@pytest.mark.parametrize(
    ("encoding", "formula"),
    [
        ("identity", lambda v: v),
        ("log", np.log),
        ("logit", lambda v: np.log((v - 0.1) / (4.0 - v))),
    ],
)
def test_encodings_invert_and_know_their_slope(encoding, formula):
    values = np.array([0.2, 1.0, 3.7])
    vector = ParameterVector(
        (Hyperparameter("a", Flat(0.1, 4.0), (0.1, 4.0), encoding=encoding, size=3),)
    )
    coordinates = vector.encode(values)
    np.testing.assert_allclose(coordinates, formula(values), rtol=1e-12)
    np.testing.assert_allclose(vector.decode(coordinates), values, rtol=1e-12)
    close(vector.slopes(values), numerical_gradient(lambda t: vector.decode(t).sum(), coordinates))


def test_logit_keeps_values_at_the_bounds_finite():
    share = Hyperparameter("a", Flat(0.0, 1.0), (0.0, 1.0), encoding="logit", size=2)
    assert np.isfinite(ParameterVector((share,)).encode(np.array([0.0, 1.0]))).all()


def test_start_is_moved_inside_the_bounds():
    assert Hyperparameter("a", LogNormal(0.0, 1.0), bounds=(1.0, 2.0)).start == 1.0
    assert Hyperparameter("a", LogNormal(0.0, 1.0), bounds=(1.0, 2.0), initial=1.5).start == 1.5


@pytest.fixture
def vector():
    return ParameterVector(
        (
            Hyperparameter("mean", Normal(0.0, 1.0), bounds=(-3.0, 3.0), encoding="identity"),
            Hyperparameter("length_scale", LogNormal(0.5, 1.0), bounds=(0.01, 10.0), size=3),
            Hyperparameter("share", Flat(0.0, 1.0), bounds=(0.0, 1.0), encoding="logit", size=2),
        )
    )


def test_vector_strings_parameters_together(vector):
    values = np.array([0.4, 0.3, 1.0, 5.0, 0.2, 0.9])
    np.testing.assert_allclose(vector.decode(vector.encode(values)), values, rtol=1e-12)
    expected = (
        stats.norm.logpdf(0.4) + stats.lognorm(1.0, scale=np.exp(0.5)).logpdf(values[1:4]).sum()
    )
    found, gradient = vector.log_density_and_gradient(values)
    assert found == pytest.approx(expected, rel=1e-12)
    close(gradient, numerical_gradient(lambda v: vector.log_density_and_gradient(v)[0], values))
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
    density, values = LogNormal((0.5, -1.0, 2.0), 1.3), np.array([0.7, 2.0, 5.0])
    each = [LogNormal(mu, 1.3) for mu in density.mu]
    expected = [float(log_density(one, value)) for one, value in zip(each, values, strict=True)]
    found, gradient = density.log_density_and_gradient(values)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    close(gradient, numerical_gradient(lambda v: log_density(density, v).sum(), values))
    draws = np.stack([density.sample(3, np.random.default_rng(seed)) for seed in range(400)])
    np.testing.assert_allclose(np.log(draws).mean(axis=0), density.mu, atol=0.25)
    assert density.mode == LogNormal(0.5, 1.3).mode


KERNEL = Matern52((Column(), Column()))
THINGS = [
    KERNEL,
    Scaled(KERNEL),
    MeanAndKernel(Scaled(KERNEL)),
    MeanAndKernel(Scaled(KERNEL), None),
    DecayResidual(),
    InnovationResidual(),
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: type(thing).__name__)
def test_other_values_make_another_thing_of_the_same_kind(thing: Parametrised) -> None:
    before = thing.values.copy()
    assert before.shape == (ParameterVector(thing.parameters).size,)
    other = thing.with_values(before * 1.25)
    assert type(other) is type(thing) and other.parameters == thing.parameters
    np.testing.assert_array_equal(other.values, before * 1.25)
    np.testing.assert_array_equal(thing.values, before)
