"""Models of budgets: what is refused, when they are fitted anew, what they rest on."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.space.parameter import Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import Decided, Reported
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters import curve_models
from scrimp.suggesters.curve_models import (
    ADDITIVE,
    CurveSettings,
    curve_model,
    fit_curves,
    register_curve_model,
)
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.testing.policies import begin, pend

SPACE = Space(x=Float(0, 1), y=Float(0, 1))
LEVELS = (1.0, 3.0, 9.0)


def history_of(count, running=1, **limits):
    """Trial k paused at level 1, 3 or 9; ``running`` more trials have no report yet. ``limits``:
    the most each metric may be."""
    constraints = {name: AtMost(limit) for name, limit in limits.items()}
    history = begin(Problem(SPACE, budget=Budget("epoch", 1, 9), constraints=constraints))
    configs = SPACE.sample(count + running, np.random.default_rng(0))
    for number, config in enumerate(configs):
        level = LEVELS[(number % 9 == 0) + (number % 3 == 0)]
        history = pend(history, config, budget=level)
        steps = range(1, int(level) + 1) if number < count else ()
        history = history.with_events(
            [
                Reported(trial=number, step=k, metrics={"value": config["x"] + 1.0 / k, **config})
                for k in steps
            ]
        )
    return history


def fit(history, settings, seed=0):
    return fit_curves(history, encoding_of(SPACE), LEVELS, settings, np.random.default_rng(seed))


def learn(history, fits):
    """The history in which the record of a decision was written down."""
    return history.with_events(
        [Decided(decision=history.decisions, seen=history.length, record=DecisionRecord(fit=fits))]
    )


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gp"}, "no curve model 'gp' among deep_kernel"),
        ({"resource_kernel": "decay"}, "exp-decay-sum"),
        ({"data": "some"}, "rungs_and_last"),
        ({"kernel": "matern"}, "matern52-ard"),
        ({"model": "gp_expdecay"}, "set data='all'"),
        ({"model": "gp_issm", "data": "rungs_and_last"}, "set data='all'"),
        ({"model": "gp_independent", "data": "all"}, "set data='rungs'"),
        ({"max_data": 3}, "at least 10"),
        ({"refit_every": 0}, "at least 1"),
        ({"refit_steps": 0}, "at least 1"),
    ],
)
def test_what_does_not_go_together_is_refused(settings, words):
    with pytest.raises(MethodError, match=words):
        CurveSettings(**settings)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        *(("gp_multitask", data) for data in ("rungs", "rungs_and_last", "all")),
        ("gp_independent", "rungs"),
        *((model, "all") for model in ADDITIVE),
    ],
)
def test_every_model_learns_that_x_matters(model, data):
    curves = fit(history_of(18), CurveSettings(model, data=data))
    low, high = curves.fitted.mean(np.array([[0.1, 0.5, 1 / 9], [0.9, 0.5, 1 / 9]]))[:, 0]
    assert low < high - 0.5
    assert curves.pending.shape == (1, 3) and len(curves.configs) == 18
    assert len(curves.kept) == len(curves.fitted.data) == len(curves.share)


@pytest.mark.parametrize(
    "settings",
    [CurveSettings(), CurveSettings("gp_independent"), CurveSettings("gp_issm", data="all")],
)
def test_so_do_models_of_warped_columns(settings):
    curves = fit(history_of(18), replace(settings, input_warping=True))
    low, high = curves.fitted.mean(np.array([[0.1, 0.5, 1 / 9], [0.9, 0.5, 1 / 9]]))[:, 0]
    assert low < high - 0.3


def test_fits_follow_the_schedule():
    settings = CurveSettings(refit_from=10, refit_every=3)
    fits = None
    since = []
    for count in range(18, 25):
        history = learn(history_of(count), fits)
        fits = fit(history, settings).fits
        since.append(fits["gp_multitask"].since)
        again = fit(learn(history_of(count), fits), settings).fits  # nothing new: nothing to fit
        assert again == fits
    assert since == [0, 1, 2, 0, 1, 2, 0]
    more = learn(history_of(30), fits)
    assert fit(more, replace(settings, refit_from=100)).fits["gp_multitask"].since == 0


def test_later_fits_take_as_many_steps_as_they_are_given():
    """One step ends where fifty would not: the evidence of the longer fit is at least as good."""
    first = fit(history_of(18), CurveSettings())
    states = []
    for steps in (1, 50):
        later = fit(learn(history_of(27), first.fits), CurveSettings(refit_steps=steps))
        states.append(later.fits["gp_multitask"].state)
    assert states[0] != states[1]


def test_losses_are_capped_unless_told_otherwise():
    history = history_of(18)
    wild = history.with_events([Reported(trial=18, step=1, metrics={"value": 1e6})])
    capped, raw = (fit(wild, CurveSettings(cap=cap)).fitted for cap in (True, False))
    assert (
        capped.data.y.max() < 4.2 and raw.data.y.max() > 4.5
    )  # 27 of 28 are alike: (28 - 1) / sqrt(27) = 5.2


def test_a_restored_model_is_the_fitted_one_and_other_records_are_set_aside():
    history = history_of(18)
    settings = CurveSettings(refit_from=10, refit_every=9)
    first = fit(history, settings)
    history = learn(history, first.fits)
    again = fit(history, settings, seed=1)
    x = np.array([[0.3, 0.3, 1.0]])
    np.testing.assert_allclose(again.fitted.mean(x), first.fitted.mean(x), rtol=1e-9)
    other = fit(history, replace(settings, resource_kernel="matern52"))
    assert other.fits["gp_multitask"].since == 0


def test_a_record_of_another_kernel_is_no_beginning():
    history = history_of(18)
    old = fit(history, CurveSettings(resource_kernel="exp-decay-sum"))
    after, anew = fit(learn(history, old.fits), CurveSettings()), fit(history, CurveSettings())
    x = np.array([[0.3, 0.3, 1.0]])
    np.testing.assert_allclose(after.fitted.mean(x), anew.fitted.mean(x), rtol=1e-9)


def test_the_data_are_limited():
    curves = fit(history_of(30), CurveSettings(max_data=20))
    assert len(curves.fitted.data) == 20
    assert len(fit(history_of(30), CurveSettings(data="all", max_data=25, dense=True)).kept) == 25
    assert len(fit(history_of(30), CurveSettings(max_data=None)).kept) == 30 + 10 + 4


def test_a_kernel_without_a_scale_gets_one_per_level():
    model = curve_model(CurveSettings("gp_independent"), (Column(), Column()), LEVELS)
    sizes = {parameter.name: parameter.size for parameter in model.inner.vector.parameters}
    assert sizes == {"mean": 3, "level_scale": 3, "length_scale": 2, "noise": 1}


def test_violated_rows_teach_the_worst_loss_and_while_all_are_their_violation():
    plain = fit(history_of(20), CurveSettings())
    y = plain.data.x[:, 1]
    mixed = fit(history_of(20, y=0.5), CurveSettings())
    np.testing.assert_array_equal(mixed.data.y, np.where(y > 0.5, plain.data.y.max(), plain.data.y))
    hopeless = fit(history_of(20, y=-1.0), CurveSettings())
    np.testing.assert_allclose(hopeless.data.y, y + 1.0)
    assert mixed.of_losses and plain.of_losses and not hopeless.of_losses
    unreported = fit(history_of(20, memory=1.0), CurveSettings())
    np.testing.assert_array_equal(unreported.data.y, plain.data.y)


def test_curves_may_cross_in_a_continuous_space_and_share_a_decay_in_a_list():
    history = history_of(12)
    listed = Pool(SPACE, [dict(trial.config) for trial in history.trials])

    def parameters(space, settings):
        rng = np.random.default_rng(0)
        fitted = fit_curves(history, encoding_of(space), LEVELS, settings, rng).surrogate
        return {parameter.name for parameter in fitted.inner.vector.parameters}

    free, of_list = (parameters(space, CurveSettings()) for space in (SPACE, listed))
    assert free == parameters(SPACE, CurveSettings(resource_kernel="matern52-res-warp"))
    assert of_list == parameters(SPACE, CurveSettings(resource_kernel="exp-decay-sum"))
    assert free != of_list


@pytest.mark.parametrize(
    ("settings", "warped"),
    [
        (CurveSettings(resource_kernel="exp-decay-sum"), 2),
        (CurveSettings(resource_kernel="matern52"), 2),
        (CurveSettings(resource_kernel="matern52-res-warp"), 3),
        (CurveSettings(resource_kernel="cross-validation"), 2),
        (CurveSettings("gp_independent"), 2),
        (CurveSettings("gp_expdecay", data="all"), 2),
    ],
)
def test_columns_of_the_configuration_are_warped(settings, warped):
    """And the budget where its kernel says so."""
    powers = {
        parameter.name.removeprefix("left.").removeprefix("right."): parameter.size
        for parameter in curve_model(
            replace(settings, input_warping=True), (Column(), Column()), LEVELS
        ).inner.vector.parameters
        if "warping" in parameter.name
    }
    assert list(powers.values()) == [warped, warped], powers


def test_a_model_of_ones_own_learns_from_rows_with_shares(monkeypatch):
    monkeypatch.setattr(curve_models, "_MODELS", curve_models._MODELS.copy())
    handed = []

    def make(columns, shares):
        handed.append((len(columns), shares))
        return ExactGP.over((*columns, Column()))

    register_curve_model("mine", make)
    settings = CurveSettings("mine")
    curves = fit(history_of(18), settings)
    assert handed == [(2, (1 / 9, 1 / 3, 1.0))] and curves.fitted.data.x.shape[1] == 3
    low, high = curves.fitted.mean(np.array([[0.1, 0.5, 1 / 9], [0.9, 0.5, 1 / 9]]))[:, 0]
    assert low < high - 0.5
    with pytest.raises(MethodError, match="curve model 'gp_issm' is already registered"):
        register_curve_model("gp_issm", make)
