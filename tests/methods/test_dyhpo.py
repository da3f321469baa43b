"""DyHPO: slices by expected improvement, the coin of successive halving, open degradation."""

import numpy as np
import pytest

import scrimp
from scrimp.acquisition.improvement import ExpectedImprovement, expected_improvement
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError, NumericalError
from scrimp.methods import dyhpo
from scrimp.methods.dyhpo import DyHPO, improvements
from scrimp.plugins.settings import build
from scrimp.study_log.decision_record import Modelled, Promoted
from scrimp.study_log.events import Decided, StudyChanged
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Problem
from scrimp.suggesters.curve_models import CurveSettings, fit_curves
from scrimp.suggesters.curve_search import CurveSearch
from scrimp.testing.policies import PolicyBattery, World, play

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def study_of(n_trials, method="dyhpo", **more):
    study = scrimp.create_study(
        "d",
        SPACE,
        method=method,
        budget=scrimp.Budget("epoch", 1, 6),
        storage="memory://",
        seed=2,
        **more,
    )

    def objective(trial):
        for step in trial.steps():
            trial.report(
                value=(trial.params["x"] - 0.7) ** 2 + 0.2 * trial.params["y"] + 0.5 / step
            )

    study.optimize(objective, n_trials=n_trials)
    return study


class TestDyHPO(PolicyBattery):
    seeds, events, trials = range(1), 16, 4

    def policy(self):
        return DyHPO(CurveSearch(fantasies=3, candidates=10, initial=3))


@pytest.mark.parametrize(
    "policy",
    [
        build(DyHPO, {"fantasies": 3}),
        build(DyHPO, {"probability_sh": 0.0, "increment": 4, "candidates": 20}),
        build(DyHPO, {"fantasies": 3, "acquisition": "ucb", "input_warping": True}),
    ],
)
def test_keeps_the_rules_in_a_rough_world(policy):
    world = World(
        events=60, failing=0.1, vanishing=0.1, skipping=0.2, diverging=0.1, ending_early=0.05
    )
    assert not play(policy, world).degraded


def test_slices_are_one_rung_long_and_the_better_half_gets_more():
    study = study_of(14)
    for trial in study.trials:
        steps = [point.step for point in trial.curve]
        assert steps == list(np.arange(1.0, len(steps) + 1))
    reached = np.array([trial.budget for trial in study.trials])
    loss = np.array(
        [(trial.params["x"] - 0.7) ** 2 + 0.2 * trial.params["y"] for trial in study.trials]
    )
    best = loss < np.median(loss)
    assert reached[best].mean() > reached[~best].mean()
    assert study.history.recorded.reason.sides is not None and not study.history.degraded


def test_scores_are_improvements_at_the_own_rung():
    history = study_of(10).history
    settings = CurveSettings(refit_every=3)
    curves = fit_curves(
        history,
        encoding_of(SPACE),
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        settings,
        np.random.default_rng(0),
    )
    rows = np.array([[0.2, 0.3, 1 / 6], [0.6, 0.1, 3 / 6], [0.6, 0.1, 0.93]])
    posterior = curves.fitted.posterior(rows)
    means = curves.fitted.mean(curves.data.x)[:, 0]
    for k, share in enumerate((1 / 6, 3 / 6, None)):
        here = (
            np.ones(len(means), dtype=bool)
            if share is None
            else np.isclose(curves.data.x[:, -1], share)
        )
        expected = expected_improvement(
            posterior.mean[k], np.sqrt(posterior.variance[k : k + 1]), means[here].min()
        )
        np.testing.assert_allclose(
            np.exp(improvements(curves.fitted, curves, rows)[k]), expected[0], rtol=1e-6
        )


def test_improvement_may_be_over_what_was_observed_as_published():
    history = study_of(10).history
    curves = fit_curves(
        history, encoding_of(SPACE), tuple(range(1, 7)), CurveSettings(), np.random.default_rng(0)
    )
    rows = np.array([[0.2, 0.3, 1 / 6], [0.6, 0.1, 3 / 6], [0.6, 0.1, 0.93]])
    targets, posterior = curves.fitted.data.y, curves.fitted.posterior(rows)
    scores = improvements(curves.fitted, curves, rows, observed=True)
    for k, share in enumerate((1 / 6, 3 / 6, None)):
        here = (
            np.ones(len(targets), dtype=bool)
            if share is None
            else np.isclose(curves.data.x[:, -1], share)
        )
        expected = expected_improvement(
            posterior.mean[k], np.sqrt(posterior.variance[k : k + 1]), targets[here].min()
        )
        np.testing.assert_allclose(np.exp(scores[k]), expected[0], rtol=1e-6)
    with pytest.raises(MethodError, match="incumbent is 'last'"):
        DyHPO(incumbent="last")
    assert study_of(8, "dyhpo:incumbent=observed,probability_sh=0,increment=1").best_value < 1.0


def test_another_acquisition_is_scored_at_the_own_rung():
    """Its logarithm, over the threshold with its margin."""
    history = study_of(10).history
    curves = fit_curves(
        history, encoding_of(SPACE), tuple(range(1, 7)), CurveSettings(), np.random.default_rng(0)
    )
    rows = np.array([[0.2, 0.3, 1 / 6], [0.6, 0.1, 3 / 6], [0.6, 0.1, 0.93]])
    formula = ExpectedImprovement(margin=0.3)
    means, posterior = curves.fitted.mean(curves.data.x)[:, 0], curves.fitted.posterior(rows)
    spread = curves.fitted.data.y.std()
    for k, share in enumerate((1 / 6, 3 / 6, None)):
        here = (
            np.ones(len(means), dtype=bool)
            if share is None
            else np.isclose(curves.data.x[:, -1], share)
        )
        aim = means[here].min() - 0.3 * spread
        expected = expected_improvement(
            posterior.mean[k], np.sqrt(posterior.variance[k : k + 1]), aim
        )
        np.testing.assert_allclose(
            np.exp(improvements(curves.fitted, curves, rows, formula)[k]), expected[0], rtol=1e-6
        )
    with pytest.raises(MethodError, match="not a formula of the mean"):
        build(DyHPO, {"acquisition": "thompson"})


def test_the_coin_promotes_by_successive_halving():
    """Every promotion that is possible is taken with probability 1, none with probability 0."""

    def promotes(method):
        events = study_of(12, method).history.events
        return any(isinstance(e, Decided) and isinstance(e.record.grant, Promoted) for e in events)

    assert promotes("dyhpo:probability_sh=1") and not promotes("dyhpo:probability_sh=0")


def test_given_a_number_of_trials_it_spends_what_halving_would():
    study = study_of(14)
    assert len(study.trials) == 14
    assert 14 * 1 * 2 <= study.history.spent <= 14 * 1 * 3  # levels 1, 3 and 6


def test_a_failing_model_gives_way_and_says_so(monkeypatch):
    study = study_of(8)
    history = study.history.with_events([StudyChanged(totals=Totals(n_trials=20))])

    def broken(*arguments):
        raise NumericalError("no factor")

    monkeypatch.setattr(dyhpo, "fit_curves", broken)
    decision = DyHPO(probability_sh=0.0).decide(history, np.random.default_rng(0))
    assert decision.record.degraded.startswith("gp_multitask failed (no factor)")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "gp_independent"}, "mobster-indep"),
        ({"model": "gp_issm"}, "data='all'"),
        ({"probability_sh": 1.5}, "from 0 to 1"),
        ({"increment": 0}, "above 0, or none: it is the distance"),
        ({"candidates": 0}, "candidates is 0"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(MethodError, match=words):
        build(DyHPO, settings)


@pytest.mark.parametrize(
    ("budget", "apart"),
    [(scrimp.Budget("epoch", 1, 50), 2.0), (scrimp.Budget("share", 0.01, 1.0), 0.04)],
)
def test_rungs_are_at_least_a_25th_apart(budget, apart):
    levels = DyHPO()._scheduler(Problem(SPACE, budget=budget)).levels(Problem(SPACE, budget=budget))
    assert levels[1] - levels[0] == pytest.approx(apart) and levels[-1] == budget.maximum


def test_the_model_decides_where_nothing_is_feasible():
    study = study_of(12, "dyhpo:probability_sh=0", constraints={"value": scrimp.AtMost(-1.0)})
    assert study.history.best is None
    assert any(
        isinstance(event.record.reason, Modelled)
        for event in study.history.events
        if isinstance(event, Decided)
    )
