"""Hyper-Tune: weights of rungs, the bracket law, both ensembles, open degradation."""

import numpy as np
import pytest

import scrimp
from scrimp.acquisition.acquisition import Context
from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.errors import MethodError, NumericalError, StudyError
from scrimp.methods import hyper_tune
from scrimp.methods.hyper_tune import HyperTune, adaptive_law
from scrimp.plugins.settings import build
from scrimp.schedulers.rungs import bracket_law, geometric_levels
from scrimp.study_log.decision_record import Modelled
from scrimp.study_log.problem import Problem
from scrimp.suggesters.curve_models import CurveSettings
from scrimp.suggesters.curve_search import CurveSearch
from scrimp.surrogates.budget_levels import AtBudget
from scrimp.testing.acquisitions import random_posterior
from scrimp.testing.policies import PolicyBattery, World, play

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def curve(params, step, misleading):
    """The final bowl lies at (0.7, 0.2); early values may point to the opposite corner."""
    final = (params["x"] - 0.7) ** 2 + (params["y"] - 0.2) ** 2
    early = (params["x"] - 0.1) ** 2 + (params["y"] - 0.9) ** 2
    return 2.0 * early if misleading and step < 3 else final + 1.0 / step


def run(method, misleading=False, n_trials=40):
    study = scrimp.create_study(
        "h", SPACE, method=method, budget=scrimp.Budget("epoch", 1, 9), storage="memory://", seed=1
    )

    def objective(trial):
        for step in trial.steps():
            trial.report(value=curve(trial.params, step, misleading))

    study.optimize(objective, n_trials=n_trials)
    return study


class TestHyperTune(PolicyBattery):
    seeds, events, trials = range(1), 24, 6

    def policy(self):
        return build(HyperTune, {"brackets": 2, "fantasies": 3, "initial": 4})


@pytest.mark.parametrize(
    "policy",
    [
        build(HyperTune, {"brackets": None, "fantasies": 3}),
        build(HyperTune, {"type": "stopping", "model": "gp_multitask", "combine": "linear"}),
    ],
)
def test_keeps_the_rules_in_a_rough_world(policy):
    world = World(
        events=60, failing=0.1, vanishing=0.1, skipping=0.2, diverging=0.1, ending_early=0.05
    )
    assert not play(policy, world).degraded


def test_a_queued_configuration_costs_no_model_with_one_bracket(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a model was fitted")

    study = run("hypertune-indep", n_trials=8)
    monkeypatch.setattr(hyper_tune, "fit_curves", refuse)
    study.enqueue({"x": 0.123, "y": 0.5})
    while study.ask().params != {"x": 0.123, "y": 0.5}:  # promotions come first
        pass
    with pytest.raises(StudyError, match="a model was fitted"):
        study.ask()


def test_a_misleading_rung_loses_its_weight_and_its_bracket():
    true, false = (run("hypertune4-indep", misleading).history for misleading in (False, True))
    theta = {name: h.recorded.rung_weights.theta for name, h in (("true", true), ("false", false))}
    assert theta["false"][0] < 0.1 and theta["true"][0] > theta["false"][0]
    low = {
        name: np.mean([not trial.tag.get("bracket") for trial in h.trials[20:]])
        for name, h in (("true", true), ("false", false))
    }
    assert low["false"] < low["true"]


@pytest.mark.parametrize(
    "method",
    [
        "hypertune-indep",
        "hypertune-joint:combine=linear",
        "hypertune-indep:acquisition=ucb,input_warping=true",
        "hypertune-indep:acquisition=ei,combine=linear",
    ],
)
def test_finds_the_bowl(method):
    study = run(method, n_trials=25)
    assert study.best_value < 0.15 and not study.history.degraded
    assert study.history.recorded.reason.expected and study.history.recorded.rung_weights


def test_the_acquisition_is_mixed_over_rungs():
    """EI and log EI are the same mixture; that of the linear ensemble is another one."""
    theta, shares = np.array([0.4, 0.6]), np.array([1 / 3, 1.0])
    plain, other, linear = (
        policy._plan(Problem(SPACE), theta, shares, 1 / 3)
        for policy in (
            HyperTune(),
            HyperTune(search=CurveSearch(acquisition="ei")),
            HyperTune(combine="linear"),
        )
    )
    model = random_posterior(seed=1, d=3)
    context = Context(evaluated=model.data.x[:, :-1])
    x = np.random.default_rng(0).uniform(size=(5, 2))
    scores = [plan.bind({"loss": model}, context)(x) for plan in (plain, other, linear)]
    np.testing.assert_allclose(scores[0], scores[1])
    assert not np.allclose(scores[0], scores[2])
    parts = [
        LogExpectedImprovement().bind({"loss": AtBudget(model, share)}, context)(x)
        for share in (1 / 3, 1.0)
    ]
    np.testing.assert_allclose(scores[0], np.log(0.4 * np.exp(parts[0]) + 0.6 * np.exp(parts[1])))


def test_the_weights_are_estimated_anew_only_when_the_top_has_changed():
    history = run("hypertune-indep", n_trials=25).history
    record = [event.record for event in history.events if event.__class__.__name__ == "Decided"]
    seen = [
        (note.rung_weights.level, note.rung_weights.count)
        for note in record
        if note.rung_weights is not None
    ]
    assert len(seen) == len({tuple(pair) for pair in seen}) and len(seen) < sum(
        isinstance(note.reason, Modelled) for note in record
    )


def test_as_published_weights_wait_for_full_trainings():
    """Six runs to the end are what they need; before that the lowest rung has all weight."""
    early, late = (
        run(f"hypertune-indep:wait_for_full={flag}", n_trials=25).history
        for flag in ("false", "true")
    )
    seen = [
        [note.rung_weights.level for note in notes_of(history) if note.rung_weights is not None]
        for history in (early, late)
    ]
    top = len(HyperTune().scheduler.levels(late.problem)) - 1
    assert min(seen[0]) < top and set(seen[1]) <= {top}


def notes_of(history):
    return [event.record for event in history.events if event.__class__.__name__ == "Decided"]


def test_promotion_may_be_delayed_as_published():
    policy = build(HyperTune, {"cutoff": "delayed"})
    assert policy.scheduler.cutoff == "delayed"
    assert len(play(policy, World(n_trials=9, events=300)).trials) == 9
    with pytest.raises(MethodError, match="cutoff is 'late'"):
        build(HyperTune, {"cutoff": "late"})


def test_the_law_of_brackets():
    levels = geometric_levels(1, 200)
    default = bracket_law(levels, 4)
    law = adaptive_law(default, levels, [0.1, 0.3, 0.6])
    mass = sum(default[:3])
    raw = np.array([0.1 / 1, 0.3 / 3, 0.6 / 9])
    np.testing.assert_allclose(law[:3], mass * raw / raw.sum())
    assert law[3] == default[3] and sum(law) == pytest.approx(1.0)
    assert adaptive_law(default, levels, [1.0]) == default  # only the lowest level is supported
    assert adaptive_law(default[:1], levels, [0.0, 1.0]) == default[:1]  # no bracket has any weight
    assert sum(adaptive_law(default[:2], levels, [0.2, 0.3, 0.5])) == pytest.approx(
        sum(default[:2])
    )


def test_failing_models_give_way_and_say_so(monkeypatch):
    study = run("hypertune-joint", n_trials=10)
    fit = hyper_tune.fit_curves

    def broken(history, encoding, levels, settings, rng):
        if settings.model == "gp_multitask":
            raise NumericalError("no factor")
        return fit(history, encoding, levels, settings, rng)

    monkeypatch.setattr(hyper_tune, "fit_curves", broken)
    study.ask()
    assert (
        study.history.degraded[-1][1] == "gp_multitask failed (no factor); gp_independent instead"
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gp_issm"}, "whole curves and cannot learn from data='rungs'"),
        ({"model": "gp"}, "no curve model 'gp'"),
        ({"combine": "sum"}, "mixture, linear"),
        ({"acquisition": "eei"}, "did you mean 'ei'"),
        ({"acquisition": "thompson"}, "not a formula of the mean"),
        ({"samples": 0}, "samples is 0"),
        ({"brackets": 0}, "brackets is 0"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(MethodError, match=words):
        build(HyperTune, settings)


def test_a_model_that_keeps_no_rungs_apart_is_refused():
    search = CurveSearch(CurveSettings("gp_issm", data="all"))
    with pytest.raises(MethodError, match="additive model 'gp_issm'"):
        HyperTune(search=search)
