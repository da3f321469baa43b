"""Predictions: recomputed from the log with scikit-learn, in the user's units and directions, by
every method that has a model."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as peer

import scrimp
from scrimp.errors import MethodError, StudyError
from scrimp.methods.named_methods import predicting_methods
from scrimp.study_log.events import Decided
from scrimp.transfer.combinations import WeightedEnsemble

SPACE = scrimp.Space(a=scrimp.Float(0, 1), b=scrimp.Float(1e-3, 1.0, log=True))
PLACES = [{"a": 0.2, "b": 0.01}, {"a": 0.9, "b": 0.5}, {"a": 0.55, "b": 0.03}]


def encoded(configs):
    return np.array([[c["a"], np.log(c["b"] / 1e-3) / np.log(1e3)] for c in configs])


def error_of(config):
    return (config["a"] - 0.6) ** 2 + 0.3 * (np.log10(config["b"]) + 1.5) ** 2


def told(method, count=14, **settings):
    study = scrimp.create_study("s", SPACE, method=method, storage="memory://", seed=0, **settings)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, error_of(trial.params))
    return study


def recorded_fit(study, name="loss"):
    """The newest fit of that name in the log."""
    fits = [
        event.record.fit[name]
        for event in study.history.events
        if isinstance(event, Decided) and event.record.fit and name in event.record.fit
    ]
    return fits[-1].state


def recomputed(study, state, steps):
    """The normal belief (mean, std) at the places, in units of the transformed targets."""
    x, y = encoded([t.params for t in study.trials]), np.array([t.value for t in study.trials])
    for step in steps:
        y = step(y)
    values = state["parameters"]
    kernel = peer.ConstantKernel(values["output_scale"][0]) * peer.Matern(
        values["length_scale"], nu=2.5
    )
    gp = GaussianProcessRegressor(kernel, alpha=values["noise"][0], optimizer=None)
    gp.fit(x, y - values["mean"][0])
    mean, std = gp.predict(encoded(PLACES), return_std=True)
    return mean + values["mean"][0], std


def linear(step):
    return lambda y: (y - step["centre"]) / step["spread"]


def test_a_plain_model_agrees_with_scikit_learn_on_the_recorded_hyperparameters() -> None:
    study = told("gp:transform=standardise")
    state = recorded_fit(study)
    cap, scale = state["steps"]
    steps = [lambda y: np.minimum(y, cap["cap"]), linear(scale)]
    mean, std = recomputed(study, state["inner"], steps)
    found = study.predict(PLACES)
    assert found.names == ("value",) and found.at is None
    expected = scale["centre"] + scale["spread"] * mean
    np.testing.assert_allclose(found.mean[:, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(found.std[:, 0], scale["spread"] * std, rtol=1e-5)
    noise = np.sqrt(state["inner"]["parameters"]["noise"][0]) * scale["spread"]
    np.testing.assert_allclose(found.noise[:, 0], noise, rtol=1e-6)


def test_intervals_hold_reports_with_their_noise() -> None:
    study = told("gp:transform=standardise,noise_floor=0.1")
    found = study.predict(PLACES)
    low, high = found.interval(0.9)
    spread = np.sqrt(found.std**2 + found.noise**2)
    np.testing.assert_allclose(low, found.mean - 1.6448536 * spread, rtol=1e-6)
    np.testing.assert_allclose(high, found.mean + 1.6448536 * spread, rtol=1e-6)
    assert (found.noise > 0.2 * found.std).any()
    with pytest.raises(StudyError, match="share is 90"):
        found.interval(90)


def test_a_power_is_integrated() -> None:
    """The moments of the back-transformed normal belief, by a million quantiles."""
    study = told("gp:transform=power")
    state = recorded_fit(study)
    cap, first, power, second = state["steps"]

    def forward(y):
        return linear(second)(stats.yeojohnson(y, power["exponent"]))

    steps = [lambda y: np.minimum(y, cap["cap"]), linear(first), forward]
    mean, std = recomputed(study, state["inner"], steps)
    grid = np.linspace(power["low"], power["high"], 200_001)
    edges = forward(grid)
    slopes = np.diff(grid[[0, 1, -2, -1]])[[0, 2]] / np.diff(edges[[0, 1, -2, -1]])[[0, 2]]
    found = study.predict(PLACES)
    quantiles = stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    for place in range(len(PLACES)):
        z = mean[place] + std[place] * quantiles
        y = np.interp(z, edges, grid)
        y += np.minimum(z - edges[0], 0.0) * slopes[0] + np.maximum(z - edges[-1], 0.0) * slopes[1]
        values = first["centre"] + first["spread"] * y
        assert found.mean[place, 0] == pytest.approx(values.mean(), rel=1e-3)
        assert found.std[place, 0] == pytest.approx(values.std(), rel=2e-2)


def test_constraints_and_cost_have_columns_in_their_own_units() -> None:
    study = scrimp.create_study(
        "s",
        SPACE,
        direction="maximize",
        metric="score",
        constraints={"memory": scrimp.AtMost(6.0), "recall": scrimp.AtLeast(0.2)},
        cost="seconds",
        method="gp",
        storage="memory://",
        seed=0,
    )

    def measured(config):
        return {
            "score": -error_of(config),
            "memory": 2.0 + 6.0 * config["a"],
            "recall": 1.0 - config["a"],
            "seconds": 10.0 * np.exp(2.0 * config["a"]),
        }

    for _ in range(20):
        trial = study.ask()
        study.tell(trial, measured(trial.params))
    config = study.trials[4].params
    found = study.predict([config, {"a": 0.31, "b": 0.07}])
    assert found.names == ("score", "memory", "recall", "seconds")
    for place, params in enumerate((config, {"a": 0.31, "b": 0.07})):
        expected = np.array(list(measured(params).values()))
        apart = np.abs(found.mean[place] - expected)
        assert (apart <= 4.0 * found.std[place] + 0.03 * np.abs(expected) + 1e-3).all()
    draws = found.samples(4000, seed=1)
    assert draws.shape == (4000, 2, 4) and (draws[:, :, 3] > 0.0).all()
    np.testing.assert_allclose(draws.mean(axis=0), found.mean, atol=5e-3, rtol=0.02)
    assert (
        study.predict(config).samples(5, seed=3) == study.predict(config).samples(5, seed=3)
    ).all()


def test_nothing_is_fitted_and_nothing_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    study = told("gp")
    before = len(study.history.events)

    def refuse(*_: object) -> None:
        raise AssertionError("a model was fitted")

    with monkeypatch.context() as patch:
        patch.setattr("scrimp.surrogates.exact_gp.maximum_a_posteriori", refuse)
        first = study.predict(PLACES)
        np.testing.assert_array_equal(first.mean, study.predict(PLACES).mean)
    assert len(study.history.events) == before


def trained(method, url, learn_from=None, trials=16):
    study = scrimp.create_study(
        f"now-{method}".replace(":", "-").replace("=", "-"),
        SPACE,
        direction="maximize",
        metric="score",
        budget=None if learn_from else scrimp.Budget("epoch", 1, 9),
        method=method,
        learn_from=learn_from,
        storage=url,
        seed=0,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(score=-error_of(trial.params) - 1.0 / step)

    study.optimize(objective, n_trials=trials, progress=False)
    return study


@pytest.fixture(scope="module")
def url():
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:///{Path(folder)}/s.db"
        for number in range(3):
            past = scrimp.create_study(
                f"past{number}", SPACE, method="sobol", storage=place, seed=0
            )
            for _ in range(16):
                trial = past.ask()
                past.tell(trial, error_of(trial.params) + 0.1 * number)
        yield place


CURVES = [
    "mobster-joint",
    "mobster-indep",
    "hypertune-indep",
    "dyhpo",
    "freeze-thaw",
    "mobster-joint:model=gp_expdecay,data=all",
]


@pytest.mark.parametrize("method", CURVES)
def test_curve_models_predict_at_any_budget(method, url) -> None:
    study = trained(method, url)
    best = study.best_trial
    early, late = study.predict(best.params, at=1), study.predict(best.params)
    assert late.at == (9.0,) and early.at == (1.0,) and late.names == ("score",)
    for found, budget in ((early, 1.0), (late, 9.0)):
        if best.budget >= budget:
            expected = -error_of(best.params) - 1.0 / budget
            assert abs(found.mean[0, 0] - expected) < 3.0 * found.std[0, 0] + 0.08
    assert early.mean[0, 0] < late.mean[0, 0] - 0.4
    several = study.predict([best.params] * 3, at=[1.0, 3.0, 9.0])
    assert (np.diff(several.mean[:, 0]) > 0).all()
    np.testing.assert_allclose(several.mean[[0, 2], 0], [early.mean[0, 0], late.mean[0, 0]])
    draws = several.samples(3000, seed=0)[:, :, 0]
    np.testing.assert_allclose(draws.std(axis=0), several.std[:, 0], rtol=0.15, atol=1e-3)


@pytest.mark.parametrize("method", ["rgpe", "taf-r", "pogpe", "task-prior"])
def test_transfer_methods_predict(method, url) -> None:
    study = trained(method, url, learn_from=["past0", "past1", "past2"], trials=10)
    found = study.predict([study.best_params, PLACES[0]])
    assert found.mean[0, 0] == pytest.approx(study.best_value, abs=0.05)
    assert found.std[0, 0] < 0.1 and (found.std > 0.0).all()


def test_recorded_weights_of_past_studies_are_used(url, monkeypatch) -> None:
    """The weights of RGPE are drawn; a prediction reads those that decided."""
    study = trained("rgpe:samples=20", url, learn_from=["past0", "past1", "past2"], trials=9)
    ensembles = []

    def noticed(target, sources, weights, variance):
        ensembles.append(weights)
        return WeightedEnsemble(target, sources, weights, variance)

    monkeypatch.setattr("scrimp.transfer.transfer_suggester.WeightedEnsemble", noticed)
    study.predict(PLACES)
    again = scrimp.load_study(study.name, storage=url)
    again.predict(PLACES)
    noted = study.history.recorded.sources.weights
    expected = [noted.get(name, 0.0) for name in ("past0", "past1", "past2", "this study")]
    for weights in ensembles:
        np.testing.assert_allclose(weights, expected, atol=1e-12)
    assert len(ensembles) == 2


@pytest.mark.parametrize("method", ["gp", "freeze-thaw", "mobster-joint"])
def test_a_prediction_changes_no_decision(method) -> None:
    def asked(predicting):
        study = scrimp.create_study(
            "s",
            SPACE,
            method=method,
            budget=None if method == "gp" else scrimp.Budget("epoch", 1, 9),
            storage="memory://",
            seed=3,
        )
        found = []
        for _ in range(14):
            trial = study.ask()
            for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
                study.report(trial, step=step, value=error_of(trial.params) + 1.0 / step)
            if predicting and len(study.trials) > 2:
                study.predict(PLACES)
            found.append((trial.id, trial.params, trial.granted))
        return found

    assert asked(True) == asked(False)


def test_methods_without_a_model_name_those_with_one() -> None:
    study = told("tpe")
    with pytest.raises(MethodError, match=r"method 'tpe' has no model .*gp, .*freeze-thaw"):
        study.predict(PLACES)
    names = predicting_methods()
    assert {"gp", "mobster-joint", "hypertune-indep", "dyhpo", "freeze-thaw", "rgpe"} <= set(names)
    assert not {"random", "tpe", "asha", "dehb", "portfolio", "parego", "auto"} & set(names)


def test_wrong_questions_are_refused() -> None:
    study = scrimp.create_study(
        "s",
        SPACE,
        method="mobster-joint",
        budget=scrimp.Budget("epoch", 1, 9),
        storage="memory://",
        seed=0,
    )
    with pytest.raises(StudyError, match="no finite result"):
        study.predict(PLACES)
    with pytest.raises(StudyError, match="at most 9"):
        study.predict(PLACES, at=10)
    with pytest.raises(StudyError, match="2 budgets for 3"):
        study.predict(PLACES, at=[1, 2])
    with pytest.raises(StudyError, match="no configurations"):
        study.predict([])
    plain = told("gp")
    with pytest.raises(StudyError, match="no training budget"):
        plain.predict(PLACES, at=3)
    with pytest.raises(scrimp.errors.ConfigError):
        plain.predict({"a": 7.0, "b": 0.1})
    last = scrimp.create_study(
        "l", SPACE, method="gp", budget=scrimp.Budget("epoch", 1, 9), storage="memory://", seed=0
    )
    last.tell(last.ask(), 0.5)
    with pytest.raises(MethodError, match="leave `at` out"):
        last.predict(PLACES, at=3)


def test_several_metrics_and_one_trade_off() -> None:
    metrics = {"error": "minimize", "speed": "maximize"}
    study = scrimp.create_study("s", SPACE, metrics=metrics, storage="memory://", seed=0)
    for _ in range(12):
        trial = study.ask()
        values = {"error": error_of(trial.params), "speed": 10.0 * trial.params["a"]}
        study.tell(trial, values)
    found = study.predict({"a": 0.5, "b": 0.05})
    assert found.names == ("error", "speed")
    assert found.mean[0, 1] == pytest.approx(5.0, abs=0.5)
    drawn = scrimp.create_study(
        "d", SPACE, metrics=metrics, method="parego", storage="memory://", seed=0
    )
    for _ in range(6):
        drawn.tell(drawn.ask(), {"error": 1.0, "speed": 2.0})
    with pytest.raises(MethodError, match="one trade-off"):
        drawn.predict(PLACES)


def test_tables_and_json_have_the_same_numbers() -> None:
    study = told("gp")
    found = study.predict(PLACES[:2])
    frame = found.dataframe()
    assert list(frame.columns) == ["a", "b", "value", "value_std", "value_noise"]
    np.testing.assert_array_equal(frame["value"], found.mean[:, 0])
    (first, _) = found.to_json()
    assert first["params"] == PLACES[0] and first["at"] is None
    assert first["metrics"]["value"]["std"] == found.std[0, 0]


@pytest.mark.parametrize("configs", [3, None, "lr=1"])
def test_what_is_no_list_of_configurations_is_refused(configs: Any) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://", seed=0
    )
    with pytest.raises(StudyError, match="it must be a configuration or a list of them"):
        study.predict(configs)


@pytest.mark.parametrize("count", [0, -1, 2.5, "many"])
def test_samples_takes_a_number_of_draws(count: Any) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://", seed=0
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=8)
    with pytest.raises(StudyError, match="it must be a whole number of draws, at least 1"):
        study.predict({"x": 0.5}).samples(count)
