"""The first configurations: the guess, then an even spread, none twice."""

import numpy as np
import pytest

import scrimp
from scrimp.study_log.decision_record import FirstDesign
from scrimp.study_log.events import Decided
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.suggester import Request
from scrimp.suggesters.untried_configs import first_configs, guess


def history_of(space: scrimp.Space, told: int = 0, method: str = "sobol") -> scrimp.Study:
    study = scrimp.create_study("s", space, method=method, storage="memory://", seed=5)
    for _ in range(told):
        study.tell(study.ask(), 1.0)
    return study


def test_without_priors_there_is_no_guess() -> None:
    assert guess(history_of(scrimp.Space(x=scrimp.Float(0, 1))).history) is None


def test_the_guess_completes_the_priors_and_leaves_out_what_is_inactive() -> None:
    space = scrimp.Space(
        kind=scrimp.Categorical(["a", "b"], prior=("a", "high")),
        only_b=scrimp.Float(0, 1, prior=(0.9, "low"), when={"kind": "b"}),
        free=scrimp.Int(1, 9),
    )
    config = guess(history_of(space, method="gp").history)
    assert (
        config is not None
        and config["kind"] == "a"
        and "only_b" not in config
        and 1 <= config["free"] <= 9
    )


def test_guesses_on_pools_and_under_conditions() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1, prior=(0.33, "medium")))
    pool = scrimp.Pool(space, [{"x": number / 10} for number in range(11)])
    assert guess(history_of(pool, method="gp").history) == {"x": 0.3}
    conditional = scrimp.Space(
        solver=scrimp.Categorical(["adam", "sgd"]),
        momentum=scrimp.Float(0, 0.99, prior=(0.9, "high"), when={"solver": "sgd"}),
    )
    assert guess(history_of(conditional, method="gp").history) == {"solver": "sgd", "momentum": 0.9}


def test_the_design_is_even_and_counts_what_lacks() -> None:
    study = history_of(scrimp.Space(x=scrimp.Float(0, 1)), told=3)
    rng = np.random.default_rng(0)
    assert first_configs(study.history, lacking=0, count=4, rng=rng) == []
    assert len(first_configs(study.history, lacking=2, count=4, rng=rng)) == 2
    values = sorted(
        trial.params["x"] for trial in history_of(scrimp.Space(x=scrimp.Float(0, 1)), told=8).trials
    )
    assert (
        max(np.diff([0.0, *values, 1.0])) < 0.3
    )  # eight random points leave a larger gap nine times in ten


def test_random_draws_may_take_the_place_of_the_sequence() -> None:
    study = history_of(scrimp.Space(x=scrimp.Float(0, 1, prior=(0.25, "low"))), method="gp")
    drawn = first_configs(study.history, 4, 4, np.random.default_rng(0), "random")
    assert drawn[0] == {"x": 0.25} and len({config["x"] for config in drawn}) == 4
    assert drawn != first_configs(study.history, 4, 4, np.random.default_rng(0))
    with pytest.raises(scrimp.errors.MethodError, match="design is 'grid'"):
        BayesianSuggester(design="grid")


WIDE = scrimp.Space(**{f"x{place}": scrimp.Float(0, 1) for place in range(7)})


def stepped(study: scrimp.Study, values: list[float | None]) -> list[int]:
    """Play a trial for each value, None for a failure; return those that were steps from the best."""
    steps = []
    for value in values:
        trial = study.ask()
        reason = study.history.recorded.reason
        if isinstance(reason, FirstDesign) and reason.step:
            steps.append(trial.id)
        if value is None:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, value)
    return steps


def test_every_second_first_trial_is_a_step_from_the_best() -> None:
    shifts = []
    for seed in range(20):
        study = scrimp.create_study("s", WIDE, method="gp", storage="memory://", seed=seed)
        assert stepped(study, [3.0, 1.0, None, 0.5, 2.0, 4.0, 5.0]) == [3, 5]
        at = [np.array(list(trial.params.values())) for trial in study.trials]
        shifts.append(at[5] - at[3])
    # The standard deviation of 140 shifts; a few are reflected at the ends of their range.
    assert 0.13 < np.std(shifts) < 0.23


def test_steps_begin_at_feasible_trials_and_stay_in_a_list() -> None:
    rows = np.random.default_rng(0).random((60, 7)).round(3)
    pool = scrimp.Pool(WIDE, [dict(zip(WIDE, row.tolist(), strict=True)) for row in rows])
    study = scrimp.create_study("p", pool, method="gp", storage="memory://", seed=0)
    assert stepped(study, [3.0, 1.0, 2.0, 4.0, 2.5, 6.0]) == [3, 5]
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 6
    limited = scrimp.create_study(
        "l",
        WIDE,
        method="gp",
        metric="loss",
        constraints={"size": scrimp.AtMost(1)},
        storage="memory://",
        seed=0,
    )
    for size in (2, 2, 2, 2, 0):
        limited.tell(limited.ask(), {"loss": -float(size), "size": size})
    step = limited.ask()
    limited.ask()
    at = np.array([list(trial.params.values()) for trial in limited.trials])
    far = np.linalg.norm(at[:5] - at[step.id], axis=1)
    assert np.argmin(far) == 4, "the others are better and break the constraint"
    kinds = [event.record.reason for event in limited.history.events if isinstance(event, Decided)]
    assert [kind == FirstDesign(step=True) for kind in kinds] == [False] * 5 + [True, False]


def test_random_designs_and_several_metrics_take_no_steps() -> None:
    study = scrimp.create_study("r", WIDE, method="gp:published", storage="memory://", seed=0)
    assert stepped(study, [3.0, 1.0, 2.0, 0.5, 2.0]) == []
    study = scrimp.create_study(
        "m",
        WIDE,
        method="gp",
        metrics={"a": "minimize", "b": "minimize"},
        storage="memory://",
        seed=0,
    )
    for place in range(5):
        study.tell(study.ask(), {"a": float(place), "b": 1.0})
        assert study.history.recorded.reason != FirstDesign(step=True)


def test_several_at_a_time_are_spread_and_no_steps() -> None:
    study = scrimp.create_study("b", WIDE, method="gp", storage="memory://", seed=0)
    stepped(study, [3.0, 1.0, 2.0])
    rng = np.random.default_rng(0)
    one, four = (
        BayesianSuggester().suggest(study.history, Request(1.0), count, rng) for count in (1, 4)
    )
    assert one.record.reason == FirstDesign(step=True)
    assert isinstance(four.record.reason, FirstDesign) and not four.record.reason.step
    assert len({tuple(config.values()) for config in four.configs}) == 4
