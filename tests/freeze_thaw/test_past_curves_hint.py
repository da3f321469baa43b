"""The hint, predictions of past studies as an input of the curve model: gradients, scales, and that it
tells good configurations from bad ones."""

import math
from dataclasses import replace

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.freeze_thaw.past_curves import Hint, PastLessons, featured
from scrimp.freeze_thaw.scoring import NewConfigScore, Question, race
from scrimp.gp.columns import Features
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.past import NOTHING, Past
from scrimp.transfer.source_study import source_study
from tests.freeze_thaw.modelled import Modelled, modelled

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))


def bowl(x: Array) -> Array:
    return np.asarray((x[:, 0] - 0.4) ** 2 + (x[:, 1] - 0.6) ** 2)


@pytest.fixture(scope="module")
def past() -> Past:
    x = np.random.default_rng(2).random((30, 2))
    studies = [source_study(f"s{k}", x, bowl(x) + 0.1 * k * x[:, 0]) for k in range(2)]
    return Past(tuple(studies), Encoding(SPACE).columns)


@pytest.fixture(scope="module")
def hint(past: Past) -> Hint:
    found = Hint.over(Encoding(SPACE), past)
    assert found is not None
    return found


def test_it_is_what_past_studies_expect_scaled_to_the_unit_interval(hint: Hint) -> None:
    x = np.random.default_rng(0).random((200, 2))
    found = hint(x)
    assert found.shape == (200, 1) and found.min() > -0.2 and found.max() < 1.2
    assert np.corrcoef(found[:, 0], bowl(x))[0, 1] > 0.9


def test_gradient(hint: Hint) -> None:
    x, d = np.random.default_rng(1).random((5, 2)), np.arange(1.0, 6.0)
    for column in (0, 1):
        step = np.zeros(2)
        step[column] = 1e-5
        numeric = d * (hint(x + step) - hint(x - step))[:, 0] / 2e-5
        assert hint.pull(x, d)[:, column] == pytest.approx(numeric, abs=1e-5)


def test_there_is_none_without_models_or_where_they_say_the_same_of_everything(past: Past) -> None:
    assert Hint.over(Encoding(SPACE), NOTHING) is None
    same = Past(past.studies, past.columns)
    object.__setattr__(same, "expected", lambda x: np.ones(len(x)))
    assert Hint.over(Encoding(SPACE), same) is None


def test_features_and_the_centre_of_the_prior_have_a_place_for_it(hint: Hint) -> None:
    x, features = np.full((3, 2), 0.4), Features(Encoding(SPACE).columns)
    assert featured(features, None, x).shape == (3, 2)
    assert featured(features, hint, x)[:, :2].tolist() == x.tolist()
    centre = tuple(float(k) for k in range(2 + SHARED_PARAMETERS))
    assert PastLessons(centre).mode == centre and PastLessons((), hint).mode == ()
    assert PastLessons(centre, hint).mode == (0.0, 1.0, math.log(0.5), *centre[2:])


def studied(hint: Hint | None) -> tuple[History, Modelled, Question]:
    """Ten short curves, and what is asked next."""
    problem = Problem(SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 100), seed=3)
    events: list[Event] = [StudyCreated(name="hint", problem=problem.to_json(), method={})]
    for trial, x in enumerate(np.random.default_rng(5).random((10, 2))):
        config = dict(zip("ab", x.tolist(), strict=True))
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=2)]
        value = float(bowl(x[None])[0])
        for step in (1, 2):
            report = Reported(trial=trial, step=step, metrics={"loss": value + 0.5 / step})
            events.append(report)
    history = History.of(events)
    found = modelled(history, lessons=PastLessons((), hint), seed=1)
    left = replace(found.situation.left, first_slice_end=found.rows.levels[0])
    return history, found, race(replace(found.situation, left=left))


def test_the_curve_model_sees_it(hint: Hint) -> None:
    _, plain, _ = studied(None)
    _, found, question = studied(hint)
    assert len(found.model.fits[0].theta) == len(plain.model.fits[0].theta) + 1
    x = np.random.default_rng(9).random((300, 2))
    end = np.full(300, 100.0)
    errors = [
        1.0 - np.corrcoef(model.of_configs(x, end)[0][0], bowl(x))[0, 1]
        for model in (found.model, plain.model)
    ]
    assert errors[0] < errors[1]
    score = NewConfigScore(found.model, question)
    value, gradient = score.value_and_gradient(x[:6])
    assert score(x[:6]) == pytest.approx(value, abs=1e-9)
    for column in (0, 1):
        step = np.zeros(2)
        step[column] = 1e-5
        numeric = (score(x[:6] + step) - score(x[:6] - step)) / 2e-5
        assert gradient[:, column] == pytest.approx(numeric, rel=1e-3, abs=1e-4)


def test_a_policy_takes_it_when_told_to(past: Past) -> None:
    history, _, _ = studied(None)
    for told in (False, True):
        policy = FreezeThaw(hint=told).informed_by(past)
        record = policy.decide(history, np.random.default_rng(0)).record
        assert not record.degraded and record.curves is not None
        assert len(record.curves.fits[0].theta) == 2 + told + SHARED_PARAMETERS
