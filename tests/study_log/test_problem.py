"""The question of a study: refused when it cannot be, the same after JSON, and the one place where
metrics become losses."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scrimp.errors import StudyError
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtLeast, AtMost, Equals
from scrimp.study_log.problem import Budget, Problem, dominates, metrics_of

SPACE = Space(
    lr=Float(1e-5, 1e-1, log=True),
    layers=Int(1, 8),
    width=Ordinal([64, 128]),
    optimizer=Categorical(["adamw", "sgd"]),
    momentum=Float(0.0, 0.99, when={"optimizer": "sgd"}),
    batch=32,
)

finite = st.floats(allow_nan=False, allow_infinity=False)
budgets = st.tuples(st.floats(0.001, 10), st.floats(0, 1e6)).map(
    lambda pair: Budget("epoch", pair[0], pair[0] + pair[1])
)
problems = st.builds(
    Problem,
    space=st.sampled_from(
        [SPACE, Space(x=Float(0, 1)), Pool(Space(x=Float(0, 1)), [{"x": 0.5}, {"x": 0.25}])]
    ),
    metrics=st.dictionaries(
        st.text(min_size=1), st.sampled_from(["minimize", "maximize"]), min_size=1, max_size=3
    ),
    budget=st.none() | budgets | st.just(Budget("epoch", 1, 81)),
    constraints=st.dictionaries(
        st.text(min_size=1), finite.map(AtMost) | finite.map(AtLeast), max_size=3
    ),
    cost=st.none() | st.text(min_size=1),
    features=st.dictionaries(st.text(min_size=1), finite, max_size=3),
    seed=st.integers(0, 2**80),
    noisy=st.booleans(),
)


@given(problems)
def test_json_round_trip(problem: Problem) -> None:
    text = msgspec.json.encode(problem.to_json())
    again = Problem.from_json(msgspec.json.decode(text))
    assert again == problem
    assert again.to_json() == problem.to_json()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            {"metrics": {"error": "up"}},
            "direction of metric 'error' is 'up'; it must be 'minimize'",
        ),
        ({"metrics": {"": "minimize"}}, "metric is ''"),
        ({"metrics": {None: "minimize"}}, "metric is None"),
        ({"metrics": {}}, "names to directions"),
        ({"metrics": ["error", "accuracy"]}, "names to directions"),
        ({"goals": {"value": 1.0}}, "goals is {'value': 1.0}, and the study has one metric"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": True}, "seed is True"),
        ({"cost": ""}, "cost is ''; it must be the name of a reported metric"),
        ({"constraints": ["m <= 3"]}, r"constraints is \['m <= 3'\]; it must be a table by name"),
        ({"constraints": {3: AtMost(1)}}, "constraints is {3: .*; it must be a table by name"),
        (
            {"features": [1, 2]},
            r"features is \[1, 2\]; it must be a table by name, such as {'rows': 1e5}",
        ),
        ({"features": {"rows": math.nan}}, "feature 'rows' is nan; it must be a finite number"),
        ({"features": {"rows": "many"}}, "feature 'rows' is 'many'"),
        ({"constraints": {"m": 3}}, "constraint on 'm' is 3; use scrimp.AtMost"),
        ({"constraints": {"m": AtMost(math.nan)}}, "limit nan; it must be a finite number"),
        ({"constraints": {"m": AtLeast("x")}}, "limit 'x'"),
        ({"constraints": {"m": Equals(0.5, 0.0)}}, "tolerance 0.0; it must be positive"),
        ({"constraints": {"m": Equals(math.inf, 0.1)}}, "value inf; it must be a finite number"),
    ],
)
def test_refused(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Problem(SPACE, **arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("epoch", 0, 9), "budget minimum is 0"),
        (("epoch", -1, 9), "budget minimum is -1"),
        (("epoch", 1, math.inf), "budget maximum is inf"),
        (("epoch", 1, math.nan), "budget maximum is nan"),
        (("epoch", True, 9), "budget minimum is True"),
        (("epoch", "1", 9), "budget minimum is '1'"),
        (("epoch", 9, 1), "minimum 9 is above its maximum 1"),
        (("", 1, 9), "budget name is ''"),
        ((None, 1, 9), "budget name is None"),
    ],
)
def test_budget_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Budget(*arguments)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_no_loss(value: float | None) -> None:
    assert Problem(SPACE).losses({"value": value}) is None
    assert Problem(SPACE, metrics={"value": "maximize"}).losses({"value": value}) is None
    assert Problem(SPACE).losses({}) is None and Problem(SPACE).value(None) is None


@given(finite, st.sampled_from(["minimize", "maximize"]))
def test_losses_and_values(value: float, direction: str) -> None:
    problem = Problem(SPACE, metrics={"value": direction})
    losses = problem.losses({"value": value})
    assert losses == (value if direction == "minimize" else -value,)
    assert problem.value(losses[0]) == value
    assert problem.counted(losses) is losses and not problem.several
    assert (problem.metric, problem.direction) == ("value", direction)


def test_violation() -> None:
    problem = Problem(SPACE, constraints={"memory": AtMost(16), "recall": AtLeast(0.9)})
    assert problem.violation({"memory": 15.0, "recall": 0.95}) == pytest.approx(-0.05)
    assert problem.violation({"memory": 16.0, "recall": 0.95}) == 0
    assert problem.violation({"memory": 20.0, "recall": 0.95}) == 4
    assert problem.violation({"memory": 15.0, "recall": 0.5}) == pytest.approx(0.4)
    assert problem.violation({"memory": 15.0}) is None
    assert problem.violation({"memory": math.nan, "recall": 1.0}) is None
    assert Problem(SPACE).violation({}) == -math.inf


def test_an_equality_holds_within_its_tolerance_and_is_stored() -> None:
    problem = Problem(SPACE, constraints={"share": Equals(0.5, tolerance=0.01)})
    assert [
        (problem.violation({"share": share}) or 0.0) <= 0.0
        for share in (0.489, 0.49, 0.5, 0.51, 0.512)
    ] == [
        False,
        True,
        True,
        True,
        False,
    ]
    assert (
        problem.violation({"share": 0.6})
        == pytest.approx(0.09)
        == problem.violation({"share": 0.4})
    )
    assert Problem.from_json(msgspec.json.decode(msgspec.json.encode(problem.to_json()))) == problem


def test_full_budget() -> None:
    assert Problem(SPACE).full_budget == 1.0
    assert Problem(SPACE, budget=Budget("epoch", 1, 81)).full_budget == 81.0


METRICS = {"error": "minimize", "accuracy": "maximize"}


def test_losses_have_the_signs_of_their_directions_and_count_up_to_the_goals() -> None:
    problem = Problem(SPACE, METRICS, goals={"accuracy": 0.9})
    assert problem.losses({"error": 0.2, "accuracy": 0.5}) == (0.2, -0.5)
    beyond = problem.losses({"error": 0.2, "accuracy": 0.95, "other": 1.0})
    assert beyond == (0.2, -0.95) and problem.counted(beyond) == (0.2, -0.9)
    assert problem.values((0.2, -0.9)) == {"error": 0.2, "accuracy": 0.9}


@pytest.mark.parametrize("bad", [None, math.inf])
def test_a_metric_that_is_not_finite_leaves_no_losses(bad: float | None) -> None:
    assert Problem(SPACE, METRICS).losses({"error": 0.2, "accuracy": bad}) is None
    assert Problem(SPACE, METRICS).losses({"error": bad, "accuracy": 0.2}) is None


def test_a_report_without_a_metric_has_losses_and_compares_with_none() -> None:
    problem = Problem(SPACE, METRICS)
    losses = problem.losses({"error": 0.2})
    assert losses is not None and losses[0] == 0.2 and math.isnan(losses[1])
    assert problem.counted(losses) is None
    assert problem.losses({"accuracy": 0.2}) is None


def test_several_metrics_in_json_and_back() -> None:
    tables = ({"error": 1.0, "accuracy": 0.0}, {"error": 0.1}, dict.fromkeys(METRICS, 1.0))
    whole = Problem(SPACE, METRICS, *tables)
    for one in (whole, Problem(SPACE, METRICS)):
        assert Problem.from_json(one.to_json()) == one
    assert whole.reference_losses == (1.0, -0.0)
    assert Problem(SPACE, METRICS).reference_losses is None


def test_domination() -> None:
    assert dominates((1.0, 2.0), (1.0, 3.0))
    assert not dominates((1.0, 2.0), (1.0, 2.0))
    assert not dominates((1.0, 3.0), (2.0, 2.0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metrics": {**METRICS, "accuracy": "up"}}, "direction of metric 'accuracy' is 'up'"),
        ({"reference": {"error": 1.0}}, "leaves out accuracy"),
        ({"reference": {"error": 1.0, "accuracy": math.inf}}, "finite number"),
        ({"goals": {"acuracy": 1.0}}, "did you mean 'accuracy'"),
        ({"goals": 3}, "table by metric"),
        ({"weights": {"error": -1.0, "accuracy": 1.0}}, "at least 0"),
        ({"weights": {"error": 0.0, "accuracy": 0.0}}, "all weights are 0"),
    ],
)
def test_mistakes_in_several_metrics_are_named(change: dict[str, Any], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        Problem(**{"space": SPACE, "metrics": METRICS, **change})


def test_metrics_are_one_name_or_a_table() -> None:
    assert metrics_of("error", "maximize", None) == {"error": "maximize"}
    assert metrics_of("value", "minimize", METRICS) == METRICS
    with pytest.raises(StudyError, match="is given beside metrics"):
        metrics_of("error", "minimize", METRICS)
