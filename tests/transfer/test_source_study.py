"""Past studies of other spaces, aligned by name and type; what cannot be aligned is noted."""

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.events import BudgetGranted, Ended, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.transfer.source_study import (
    SourceStudy,
    Unusable,
    aligned,
    final_losses,
    shared_share,
    source_study,
)


def history(space: Space, results: list[tuple[dict, float | None]], **settings: object) -> History:  # type: ignore[type-arg]
    problem = Problem(space, **settings)  # type: ignore[arg-type]
    events: list[Event] = [
        StudyCreated(name="old", problem=problem.to_json(), method={"name": "random"})
    ]
    for number, (config, value) in enumerate(results):
        events += [
            TrialAdded(trial=number, config=config),
            BudgetGranted(trial=number, budget=problem.full_budget),
        ]
        if value is None:
            events.append(Ended(trial=number, status="failed"))
        else:
            events.append(
                Reported(trial=number, step=problem.full_budget, metrics={problem.metric: value})
            )
    return History.of(events)


def align(past: History, space: Space, **settings: object) -> SourceStudy:
    problem = Problem(space, **settings)  # type: ignore[arg-type]
    return aligned(past, problem, Encoding(space))


def test_the_same_space_is_encoded_as_it_is() -> None:
    space = Space(lr=Float(1e-4, 1.0, log=True), kind=Categorical(["a", "b", "c"]))
    configs = [{"lr": 0.01, "kind": "b"}, {"lr": 1.0, "kind": "c"}, {"lr": 1e-4, "kind": "a"}]
    found = align(
        history(
            space, [(config, float(k)) for k, config in enumerate(configs)], features={"rows": 9.0}
        ),
        space,
    )
    assert np.array_equal(found.x, Encoding(space).encode(configs))
    assert (found.y.tolist(), found.columns, found.notes, dict(found.features)) == (
        [0.0, 1.0, 2.0],
        (0, 1),
        (),
        {"rows": 9.0},
    )


def test_other_bounds_and_scales_are_aligned_by_value() -> None:
    """What lies beyond the bounds lies outside the cube; it is not clipped, for that would move
    it."""
    past = history(
        Space(lr=Float(0.0, 100.0), n=Int(1, 20)),
        [({"lr": 10.0, "n": 2}, 1.0), ({"lr": 0.1, "n": 20}, 2.0)],
    )
    found = align(past, Space(lr=Float(0.1, 1.0, log=True), n=Float(0.0, 10.0)))
    assert found.x == pytest.approx(np.array([[2.0, 0.2], [0.0, 2.0]]))


def test_zero_has_no_logarithm() -> None:
    past = history(
        Space(lr=Float(0.0, 1.0)), [({"lr": 0.0}, 1.0), ({"lr": 0.1}, 2.0), ({"lr": 1.0}, 3.0)]
    )
    found = align(past, Space(lr=Float(0.1, 1.0, log=True)))
    assert found.x.tolist() == [[0.0], [1.0]] and found.notes == (
        "trials that do not fit this space are left out",
    )


def test_choices_are_aligned_by_what_they_are_and_unknown_ones_left_out() -> None:
    past = history(
        Space(kind=Categorical(["b", "a", "z"]), width=Ordinal([32, 64])),
        [
            ({"kind": "a", "width": 64}, 1.0),
            ({"kind": "z", "width": 32}, 2.0),
            ({"kind": "b", "width": 32}, 3.0),
        ],
    )
    found = align(past, Space(kind=Categorical(["a", "b"]), width=Ordinal([16, 32, 64])))
    assert found.x == pytest.approx(np.array([[0.0, 5 / 6], [1.0, 0.5]])) and found.y.tolist() == [
        1.0,
        3.0,
    ]
    assert found.notes == ("trials that do not fit this space are left out",)


def test_one_and_true_are_different_choices() -> None:
    past = history(
        Space(flag=Categorical([True, False])), [({"flag": True}, 1.0), ({"flag": False}, 2.0)]
    )
    with pytest.raises(
        Unusable, match="skipping past study 'old': it shares no parameter with this study"
    ):
        align(past, Space(flag=Categorical([1, 0])))


def test_missing_extra_and_other_types_are_noted() -> None:
    past = history(
        Space(lr=Float(0.0, 1.0), depth=Categorical(["low", "high"]), seed=Int(0, 9)),
        [
            ({"lr": 0.2, "depth": "low", "seed": 1}, 1.0),
            ({"lr": 0.4, "depth": "high", "seed": 2}, 2.0),
        ],
    )
    found = align(past, Space(lr=Float(0.0, 1.0), depth=Int(1, 8), dropout=Float(0.0, 0.5)))
    assert found.columns == (0,) and found.x == pytest.approx(
        np.array([[0.2, 0.5, 0.5], [0.4, 0.5, 0.5]])
    )
    assert found.notes == (
        "nothing is known about 'depth', 'dropout'",
        "values of 'seed' count as noise",
    )


def test_a_constant_of_the_past_is_the_value_it_had() -> None:
    past = history(
        Space(lr=Float(0.0, 1.0), batch=32),
        [({"lr": 0.2, "batch": 32}, 1.0), ({"lr": 0.4, "batch": 32}, 2.0)],
    )
    found = align(past, Space(lr=Float(0.0, 1.0), batch=Float(0.0, 64.0)))
    assert found.columns == (0, 1) and found.x[:, 1].tolist() == [0.5, 0.5]


def test_conditions_of_this_space_decide_what_exists() -> None:
    old = Space(opt=Categorical(["adam", "sgd"]), momentum=Float(0.0, 1.0, when={"opt": "sgd"}))
    past = history(
        old,
        [({"opt": "adam"}, 1.0), ({"opt": "sgd", "momentum": 0.9}, 2.0), ({"opt": "adam"}, 3.0)],
    )
    same = align(past, old)
    assert same.x.tolist() == [[0.0, 0.5], [1.0, 0.9], [0.0, 0.5]]
    always = align(
        past, Space(opt=Categorical(["adam", "sgd"]), momentum=Float(0.0, 1.0, default=0.25))
    )
    assert always.x.tolist() == [[0.0, 0.25], [1.0, 0.9], [0.0, 0.25]]
    unknown = Space(opt=Categorical(["adam", "sgd"]), momentum=Float(0.0, 1.0))
    with pytest.raises(Unusable, match="1 usable trials"):
        align(past, unknown)  # the value under adam is unknown
    never = align(
        past,
        Space(
            opt=Categorical(["adam", "sgd"]),
            momentum=Float(0.0, 1.0, when={"opt": "adam"}, default=0.1),
        ),
    )
    assert never.x[1].tolist() == [1.0, 0.5]


def test_maximised_studies_give_losses() -> None:
    space = Space(lr=Float(0.0, 1.0))
    past = history(space, [({"lr": 0.2}, 5.0), ({"lr": 0.4}, 7.0)], metrics={"value": "maximize"})
    assert align(past, space, metrics={"value": "maximize"}).y.tolist() == [-5.0, -7.0]
    with pytest.raises(
        Unusable,
        match="skipping past study 'old': 'value' is to maximize there, and to minimize here",
    ):
        align(past, space)


def test_another_metric_that_was_maximised_teaches_by_its_own_direction() -> None:
    space = Space(lr=Float(0.0, 1.0))
    results: list[tuple[dict, float | None]] = [({"lr": 0.2}, 0.8), ({"lr": 0.4}, 0.9)]  # type: ignore[type-arg]
    past = history(space, results, metrics={"accuracy": "maximize"})
    found = align(past, space, metrics={"error": "minimize"})
    assert found.y.tolist() == [-0.8, -0.9]
    assert found.notes == ("'accuracy' was to maximize; its best trials count as best",)


def test_failed_trials_count_as_the_worst() -> None:
    space = Space(lr=Float(0.0, 1.0))
    found = align(
        history(space, [({"lr": 0.2}, 5.0), ({"lr": 0.3}, None), ({"lr": 0.4}, 7.0)]), space
    )
    assert sorted(found.y.tolist()) == [5.0, 7.0, 7.0]


@pytest.mark.parametrize(
    ("y", "reason"),
    [
        ([1.0], "it has 1 usable trials, and at least 2 are needed"),
        ([np.nan, np.nan, 3.0], "it has 1 usable trials"),
        ([2.0, 2.0, 2.0], "its losses are all the same"),
        ([2.0, np.inf, 2.0], "its losses are all the same"),
    ],
)
def test_studies_that_teach_nothing(y: list[float], reason: str) -> None:
    with pytest.raises(Unusable, match=f"skipping past study 'p': {reason}"):
        source_study("p", np.zeros((len(y), 1)), np.array(y))


def test_a_selection_of_checkpoints_is_no_past() -> None:
    problem = Problem(Space(checkpoint=Categorical(["a", "b"]), task=Categorical(["x", "y"])))
    events = [
        StudyCreated(name="s", problem=problem.to_json(), method={"name": "kg"}, kind="selection")
    ]
    with pytest.raises(Unusable, match="it is a selection, which has no configurations"):
        align(History.of(events), problem.space)


def test_budgets_compare_trials_where_enough_of_them_came() -> None:
    """Nine trials reach 3 epochs, two of them 9: values at 3 epochs stand for the study."""
    problem = Problem(Space(lr=Float(0.0, 1.0)), budget=Budget("epoch", 1, 9))
    events: list[Event] = [
        StudyCreated(name="old", problem=problem.to_json(), method={"name": "asha"})
    ]
    for number in range(12):
        events += [
            TrialAdded(trial=number, config={"lr": number / 12}),
            BudgetGranted(trial=number, budget=9.0),
        ]
        for step in (1, 3, 9)[: 1 if number >= 9 else 3 if number < 2 else 2]:
            events.append(
                Reported(trial=number, step=float(step), metrics={"value": 10.0 * number + step})
            )
    configs, losses = final_losses(History.of(events), ["value"])
    assert len(configs) == 9
    assert losses[:, 0].tolist() == [10.0 * number + 3 for number in range(9)]


def test_what_violated_a_constraint_counts_as_the_worst() -> None:
    problem = Problem(Space(lr=Float(0.0, 1.0)), constraints={"memory": AtMost(4.0)})
    events: list[Event] = [
        StudyCreated(name="old", problem=problem.to_json(), method={"name": "gp"})
    ]
    for number, metrics in enumerate([{"memory": 5.0}, {"memory": 4.0}, {"memory": 1.0}, {}]):
        events += [
            TrialAdded(trial=number, config={"lr": number / 4}),
            BudgetGranted(trial=number, budget=1.0),
        ]
        events.append(Reported(trial=number, step=1.0, metrics={"value": float(number), **metrics}))
    past = aligned(History.of(events), problem, Encoding(problem.space))
    assert past.y.tolist() == [3.0, 1.0, 2.0, 3.0]


def test_share_of_parameters() -> None:
    here = Problem(Space(lr=Float(0.0, 1.0), kind=Categorical(["a", "b"]), n=Int(1, 3), batch=32))
    other = Problem(Space(lr=Int(1, 9), kind=Ordinal(["a", "b"]), n=Categorical(["x", "y"])))
    assert shared_share(other, here) == pytest.approx(2 / 3)
    assert shared_share(here, here) == 1.0


def test_digests_tell_studies_apart() -> None:
    x, y = np.random.default_rng(0).random((4, 2)), np.arange(4.0)
    assert (
        source_study("a", x, y).digest
        == source_study("b", x, y).digest
        != source_study("a", x, y + 1).digest
    )


def test_each_metric_keeps_the_trials_that_report_it() -> None:
    """A report may lack a metric; a failure is the worst in all; a metric without information is
    left out with its reason."""
    losses = np.array(
        [[1.0, 5.0, 2.0], [2.0, np.nan, 2.0], [np.inf, np.inf, np.inf], [3.0, 4.0, 2.0]]
    )
    found = source_study("p", np.arange(4.0)[:, None], losses, metrics=("a", "b", "c"))
    assert [found.has_metric(place) for place in range(3)] == [True, True, False]
    assert found.of_metric(0).y.tolist() == [1.0, 2.0, 3.0, 3.0]
    second = found.of_metric(1)
    assert second.x[:, 0].tolist() == [0.0, 2.0, 3.0] and second.losses.tolist() == [[5], [5], [4]]
    assert found.refused == (
        "past study 'p' teaches nothing about 'c': its losses are all the same",
    )


def test_several_metrics_are_aligned_by_name() -> None:
    space = Space(lr=Float(0.0, 1.0))
    there = Problem(space, {"speed": "maximize", "size": "minimize", "error": "minimize"})
    events: list[Event] = [
        StudyCreated(name="old", problem=there.to_json(), method={"name": "random"})
    ]
    for number in range(3):
        metrics = {"speed": 1.0 + number, "size": 9.0 - number, "error": 0.5 * number}
        events += [
            TrialAdded(trial=number, config={"lr": number / 4}),
            BudgetGranted(trial=number, budget=1.0),
            Reported(trial=number, step=1.0, metrics=metrics),
        ]
    here = {"error": "minimize", "speed": "maximize", "size": "maximize", "cost": "minimize"}
    found = align(History.of(events), space, metrics=here)
    assert found.of_metric(0).y.tolist() == [0.0, 0.5, 1.0]
    assert found.of_metric(1).y.tolist() == [-1.0, -2.0, -3.0]
    assert not found.has_metric(2) and not found.has_metric(3)
    assert found.refused == (
        "past study 'old' teaches nothing about 'size': 'size' is to minimize there, and to"
        " maximize here",
        "past study 'old' teaches nothing about 'cost': it has no such metric",
    )
    with pytest.raises(Unusable, match=r"nothing about 'cost'.*; .*nothing about 'loss'"):
        align(History.of(events), space, metrics={"cost": "minimize", "loss": "minimize"})
