"""Lessons of past learning curves: hyperparameters found by name, a centre between them and the
usual one, a first fit there."""

import numpy as np
import pytest

from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS, prior_mode
from scrimp.freeze_thaw.past_curves import PastLessons, curve_parameters, prior_centre
from scrimp.freeze_thaw.study_model import fit_past_curves
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.events import BudgetGranted, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from tests.freeze_thaw.modelled import modelled

SPACE = Space(quick=Float(0.0, 1.0), flat=Float(0.0, 1.0))


def studied(trials: int, budget: int = 9) -> History:
    """Curves that depend on one parameter strongly and on the other not at all."""
    problem = Problem(
        SPACE, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, budget), seed=0
    )
    events: list[Event] = [StudyCreated(name="past", problem=problem.to_json(), method={})]
    for trial, config in enumerate(SPACE.sample(trials, np.random.default_rng(0))):
        events += [TrialAdded(trial=trial, config=config), BudgetGranted(trial=trial, budget=3)]
        level = 1.0 + np.sin(9.0 * config["quick"])
        events += [
            Reported(trial=trial, step=k, metrics={"loss": level + 1.0 / k}) for k in (1, 2, 3)
        ]
    return History.of(events)


def test_length_scales_go_by_name_and_what_is_unlike_gets_the_usual_one() -> None:
    fitted = fit_past_curves(studied(20))
    assert fitted["lengths"]["quick"] < fitted["lengths"]["flat"] - 1.0
    wider = Space(flat=Float(0.0, 1.0), new=Float(0.0, 1.0), quick=Float(0.0, 2.0))
    theta = curve_parameters(fitted, SPACE, wider)
    usual = prior_mode(3)
    assert theta[:3] == (
        fitted["lengths"]["flat"],
        usual[1],
        usual[2],
    )  # 'quick' has other bounds here
    assert theta[3:] == tuple(fitted["shared"]) and len(theta) == 3 + SHARED_PARAMETERS


def test_without_curves_there_is_nothing_to_learn() -> None:
    assert fit_past_curves(studied(3)) == {}
    assert curve_parameters({}, SPACE, SPACE) == () == prior_centre([(), ()])


def test_the_centre_is_half_way_between_the_usual_one_and_the_past() -> None:
    found = [tuple(value + off for value in prior_mode(2)) for off in (1.0, 3.0)]
    assert prior_centre([found[0], (), found[1]]) == pytest.approx(
        [value + 1.0 for value in prior_mode(2)]
    )


def test_a_new_study_begins_where_past_ones_ended() -> None:
    shapes = prior_centre([curve_parameters(fit_past_curves(studied(20)), SPACE, SPACE)] * 9)
    young = studied(1)
    models = [modelled(young, lessons=own).model for own in (PastLessons(), PastLessons(shapes))]
    found = [np.array(model.fits[0].theta) for model in models]
    apart = [np.abs(theta - np.array(shapes)).mean() for theta in found]
    assert apart[1] < 0.6 * apart[0]
