"""Models of budgets where there are several metrics: one of each, on the rows that have it."""

import numpy as np
import pytest

import scrimp
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.study_log.decision_record import Modelled
from scrimp.study_log.events import Decided
from scrimp.suggesters.curve_models import CurveSettings, fit_curves

METRICS = {"error": "minimize", "speed": "maximize"}
LEVELS = (1.0, 3.0, 9.0)


def studied(method="mobster-joint", count=9, seed=0, **settings):
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1)),
        metrics=METRICS,
        budget=scrimp.Budget("epoch", 1, 9),
        method=method,
        storage="memory://",
        seed=seed,
        **settings,
    )

    def run(trial):
        x, y = trial.params["x"], trial.params["y"]
        for step in trial.steps():
            trial.report(error=x + y + 1 / step, speed=x - y, memory=x)

    study.optimize(run, n_trials=count, progress=False)
    return study


def fitted(study):
    encoding = encoding_of(study.space)
    rng = np.random.default_rng(0)
    return fit_curves(study.history, encoding, LEVELS, CurveSettings(), rng)


def test_there_is_a_model_of_every_metric_in_its_own_units():
    curves = fitted(studied())
    assert list(curves.models) == ["loss", "loss:speed"]
    assert set(curves.fits) == {"gp_multitask", "gp_multitask:speed"}
    x = np.column_stack([curves.x, curves.share])
    model = curves.models["loss:speed"]
    believed = model.target_units(model.mean(x)[:, 0])
    assert believed == pytest.approx(curves.x[:, 1] - curves.x[:, 0], abs=0.05)


def test_while_nothing_is_feasible_the_violation_alone_is_learned():
    curves = fitted(studied(constraints={"memory": scrimp.AtMost(-1.0)}))
    assert list(curves.models) == ["loss"] and not curves.of_losses


@pytest.mark.parametrize("method", ["mobster-joint", "mobster-indep", "sync-mobster"])
def test_a_decision_says_what_it_expected_of_every_metric(method):
    study = studied(method, count=12, seed=1)
    decided = (event for event in study.history.events if isinstance(event, Decided))
    reasons = [event.record.reason for event in decided]
    each = [reason.each for reason in reasons if isinstance(reason, Modelled)]
    assert each and all(set(one) == set(METRICS) for one in each)
    assert not study.history.degraded


def test_a_resumed_study_decides_as_an_uninterrupted_one(tmp_path):
    study = studied()
    choice = study.ask().params
    again = studied()
    assert again.ask().params == choice


def test_settings_of_one_metric_are_refused():
    with pytest.raises(MethodError, match="works with one metric only; use acquisition='log-ei'"):
        studied("mobster-joint:acquisition=ei", count=1)
