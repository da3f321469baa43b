"""Turns pass from a model that brings no progress to its alternatives, by what the log records."""

import math

import numpy as np
import pytest

import scrimp
from scrimp.acquisition.domain import Condition, Domain
from scrimp.encoding.encoding import encoding_of
from scrimp.encoding.training_data import training_data
from scrimp.explain.replay import replay
from scrimp.gp.columns import Column
from scrimp.study_log.decision_record import (
    DecisionRecord,
    FirstDesign,
    FromDensity,
    Modelled,
)
from scrimp.study_log.events import Decided
from scrimp.suggesters.experts import (
    BOUND,
    DENSITY,
    MODEL,
    REGION,
    TURNS,
    Region,
    expert_of,
    polishes,
    progress,
    prospects,
)

SPACE = scrimp.Space(**{f"x{place}": scrimp.Float(-5, 5) for place in range(3)})


def steep(params: dict[str, float]) -> float:
    """A valley whose walls on one side are ten thousand times as steep."""
    offsets = np.array([params["x0"] - 1.3, params["x1"] + 2.1, params["x2"] - 0.4])
    return float(np.sum((np.where(offsets > 0, 100.0, 1.0) * offsets) ** 2))


def turns(records: list[DecisionRecord]) -> list[str]:
    return [expert for expert in map(expert_of, records) if expert is not None]


def records_of(study: scrimp.Study) -> list[DecisionRecord]:
    return [event.record for event in study.history.events if isinstance(event, Decided)]


def played(count: int, method: str = "gp", seed: int = 0) -> scrimp.Study:
    study = scrimp.create_study("steep", SPACE, method=method, storage="memory://", seed=seed)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, steep(trial.params))
    return study


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (DecisionRecord(reason=FirstDesign()), None),
        (DecisionRecord(reason=FromDensity(1.0, 9)), DENSITY),
        (DecisionRecord(reason=Modelled(1.0)), MODEL),
        (DecisionRecord(reason=Modelled(1.0, region=True)), REGION),
        (DecisionRecord(reason=Modelled(1.0, exploring=True)), BOUND),
        (DecisionRecord(reason=Modelled(1.0, elsewhere=True)), None),
    ],
)
def test_the_record_of_a_decision_says_whose_turn_it_was(
    record: DecisionRecord, expected: str | None
) -> None:
    assert expert_of(record) == expected


def test_progress_is_measured_near_the_best() -> None:
    huge = np.array([1e6, 1e5, 1e5, 120.0, 119.999, 100.0, math.inf, 50.0, 49.9999])
    assert progress(huge).tolist() == [True, True, False, True, False, True, False, True, False]
    assert not progress(np.full(3, math.inf)).any()


def test_the_model_keeps_its_turns_while_it_improves_and_loses_them_when_it_does_not() -> None:
    trials = list(range(12))
    own = dict.fromkeys(trials, MODEL)

    def leader(losses: list[float], turns: dict[int, str], patience: int = 6) -> str:
        shares = prospects(trials[: len(losses)], np.array(losses), turns, patience)
        return max(shares, key=shares.__getitem__)

    falling = [float(2 ** (12 - trial)) for trial in trials]
    still = [1.0] * 12
    assert leader(falling, own) == MODEL
    assert leader(still[:3], own) == MODEL
    assert leader(still, own) == REGION
    # The more patience, the longer it keeps them.
    assert [leader(still[:5], own, patience) for patience in (2, 20)] == [REGION, MODEL]
    # An expert that improves takes over.
    shared = {trial: DENSITY if trial > 5 else MODEL for trial in trials}
    assert leader([64.0] * 6 + falling[6:], shared) == DENSITY


def test_steep_sides_are_left_to_those_who_improve() -> None:
    """`gp` alone stops far from the minimum of such a function; 6 seeds, geometric means."""
    ends = {
        method: np.mean([math.log(played(45, method, seed).best_value) for seed in range(6)])
        for method in ("gp", "gp:patience=0")
    }
    assert ends["gp"] < ends["gp:patience=0"] - math.log(2)


def test_turns_are_recorded_explained_and_replayed() -> None:
    study = played(40)
    records = records_of(study)
    taken = turns(records)
    assert set(taken) >= {MODEL, REGION}
    assert list(study.history.derive(TURNS).values()) == taken
    last = [number for number, record in enumerate(records) if turns([record]) == [REGION]][-1]
    shares = records[last].experts
    assert shares is not None and max(shares, key=shares.__getitem__) == REGION
    text = str(study.explain(last).details)
    assert "A model of the region around the best trials chose it" in text
    assert f"the model of the best region {shares[REGION]:.0%}" in text
    # The recorded fit is that of the model of the whole space, which did not choose.
    assert "Chosen by a model of the region around the best trials after" in str(
        study.explain(last)
    )
    assert "changes fastest" not in text and "was fitted for this decision" not in text
    assert not any(outcome.difference for outcome in replay(study.history.events))


def test_polishing_is_a_trial_like_the_best_that_can_bring_no_progress() -> None:
    discrete = np.array([True, False])
    # The fifth trial is the best; the distance to the best fifth of the other cell is 10.
    x = np.array([[0.0, 0.1], [0.0, 0.4], [0.0, 0.9], [1.0, 0.2], [1.0, 0.5]])
    losses = np.array([30.0, 20.0, math.inf, 10.1, 10.0])
    near, other = np.array([1.0, 0.50001]), np.array([0.0, 0.5])
    assert polishes(near, 9.95, x, losses, discrete)
    assert not polishes(near, 9.5, x, losses, discrete)
    assert not polishes(other, 9.95, x, losses, discrete)
    # One in three decisions may polish, and all while nothing else was tried.
    assert not polishes(near, 9.95, np.vstack([x, x[-1:]]), np.append(losses, 10.0), discrete)
    assert not polishes(near, 9.95, x[3:], losses[3:], discrete)


def test_other_discrete_values_are_tried_instead_of_polishing() -> None:
    space = scrimp.Space(a=scrimp.Int(0, 9), b=scrimp.Int(0, 9), x=scrimp.Float(0, 1))
    study = scrimp.create_study("cells", space, method="gp", storage="memory://", seed=0)
    seen: list[tuple[float, int, int]] = []
    strayed = []
    for _ in range(30):
        trial = study.ask()
        record, params = records_of(study)[-1], trial.params
        if isinstance(record.reason, Modelled) and record.reason.elsewhere:
            assert (params["a"], params["b"]) != min(seen)[1:]
            strayed.append(trial.id)
        loss = (params["a"] - 3) ** 2 + (params["b"] - 6) ** 2 + 9 * (params["x"] - 0.3) ** 2
        seen.append((loss, params["a"], params["b"]))
        study.tell(trial, loss)
    assert len(strayed) > 5
    assert not study.history.derive(TURNS).keys() & set(strayed)
    text = str(study.explain(strayed[-1]).details)
    assert "could only have polished it" in text and "(the highest would have decided)" in text
    assert "Chosen by a model among discrete values other than those of the best trial" in str(
        study.explain(strayed[-1])
    )
    assert not any(outcome.difference for outcome in replay(study.history.events))


def test_textbook_methods_and_noise_have_one_expert() -> None:
    assert set(turns(records_of(played(30, "gp-ei")))) == {MODEL}
    study = scrimp.create_study(
        "noisy", SPACE, method="gp", storage="memory://", seed=0, noisy=True
    )
    rng = np.random.default_rng(0)
    for _ in range(30):
        trial = study.ask()
        study.tell(trial, 0.01 * trial.params["x0"] ** 2 + rng.normal())
    assert set(turns(records_of(study))) == {MODEL}


def test_lists_and_constraints_have_fewer_experts() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 60), y=scrimp.Float(0, 7))
    listed = [{"x": float(value), "y": float(value % 7)} for value in range(60)]
    study = scrimp.create_study(
        "list",
        scrimp.Pool(space, listed),
        method="gp",
        storage="memory://",
        seed=0,
    )
    for _ in range(30):
        study.tell(study.ask(), 1.0)
    taken = turns(records_of(study))
    assert REGION not in taken and {DENSITY, BOUND} & set(taken)
    limited = scrimp.create_study(
        "limited",
        space,
        method="gp",
        metric="loss",
        constraints={"y": scrimp.AtMost(3)},
        storage="memory://",
        seed=0,
    )
    for _ in range(20):
        trial = limited.ask()
        limited.tell(trial, {"loss": 1.0, "y": trial.params["y"]})
    assert set(turns(records_of(limited))) == {MODEL, BOUND}


def test_infeasible_trials_are_no_progress_to_beat() -> None:
    """A low loss that violates a constraint hides no progress of feasible trials."""
    study = scrimp.create_study(
        "limits",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="gp:initial=3",
        metric="loss",
        constraints={"size": scrimp.AtMost(1)},
        storage="memory://",
        seed=0,
    )
    study.tell(study.ask(), {"loss": -100.0, "size": 2.0})
    for number in range(14):
        study.tell(study.ask(), {"loss": 2.0**-number, "size": 0.0})
    assert set(turns(records_of(study))) == {MODEL}


def test_a_region_is_the_box_of_the_best_trials_in_its_own_units() -> None:
    study = played(30)
    encoding = encoding_of(SPACE)
    training = training_data(study.history, encoding)
    losses = training.y[:, 0]
    region = Region.of(training, losses, encoding.domain)
    best = training.x[np.argsort(losses)[:7]]
    assert (region.low <= best.min(axis=0)).all()
    assert (region.low + region.width >= best.max(axis=0)).all()
    assert (region.width < 1).any()
    inner = region.inside(training)
    assert 7 <= len(inner.y) < len(losses)
    assert inner.x.min() > -1e-6 and inner.x.max() < 1 + 1e-6
    np.testing.assert_allclose(region.unscaled(region.scaled(training.x)), training.x, atol=1e-12)


def test_discrete_and_conditional_columns_keep_their_range() -> None:
    study = played(30)
    training = training_data(study.history, encoding_of(SPACE))
    columns = (Column(), Column((0.0, 1.0), ordered=False), Column())
    domain = Domain(columns, (Condition(2, parent=1, values=(1.0,)),))
    region = Region.of(training, training.y[:, 0], domain)
    assert region.low[1:].tolist() == [0.0, 0.0] and region.width[1:].tolist() == [1.0, 1.0]
    assert region.width[0] < 1
