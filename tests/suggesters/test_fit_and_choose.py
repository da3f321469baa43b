"""When models are refitted, on which data, and what is recorded."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.encoding.encoding import encoding_of
from scrimp.encoding.training_data import training_data
from scrimp.errors import MethodError
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import Decided
from scrimp.suggesters import model_settings
from scrimp.suggesters.fit_and_choose import (
    _subset,
    fit_models,
    fit_or_restore,
    length_scales,
)
from scrimp.suggesters.model_settings import ModelSettings, loss_model
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.surrogate import Data

pytestmark = pytest.mark.filterwarnings("ignore:method 'sobol' does not weigh the cost")

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def study_with(count: int, method: Any = "sobol", **settings: Any) -> scrimp.Study:
    study = scrimp.create_study(
        "s", SPACE, method=method, storage="memory://", seed=1, metric="loss", **settings
    )
    for _ in range(count):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, {"loss": np.sin(5 * x) + y, "size": x - 0.5, "price": 1.0 + x})
    return study


def fitted(study: scrimp.Study, settings: ModelSettings | None = None) -> Any:
    encoding = encoding_of(SPACE)
    rng = np.random.default_rng(0)
    training = training_data(study.history, encoding)
    return fit_models(study.history, training, encoding.columns, settings or ModelSettings(), rng)


def test_every_model_the_problem_needs_is_fitted() -> None:
    models = fitted(study_with(12, constraints={"size": scrimp.AtMost(0.0)}, cost="price"))
    assert set(models.fitted) == {"loss", "constraint:size", "cost"}
    assert models.feasible is not None and 0 < models.feasible.sum() < 12
    row = np.array([[0.9, 0.5], [0.1, 0.5]])
    violation = models.fitted["constraint:size"].posterior(row).mean[:, 0]
    assert violation[0] > 0 > violation[1]  # zero stays the limit in the model's units
    cost = models.fitted["cost"].target_units(models.fitted["cost"].posterior(row).mean[:, 0])
    np.testing.assert_allclose(np.exp(cost), [1.9, 1.1], rtol=0.05)


def test_the_model_of_each_metric_takes_its_own_standard_errors() -> None:
    both = {"p": "minimize", "q": "maximize"}
    study = scrimp.create_study("s", SPACE, metrics=both, storage="memory://", seed=1)
    for k in range(4):
        error = {"q": 0.5} if k % 2 else None
        study.tell(study.ask(), {"p": 0.1 * k, "q": 0.3 * k}, stderr=error)
    models = fitted(study)
    assert models.fitted["loss"].data.noise is None
    told = models.fitted["loss:q"].data.noise
    assert told is not None and told[1] == told[3] > told[0] == told[2] == 0.0


def fitted_at(study: scrimp.Study) -> list[int]:
    """The numbers of observations at which the model of the loss was fitted again."""
    records = [event.record for event in study.history.events if isinstance(event, Decided)]
    return [record.fit["loss"].n for record in records if record.fit]


@pytest.mark.parametrize(
    ("share", "expected"), [("0.5", [3, 4, 6, 9, 13]), ("0", list(range(3, 15)))]
)
def test_refits_follow_a_geometric_schedule(share: str, expected: list[int]) -> None:
    assert fitted_at(study_with(15, method=f"gp:refit_share={share}")) == expected


def test_a_fit_that_is_not_due_restores_the_recorded_hyperparameters() -> None:
    rng = np.random.default_rng(0)
    model = loss_model(encoding_of(SPACE).columns, ModelSettings())
    x = rng.random((12, 2))
    data = Data(x, np.sin(5 * x[:, 0]) + x[:, 1])
    _, record = fit_or_restore(model, Data(data.x[:10], data.y[:10]), 10, None, True, rng)
    assert record.n == 10
    restored, same = fit_or_restore(model, data, 12, record, False, rng)
    assert same is record and len(restored.data) == 12
    _, newer = fit_or_restore(model, data, 12, record, True, rng)
    assert newer.n == 12


def test_the_record_is_a_note_and_the_next_fit_starts_there() -> None:
    study = study_with(10, method="gp")
    record = [
        event.record
        for event in study.history.events
        if isinstance(event, Decided) and event.record.fit
    ]
    assert record and record[-1].fit["loss"].n == 9
    assert fitted(study).fits["loss"].n == 10


def test_a_record_of_another_model_is_not_used() -> None:
    study = study_with(8, method="gp:kernel=rbf-noard")
    models = fitted(study, ModelSettings(kernel="matern52-ard"))
    assert len(length_scales(models.fitted["loss"], 2)) == 2


def test_length_scales_are_bounded_and_broadcast() -> None:
    models = fitted(study_with(10), ModelSettings(kernel="rbf-noard"))
    scales = length_scales(models.fitted["loss"], 2)
    assert (
        scales.shape == (2,)
        and scales[0] == scales[1]
        and (scales >= 0.01).all()
        and (scales <= 2.0).all()
    )


def test_a_capped_model_is_still_refitted() -> None:
    study = study_with(30, method="gp:max_data=10")
    sizes = [
        event.record.fit["loss"].n
        for event in study.history.events
        if isinstance(event, Decided) and event.record.fit
    ]
    assert sizes[-1] >= 28  # on ten observations, but chosen from all


@pytest.mark.parametrize("most", [10, 40])
def test_the_subset_keeps_the_best_and_changes_little(most: int) -> None:
    rng = np.random.default_rng(0)
    x, losses = rng.random((100, 2)), rng.random(100)
    kept = _subset(x, losses, most, seed=3)
    assert len(kept) == most and (np.diff(kept) > 0).all()
    assert set(np.argsort(losses)[: most // 4]) <= set(kept)
    grown = _subset(np.append(x, [[0.5, 0.5]], axis=0), np.append(losses, 0.5), most, seed=3)
    assert len(set(kept) & set(grown)) >= most - 2
    assert list(_subset(x, losses, 100, seed=3)) == list(range(100))


def test_the_subset_keeps_the_surroundings_of_the_best_and_some_of_the_rest() -> None:
    x = np.random.default_rng(0).random((2000, 3))
    distance = np.linalg.norm(x - 0.3, axis=1)
    # High beside the minimum, as at a steep side: those rows are among the worst.
    losses = np.where((x[:, 0] < 0.3) & (distance < 0.25), 9.0 + distance, distance)
    kept = _subset(x, losses, 400, seed=3)
    steep = losses >= 9.0
    assert steep.sum() > 20 and steep[kept].mean() > 2 * steep.mean()
    far = distance > np.quantile(distance, 0.75)
    assert far[kept].sum() > 20


def test_mcmc_samples_all_models() -> None:
    study = study_with(7, constraints={"size": scrimp.AtMost(0.0)}, cost="price")
    study.tell(study.ask(), state="failed")
    models = fitted(study, ModelSettings(mcmc=True))
    assert set(models.fitted) == {"loss", "constraint:size", "constraint:failure", "cost"}
    assert {name: len(model.members) for name, model in models.fitted.items()} == dict.fromkeys(
        models.fitted, 10
    )


def test_samples_follow_a_record_without_any() -> None:
    """Earlier versions sampled the loss alone: the next fit begins anew."""
    study = study_with(7, cost="price")
    before = fitted(study).fits
    study._ledger.append(
        [
            Decided(
                decision=study.history.decisions,
                seen=study.history.length,
                record=DecisionRecord(fit=before),
            )
        ]
    )
    assert len(fitted(study, ModelSettings(mcmc=True)).fitted["cost"].members) == 10


def test_a_surrogate_by_name_models_loss_constraint_and_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(model_settings, "_SURROGATES", model_settings._SURROGATES.copy())
    model_settings.register_surrogate("smooth", lambda columns: ExactGP.over(columns, "rbf-noard"))
    study = study_with(9, constraints={"size": scrimp.AtMost(0.0)}, cost="price")
    models = fitted(study, ModelSettings(surrogate="smooth"))
    for model in models.fitted.values():
        assert len(model.state["inner"]["parameters"]["length_scale"]) == 1
    with pytest.raises(MethodError, match="describe the surrogate 'gp', not 'smooth'"):
        ModelSettings(surrogate="smooth", mcmc=True)
    with pytest.raises(MethodError, match=r"no surrogate 'smoth'.*did you mean 'smooth'"):
        ModelSettings(surrogate="smoth")
