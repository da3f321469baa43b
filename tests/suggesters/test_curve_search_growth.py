"""Methods of rungs on several metrics: what they score, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Context
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import MethodError
from scrimp.fronts.hypervolume import hypervolume
from scrimp.methods.dyhpo import growths
from scrimp.study_log.decision_record import Modelled
from scrimp.study_log.events import Decided
from scrimp.suggesters.curve_models import CurveSettings, fit_curves
from scrimp.suggesters.curve_search import growth_at
from scrimp.surrogates.budget_levels import AtBudget, with_share
from tests.freeze_thaw.front_studies import front_study, play

REFERENCE = {"error": 2.0, "weights": 70_000.0}


def test_growth_is_what_draws_add_on_average() -> None:
    history = play(front_study("asha", reference=REFERENCE), 24)._ledger.history
    encoding = encoding_of(history.problem.space)
    rng = np.random.default_rng(0)
    settings = CurveSettings(resource_kernel="exp-decay-sum")
    curves = fit_curves(history, encoding, (1.0, 3.0, 9.0), settings, rng)
    x = encoding.domain.sample(2, rng)
    found = growth_at(history.problem, curves.models, 1.0, Context(curves.configs))(x)
    views = [AtBudget(model, 1.0) for model in curves.models.values()]
    known = np.column_stack([v.target_units(v.posterior(curves.configs).mean[:, 0]) for v in views])
    corner = np.array([2.0, 70_000.0])
    draws = rng.standard_normal((400, 2))
    gains = []
    for place in range(2):
        columns = []
        for view, noise in zip(views, draws.T, strict=True):
            belief = view.posterior(x[[place]])
            spread = np.sqrt(belief.variance[0])
            columns.append(view.target_units(belief.mean[0, 0] + spread * noise))
        before = hypervolume(known, corner)
        outcomes = np.column_stack(columns)
        gains.append(
            np.mean([hypervolume(np.vstack([known, y]), corner) - before for y in outcomes])
        )
    # standardised targets: the units of the two differ by one factor
    assert np.exp(found[0] - found[1]) == pytest.approx(gains[0] / gains[1], rel=0.2)
    rows = with_share(np.vstack([x, x]), np.array([1 / 9, 1 / 9, 1.0, 1.0]))
    scores = growths(curves.models, curves, rows, history.problem)
    assert not np.allclose(scores[:2], scores[2:])  # each at its own budget


def test_a_reference_beyond_all_results_counts_as_it_is() -> None:
    far = {"error": 50.0, "weights": 1e7}
    history = play(front_study("asha", reference=far), 24)._ledger.history
    problem, encoding = history.problem, encoding_of(history.problem.space)
    curves = fit_curves(
        history, encoding, (1.0, 3.0, 9.0), CurveSettings(), np.random.default_rng(0)
    )
    x, context = encoding.domain.sample(5, np.random.default_rng(1)), Context(curves.configs)
    whole, near = (
        growth_at(each, curves.models, 1.0, context)(x)
        for each in (problem, replace(problem, reference=REFERENCE))
    )
    assert (whole > near + 1.0).any()


@pytest.mark.parametrize("method", ["dyhpo", "hypertune-indep", "hypertune-joint"])
def test_methods_that_decide_by_growth(method: str) -> None:
    study = play(front_study(method), 14, workers=2)
    decided = [e.record for e in study._ledger.history.events if isinstance(e, Decided)]
    assert any(isinstance(record.reason, Modelled) for record in decided)
    assert not any(record.degraded for record in decided)
    assert study.front


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        ("dyhpo:incumbent=observed", "incumbent"),
        ("dyhpo:acquisition=ucb", "acquisition"),
        ("hypertune-indep:combine=linear", "combine"),
        ("mobster-joint:initial_scoring=thompson_indep", "initial_scoring"),
    ],
)
def test_settings_of_one_metric_are_refused(method: str, setting: str) -> None:
    with pytest.raises(
        MethodError, match=f"{setting} is .* works with one metric only; use {setting}="
    ):
        play(front_study(method), 1)
