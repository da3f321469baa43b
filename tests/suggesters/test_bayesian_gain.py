"""The gain left by the models of a Gaussian process, beside expected improvement in closed form."""

import math

import numpy as np
import pytest

import scrimp
from scrimp.acquisition.improvement import log_expected_improvement
from scrimp.encoding.encoding import encoding_of
from scrimp.encoding.training_data import training_data
from scrimp.suggesters import bayesian
from scrimp.suggesters.bayesian import BayesianSuggester, gain_of_models
from scrimp.suggesters.fit_and_choose import fit_models
from scrimp.suggesters.model_settings import ModelSettings

pytestmark = pytest.mark.filterwarnings("ignore:method 'random' does not weigh the cost")

LINE = scrimp.Space(x=scrimp.Float(0, 1))


def played(space: scrimp.Space, count: int, **more: object) -> scrimp.Study:
    study = scrimp.create_study(
        "g", space, method="random", metric="loss", storage="memory://", seed=0, **more
    )
    for _ in range(count):
        trial = study.ask()
        x = float(trial.params["x"])
        study.tell(trial, {"loss": math.sin(9 * x), "size": x, "price": 1 + 9 * x})
    return study


def gain(study: scrimp.Study, trials: float = math.inf) -> tuple[float, float]:
    history = study.history
    encoding = encoding_of(history.problem.space)
    training = training_data(history, encoding)
    rng = np.random.default_rng(0)
    models = fit_models(history, training, encoding.columns, ModelSettings(transform="plain"), rng)
    left = gain_of_models(models, training, encoding, (trials, 1.0), rng)
    return left.expected, left.per_cost


def test_of_one_candidate_it_is_its_expected_improvement(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of six rows, five of them tried: both numbers are the EI of the sixth."""
    monkeypatch.setattr(bayesian, "OUTCOME_DRAWS", 40_000)
    pool = scrimp.Pool(LINE, [{"x": x} for x in (0.5, 0.2, 0.35, 0.7, 0.9, 0.0)])
    study = played(pool, 5)
    expected, per_cost = gain(study)
    history = study.history
    encoding = encoding_of(pool)
    training = training_data(history, encoding)
    models = fit_models(
        history,
        training,
        encoding.columns,
        ModelSettings(transform="plain"),
        np.random.default_rng(0),
    )
    loss = models.fitted["loss"]
    untried = [c for c in pool.configs if c not in [dict(t.config) for t in history.trials]]
    posterior = loss.posterior(encoding.encode(untried))
    best = loss.mean(models.evaluated).min()
    log_ei = log_expected_improvement(
        posterior.mean[:, 0], np.sqrt(posterior.variance), np.array([best])
    )
    unit = float(loss.target_units(np.array([1.0]))[0] - loss.target_units(np.array([0.0]))[0])
    exact = unit * math.exp(log_ei[0])
    assert expected == pytest.approx(exact, rel=0.1) and per_cost == pytest.approx(exact, rel=0.1)


def test_it_shrinks_with_the_trials_that_are_left_and_as_the_model_learns() -> None:
    study = played(LINE, 4)
    few, many = gain(study, 1)[0], gain(study, 50)[0]
    assert 0.0 < few <= many
    assert gain(study, 0)[0] == 0.0
    assert gain(played(LINE, 25))[0] < 0.1 * many


def test_what_violates_a_constraint_is_no_gain() -> None:
    free, bound = (
        gain(played(LINE, 6, constraints=limits))[0]
        for limits in ({}, {"size": scrimp.AtMost(0.05)})
    )
    assert bound < 0.2 * free or bound == math.inf


def test_costs_divide_the_gain_of_a_trial() -> None:
    plain, dear = gain(played(LINE, 6))[1], gain(played(LINE, 6, cost="price"))[1]
    assert dear < plain


def test_before_the_model_decides_nothing_is_known() -> None:
    study = played(LINE, 1)
    left = BayesianSuggester().gain_left(study.history, math.inf, np.random.default_rng(0))
    assert left.expected == math.inf
