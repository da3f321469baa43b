import mpmath
import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

from scrimp.errors import NumericalError, StudyError
from scrimp.gp.columns import Column
from scrimp.gp.kernel import Kernel, OnColumns, Scaled
from scrimp.gp.marginal_likelihood import SearchSettings, maximum_a_posteriori
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.stationary import RBF, Matern52
from scrimp.gp.warping import Warped
from scrimp.surrogates.exact_gp import ExactGP, record_of, recorded_values
from scrimp.surrogates.surrogate import Data
from scrimp.testing.models import SurrogateBattery

THREE = (Column(),) * 3


class Rising(Kernel):
    """k(x, x') = (1 + x)(1 + x')."""

    parameters = ()
    values = np.empty(0)

    def with_values(self, values):
        return self

    def __call__(self, x1, x2):
        return (1.0 + x1) @ (1.0 + x2).T

    def diagonal(self, x):
        return (1.0 + x[:, 0]) ** 2

    def value_and_pullback(self, x):
        return self(x, x), lambda d: np.empty(0)

    def cross_and_pullback(self, x1, x2):
        return self(x1, x2), lambda d: d @ (1.0 + x2)


class TestExactGP(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP.over(columns)


class TestWarpedGP(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP(MeanAndKernel(Warped(Scaled(Matern52(columns)), columns)))


class TestNotStationary(SurrogateBattery):
    """A prior variance that depends on x, so that its slope enters the pullback."""

    @pytest.fixture
    def surrogate(self, columns):
        grows = OnColumns(Scaled(RBF(columns[:1])), (0,)) * OnColumns(Rising(), (1,))
        return ExactGP(MeanAndKernel(grows + Scaled(Matern52(columns))))


class TestSumGP(SurrogateBattery):
    @pytest.fixture
    def surrogate(self, columns):
        return ExactGP(MeanAndKernel(Scaled(Matern52(columns)) + Scaled(RBF(columns, ard=False))))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.random((40, 3))
    return Data(x, np.sin(5 * x[:, 0]) + x[:, 1] + 0.1 * rng.normal(size=40))


STATE = {
    "parameters": {
        "mean": [0.0],
        "output_scale": [1.7],
        "length_scale": [0.3, 0.8, 2.0],
        "noise": [0.05],
    },
    "explored": 40,
}


def test_posterior_and_likelihood_agree_with_scikit_learn(data):
    kernel = peer.ConstantKernel(1.7) * peer.Matern([0.3, 0.8, 2.0], nu=2.5)
    regressor = GaussianProcessRegressor(kernel, optimizer=None, alpha=0.05).fit(data.x, data.y)
    fitted = ExactGP.over(THREE).restore(data, STATE)
    x = np.random.default_rng(1).random((25, 3))
    mean, covariance = regressor.predict(x, return_cov=True)
    posterior = fitted.posterior(x, joint=True)
    np.testing.assert_allclose(posterior.mean[:, 0], mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(posterior.covariance, covariance, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(posterior.variance, covariance.diagonal(), rtol=1e-7)
    assert fitted.log_marginal_likelihood == pytest.approx(
        regressor.log_marginal_likelihood_value_, rel=1e-10
    )


@pytest.mark.parametrize("known", [False, True])
def test_posterior_is_the_dense_formula(data, known):
    noise = np.random.default_rng(3).uniform(0.0, 0.3, 40) if known else None
    state = {**STATE, "parameters": {**STATE["parameters"], "mean": [0.4]}}
    fitted = ExactGP.over(THREE).restore(Data(data.x, data.y, noise), state)
    x = np.random.default_rng(1).random((10, 3))
    kernel = Scaled(Matern52(THREE)).with_values(np.array([1.7, 0.3, 0.8, 2.0]))
    inverse = np.linalg.inv(
        kernel(data.x, data.x) + np.diag(np.full(40, 0.05) + (0.0 if noise is None else noise))
    )
    cross = kernel(x, data.x)
    posterior = fitted.posterior(x, joint=True)
    np.testing.assert_allclose(
        posterior.mean[:, 0], 0.4 + cross @ inverse @ (data.y - 0.4), rtol=1e-9
    )
    np.testing.assert_allclose(
        posterior.covariance, kernel(x, x) - cross @ inverse @ cross.T, rtol=1e-7, atol=1e-10
    )


@pytest.mark.parametrize("known", [False, True])
def test_leave_one_out_equals_brute_force(data, known):
    noise = np.random.default_rng(3).uniform(0.0, 0.3, 40) if known else None
    model = ExactGP.over(THREE)
    data = Data(data.x, data.y, noise)
    held_out = model.restore(data, STATE).leave_one_out()
    assert held_out.mean.shape == (40, 1)
    for i in range(40):
        rest = np.delete(np.arange(40), i)
        others = model.restore(
            Data(data.x[rest], data.y[rest], None if noise is None else noise[rest]), STATE
        )
        expected = others.posterior(data.x[i : i + 1])
        np.testing.assert_allclose(held_out.mean[i], expected.mean[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(held_out.variance[i], expected.variance[0], rtol=1e-6)


def test_growing_one_at_a_time_equals_one_factorisation(data):
    model = ExactGP.over(THREE)
    grown = model.restore(Data(data.x[:10], data.y[:10]), STATE)
    for i in range(10, 40):
        grown = grown.condition(Data(data.x[i : i + 1], data.y[i : i + 1]))
    whole = model.restore(data, STATE)
    np.testing.assert_allclose(grown.factor, whole.factor, rtol=1e-8, atol=1e-10)
    assert grown.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood, rel=1e-10)
    np.testing.assert_array_equal(grown.data.y, data.y)


def test_fantasies_of_fantasies_broadcast(data):
    fitted = ExactGP.over(THREE).restore(data, STATE)
    rng = np.random.default_rng(0)
    once = fitted.condition(Data(rng.random((2, 3)), rng.normal(size=(2, 4))))
    twice = once.condition(Data(rng.random((1, 3)), rng.normal(size=(1, 4))))
    assert twice.posterior(data.x).mean.shape == (40, 4)
    with pytest.raises(ValueError, match="4 fantasies"):
        twice.sample(data.x, 1, rng)


def test_fit_to_fantasies_maximises_their_average_likelihood(data):
    targets = np.stack([data.y, data.y[::-1]], axis=1)
    model = ExactGP.over(THREE)
    together = model.fit(Data(data.x, targets), np.random.default_rng(0))
    alone = [
        model.restore(Data(data.x, y), together.state).log_marginal_likelihood for y in targets.T
    ]
    assert together.log_marginal_likelihood == pytest.approx(np.mean(alone), rel=1e-10)


def test_recorded_start_is_used_and_exploration_recorded(data):
    model = ExactGP.over(THREE)
    first = model.fit(Data(data.x[:20], data.y[:20]), np.random.default_rng(0))
    assert first.state["explored"] == 20
    assert (
        model.fit(Data(data.x[:29], data.y[:29]), np.random.default_rng(0), first.state).state[
            "explored"
        ]
        == 20
    )
    assert model.fit(data, np.random.default_rng(0), first.state).state["explored"] == 40


def test_a_start_of_another_model_is_set_aside_but_not_restored(data):
    other = {"parameters": {**STATE["parameters"], "length_scale": [1.0]}, "explored": 40}
    model = ExactGP.over(THREE)
    cold, warm = (model.fit(data, np.random.default_rng(0), start).state for start in (None, other))
    assert cold == warm
    with pytest.raises(StudyError, match="fit again"):
        model.restore(data, other)


def test_repeated_points_and_constant_targets_are_no_trouble():
    x = np.repeat(np.random.default_rng(0).random((5, 3)), 6, axis=0)
    fitted = ExactGP.over(THREE).fit(Data(x, np.zeros(30)), np.random.default_rng(0))
    posterior = fitted.posterior(x)
    assert np.abs(posterior.mean).max() < 0.05 and np.isfinite(posterior.variance).all()


def test_one_observation_is_enough():
    fitted = ExactGP.over(THREE).fit(
        Data(np.full((1, 3), 0.5), np.array([0.0])), np.random.default_rng(0)
    )
    assert np.isfinite(fitted.posterior(np.random.default_rng(0).random((4, 3))).mean).all()


def test_not_a_number_is_refused_with_a_remedy(data):
    with pytest.raises(NumericalError, match="not finite"):
        ExactGP.over(THREE).fit(Data(data.x, np.full(40, np.nan)), np.random.default_rng(0))
    with pytest.raises(NumericalError, match="not finite"):
        ExactGP.over(THREE).fit(Data(data.x * np.inf, data.y), np.random.default_rng(0))


def test_interpolates_a_noiseless_function():
    rng = np.random.default_rng(0)
    x = rng.random((60, 2))
    y = np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1])
    y = (y - y.mean()) / y.std()
    fitted = ExactGP.over((Column(), Column())).fit(Data(x, y), rng)
    assert np.abs(fitted.posterior(x).mean[:, 0] - y).max() < 0.01


def test_variances_keep_their_digits_where_points_crowd():
    mpmath.mp.dps = 40
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random((10, 2)), 0.5 + 0.01 * rng.random((10, 2))])
    parameters = {"mean": [0.0], "output_scale": [1.0], "length_scale": [1.5, 2.0], "noise": [1e-6]}
    fitted = ExactGP.over((Column(), Column())).restore(
        Data(x, x[:, 0]), {"parameters": parameters, "explored": 20}
    )
    asked = np.concatenate([x[-2:], 0.5 + 0.01 * rng.random((2, 2)), rng.random((1, 2))])

    def exact(one, other):
        s = mpmath.sqrt(
            5
            * sum(
                ((mpmath.mpf(a) - mpmath.mpf(b)) / length) ** 2
                for a, b, length in zip(one, other, (1.5, 2), strict=True)
            )
        )
        return (1 + s + s * s / 3) * mpmath.exp(-s)

    covariance = mpmath.matrix(
        [[exact(a, b) for b in x.tolist()] for a in x.tolist()]
    ) + mpmath.eye(20) * mpmath.mpf(1e-6)
    for point, variance in zip(asked.tolist(), fitted.posterior(asked).variance, strict=True):
        cross = mpmath.matrix([exact(point, b) for b in x.tolist()])
        expected = float(1 - (cross.T * mpmath.lu_solve(covariance, cross))[0])
        assert variance == pytest.approx(expected, rel=1e-6)


def test_a_fit_to_many_data_begins_with_a_part_unless_a_record_says_where(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.random((320, 2))
    many = Data(x, np.sin(6 * x[:, 0]) + 0.1 * rng.standard_normal(320))
    model = ExactGP.over((Column(), Column()))
    sizes = []

    def counted(posterior, starts, settings):
        sizes.append(posterior.size)
        return maximum_a_posteriori(posterior, starts, settings)

    monkeypatch.setattr("scrimp.surrogates.exact_gp.maximum_a_posteriori", counted)
    first = model.fit(many, np.random.default_rng(1))
    assert (
        sizes == [128]
        and first.state["explored"] == 320
        and set(first.state) == {"parameters", "explored"}
    )
    model.fit(many, np.random.default_rng(1), first.state)
    assert sizes == [128, 320]  # from the record, all data at once, as ever
    model.fit(many, np.random.default_rng(1), {"parameters": {"unknown": [1.0]}, "explored": 5})
    assert sizes == [128, 320, 128]


OF_TWO = ExactGP(
    MeanAndKernel(Matern52((Column(), Column())), None), search=SearchSettings(random_starts=2)
)
VECTOR = OF_TWO.vector
VALUES = np.array([0.3, 0.7, 0.01])


def test_round_trip():
    values, explored = recorded_values(VECTOR, record_of(VECTOR, VALUES, 40))
    np.testing.assert_allclose(values, VALUES)
    assert explored == 40


@pytest.mark.parametrize(("size", "starts", "explored"), [(41, 1, 40), (59, 1, 40), (60, 4, 60)])
def test_several_starts_once_the_data_have_grown_by_half(size, starts, explored):
    found = OF_TWO.starts(size, record_of(VECTOR, VALUES, 40), np.random.default_rng(0))
    assert (len(found[0]), found[1]) == (starts, explored)
    np.testing.assert_allclose(found[0][0], VALUES)


@pytest.mark.parametrize("state", [None, {"parameters": {"noise": [0.1]}, "explored": 40}])
def test_without_a_usable_record_every_start_is_tried(state):
    starts, explored = OF_TWO.starts(7, state, np.random.default_rng(0))
    assert len(starts) == 3 and explored == 7
    np.testing.assert_allclose(starts[0], VECTOR.initial)


def test_a_fit_of_another_model_is_refused():
    with pytest.raises(StudyError, match=r"'noise': 1.*'length_scale': 2.*fit again"):
        recorded_values(VECTOR, {"parameters": {"noise": [0.1]}, "explored": 40})
