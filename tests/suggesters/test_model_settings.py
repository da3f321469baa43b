"""Settings of the models: fixed noise, where fits start, fits without priors, a model or a function of
the cost."""

from collections.abc import Sequence

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import scrimp
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import Flat
from scrimp.gp.kernel import Sum
from scrimp.gp.stationary import Matern52, register_kernel
from scrimp.suggesters import model_settings
from scrimp.suggesters.bayesian import KnownCost
from scrimp.suggesters.model_settings import ModelSettings, loss_model, register_cost
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Array, Data
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.testing.acquisitions import finite_differences

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def parameters(method: str, count: int = 9) -> dict[str, list[float]]:
    """The hyperparameters of the latest fit to noisy values."""
    rng = np.random.default_rng(0)
    study = scrimp.create_study("s", SPACE, method=method, storage="memory://", seed=1)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, trial.params["x"] ** 2 + 0.2 * float(rng.standard_normal()))
    assert not study.history.degraded
    return dict(study.history.recorded.fit["loss"].state["inner"]["parameters"])


def test_a_fixed_noise_is_not_learned() -> None:
    for noise in (0.3, 1e-4):
        found = parameters(f"gp:noise={noise},transform=plain")
        assert found["noise"] == [pytest.approx(noise)]
    assert parameters("gp:transform=plain")["noise"] != [pytest.approx(0.3)]


def fitted(settings: ModelSettings, x: Array, y: Array) -> FittedGP:
    model = loss_model(encoding_of(SPACE).columns, settings)
    found = model.fit(Data(x, y), np.random.default_rng(0))
    assert isinstance(found, FittedTransformed) and isinstance(found.inner, FittedGP)
    return found.inner


def log_likelihood(model: FittedGP) -> float:
    whitened, count = model.whitened[:, 0], len(model.data)
    size = np.log(np.diagonal(model.factor)).sum() + 0.5 * count * np.log(2 * np.pi)
    return float(-0.5 * whitened @ whitened - size)


def test_fits_without_priors_maximise_the_likelihood_like_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    x = rng.random((25, 2))
    y = np.sin(6 * x[:, 0]) + 0.3 * x[:, 1] + 0.1 * rng.standard_normal(25)
    settings = ModelSettings(kernel="matern52-noard", transform="plain", priors=False, restarts=8)
    plain = fitted(settings, x, y)
    theirs = GaussianProcessRegressor(
        ConstantKernel(1.0, (1e-2, 1e2)) * Matern(1.0, (0.02, 200.0), nu=2.5)
        + WhiteKernel(0.1, (1e-6, 1.0)),
        n_restarts_optimizer=8,
        random_state=0,
    ).fit(x, (y - y.mean()) / y.std())
    # ours learns a constant mean as well, so it may only be better
    assert log_likelihood(plain) > theirs.log_marginal_likelihood_value_ - 0.01
    assert plain.length_scales[0] == pytest.approx(theirs.kernel_.k1.k2.length_scale, rel=0.2)
    with_priors = fitted(ModelSettings(kernel="matern52-noard", transform="plain"), x, y)
    assert log_likelihood(plain) > log_likelihood(with_priors) + 1e-3


def test_fits_start_at_the_length_scale() -> None:
    for settings in (
        ModelSettings(length_scale=2.0),
        ModelSettings(length_scale=2.0, priors=False),
    ):
        model = loss_model((Column(), Column()), settings)
        assert isinstance(model.inner, ExactGP)
        starts = model.inner.vector.to_json(model.inner.vector.initial)
        assert starts["length_scale"] == [2.0, 2.0]


def test_a_flat_density_draws_all_over_its_bounds() -> None:
    draws = Flat(0.01, 100.0).sample(2000, np.random.default_rng(0))
    # half of the logarithms below 1: standard error 0.011, five of them allowed
    assert abs((draws < 1.0).mean() - 0.5) < 0.056 and draws.min() < 0.02 and draws.max() > 50.0
    both = Flat(-1.0, 3.0)
    assert both.mode == 1.0 and abs(both.sample(2000, np.random.default_rng(0)).mean() - 1.0) < 0.13
    value, slope = both.log_density_and_gradient(np.array([0.5, 2.0]))
    assert not value.any() and not slope.any()


def test_settings_that_do_not_go_together() -> None:
    with pytest.raises(MethodError, match=r"noise is 0.1, which is fixed, and mcmc samples it"):
        ModelSettings(noise=0.1, mcmc=True)
    with pytest.raises(MethodError, match="length_scale is 1000"):
        ModelSettings(length_scale=1000.0)

    def summed(columns: Sequence[Column]) -> Sum:
        return Sum(Matern52(columns), Matern52(columns))

    register_kernel("summed-for-a-test", summed)
    with pytest.raises(MethodError, match=r"need a kernel that is Scaled\(Stationary\)"):
        ModelSettings(kernel="summed-for-a-test", priors=False)
    with pytest.raises(MethodError, match="there is no cost function 'magic'"):
        ModelSettings(cost_function="magic")
    with pytest.raises(MethodError, match="there is no surrogate 'magic'"):
        ModelSettings(cost_surrogate="magic")


def tried(method: str, **settings: object) -> list[float]:
    """The x of ten trials of a loss that hardly depends on it."""
    study = scrimp.create_study("s", SPACE, method=method, storage="memory://", seed=2, **settings)
    for _ in range(10):
        trial = study.ask()
        value = (trial.params["y"] - 0.4) ** 2 + 0.01 * np.sin(20 * trial.params["x"])
        study.tell(trial, {"value": float(value), "seconds": 1.0})
    return [trial.params["x"] for trial in study.trials]


def test_a_known_cost_draws_decisions_to_where_it_is_low() -> None:
    register_cost("steep", lambda params: float(np.exp(8 * params["x"])))
    known, free = tried("gp:cost_function=steep,patience=0"), tried("gp:patience=0")
    assert np.mean(known[3:]) < np.mean(free[3:]) - 0.1
    with pytest.raises(MethodError, match="so cost_surrogate has no effect"):
        tried("gp:cost_function=steep,cost_surrogate=gp")
    # a study that reports another cost uses the known one all the same
    assert tried("gp:cost_function=steep,patience=0", cost="seconds")[3:] == pytest.approx(
        known[3:], abs=1e-6
    )
    assert tried("gp:cost_function=steep,patience=0,cost_exponent=0")[3:] == pytest.approx(
        free[3:], abs=1e-6
    )


def test_the_slope_of_a_known_cost() -> None:
    register_cost("bowl", lambda params: 1.0 + params["x"] ** 2 + params["k"] + params["n"])
    space = scrimp.Space(x=scrimp.Float(0, 2), k=scrimp.Int(1, 3), n=scrimp.Int(1, 100_000))
    encoding = encoding_of(space)
    cost = KnownCost(encoding, "bowl")
    x = encoding.domain.sample(6, np.random.default_rng(0))
    value, slope = cost(x)
    expected = [np.log(1.0 + c["x"] ** 2 + c["k"] + c["n"]) for c in encoding.decode(x)]
    np.testing.assert_allclose(value, expected)
    numeric = finite_differences(lambda rows: cost(rows)[0], x)
    np.testing.assert_allclose(slope[:, 0], numeric[:, 0], atol=1e-3)
    assert not slope[:, 1].any() and (slope[:, 2] > 0).all()


def test_a_cost_that_is_no_positive_number_is_refused() -> None:
    register_cost("free", lambda params: 0.0)
    with pytest.raises(MethodError, match=r"cost function 'free' returned 0.0 for .* above 0"):
        tried("gp:cost_function=free")


def test_the_cost_may_have_a_model_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_settings, "_SURROGATES", model_settings._SURROGATES.copy())
    model_settings.register_surrogate("rough", lambda columns: ExactGP.over(columns, "rbf-noard"))
    study = scrimp.create_study(
        "s",
        SPACE,
        method="gp:cost_surrogate=rough,transform=plain",
        storage="memory://",
        cost="seconds",
        seed=0,
    )
    for _ in range(7):
        trial = study.ask()
        study.tell(trial, {"value": trial.params["x"], "seconds": 1.0 + trial.params["y"]})
    fits = study.history.recorded.fit
    sizes = {
        name: len(fit.state["inner"]["parameters"]["length_scale"]) for name, fit in fits.items()
    }
    assert sizes == {"loss": 2, "cost": 1}
