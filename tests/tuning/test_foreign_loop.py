"""A study whose trials somebody else's loop runs."""

import pytest

import scrimp
from scrimp.history.trial import Trial
from scrimp.policies.policy import Finish, Wait
from scrimp.tuning.foreign_loop import end_early, limit_totals, may_go_on, next_trial


@pytest.fixture
def study() -> scrimp.Study:
    space, budget = scrimp.Space(x=scrimp.Float(0, 1)), scrimp.Budget("epoch", 1, 9)
    place = "memory://"
    return scrimp.create_study(
        "far", space, metric="loss", budget=budget, method="asha", storage=place, seed=0
    )


def trained(study: scrimp.Study, loss: float) -> Trial:
    trial = next_trial(study)
    assert isinstance(trial, Trial)
    for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
        study.report(trial, step=step, loss=loss)
    return study.trials[trial.id]


def test_it_stays_within_the_totals(study: scrimp.Study) -> None:
    limit_totals(study, 2)
    first = trained(study, 1.0)
    second = next_trial(study)
    assert isinstance(second, Trial) and isinstance(next_trial(study), Wait)
    study.report(second, step=1, loss=0.5)
    assert trained(study, 0.4).id == second.id  # the better of two goes on
    while isinstance(trial := next_trial(study), Trial):
        study.report(trial, step=trial.granted, loss=0.3)
    assert isinstance(trial, Finish) and len(study.trials) == 2
    assert study.trials[first.id].status == "paused"
    limit_totals(study, None)
    assert isinstance(next_trial(study), Trial)


def test_a_total_budget_ends_it(study: scrimp.Study) -> None:
    limit_totals(study, None, 2)
    trained(study, 1.0)
    trained(study, 0.5)
    assert isinstance(next_trial(study), Finish)


def test_a_trial_ends_early(study: scrimp.Study) -> None:
    trial = next_trial(study)
    assert isinstance(trial, Trial)
    assert end_early(study, trial.id, "it had enough").status == "completed"


def test_whether_a_paused_trial_may_go_on(study: scrimp.Study) -> None:
    assert may_go_on(study, trained(study, 1.0).id)
