"""``step`` from end to end: the values, the unit interval, designs, growth, records, and every
method that searches."""

import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import scrimp
from scrimp.bench.tables import described_space
from scrimp.encoding.encoding import Encoding
from scrimp.space.designs import grid_design, sobol_design
from scrimp.space.growth import grown_config, narrowings
from scrimp.space.parameter import Float, Int, Ordinal, Steps, count_steps, parameter_from_json
from scrimp.space.space import Space
from scrimp.space.space_text import read_space_text
from scrimp.testing.spaces import SpaceBattery

SPACE = Space(
    dropout=Float(0, 1, step=0.1),
    width=Int(8, 256, step=8),
    deep=Float(-0.3, 1.5, step=0.6, default=0.3),
)


class TestSpaceInSteps(SpaceBattery):
    def space(self):
        return SPACE


class TestSpaceUnderAFloatParent(SpaceBattery):
    def space(self):
        return Space(
            rate=Float(0, 0.3, step=0.1),
            more=Int(1, 9, step=4, when={"rate": [0.1, 0.30000000000000004]}),
        )


@pytest.mark.parametrize(
    ("low", "step", "count"), [(0.0, 0.1, 11), (-0.35, 0.05, 40), (1e-7, 3e-8, 9), (-3e6, 2.5e5, 7)]
)
def test_values_are_those_one_would_write(low, step, count):
    expected = [float(Decimal(repr(low)) + place * Decimal(repr(step))) for place in range(count)]
    steps = Steps(low, step, count)
    assert list(steps) == expected
    assert list(steps[1:3]) == expected[1:3]
    assert steps[-1] == expected[-1]
    assert all(steps.nearest(value) == value for value in expected)
    assert count_steps(low, expected[-1], step) == (count, True)
    with pytest.raises(IndexError):
        steps[count]


@pytest.mark.parametrize(
    "parameter", [Float(0, 1, step=0.1), Int(8, 256, step=8), Float(0, 1e5, step=0.001)]
)
def test_every_value_owns_an_equal_part_and_sits_in_its_middle(parameter):
    count = len(parameter.grid)
    places = sorted({0, 1, count // 2, count - 2, count - 1})
    for place in places:
        value = parameter.grid[place]
        assert parameter.to_unit(value) == pytest.approx(
            float(Fraction(2 * place + 1, 2 * count)), abs=1e-15
        )
        inside = (np.array([0.02, 0.5, 0.98]) + place) / count
        assert parameter.from_units(inside) == [value] * 3
    assert (
        parameter.from_units(np.array([0.0, 1.0, -3.0, 4.0])) == [parameter.low, parameter.high] * 2
    )


def test_a_high_off_the_grid_is_lowered_with_a_warning_and_recorded_so():
    with pytest.warns(
        UserWarning,
        match=r"high is 1\.0, which is not a whole number of steps of 0\.3 from 0\.0; it becomes 0\.9",
    ):
        parameter = Float(0, 1, step=0.3)
    assert (parameter.high, list(parameter.grid)) == (0.9, [0.0, 0.3, 0.6, 0.9])
    with pytest.warns(UserWarning, match="becomes 9"):
        whole = Int(1, 10, step=4)
    assert list(whole.grid) == [1, 5, 9]
    for made in (parameter, whole):
        assert (
            parameter_from_json("x", json.loads(json.dumps(made.to_json()))) == made
        )  # no warning again
    assert Float(0, 0.1 + 0.7, step=0.1).high == 0.8  # rounding is not off the grid


def test_records_say_the_step_and_old_ones_have_none():
    assert Int(8, 64, step=8).to_json() == {"type": "int", "low": 8, "high": 64, "step": 8}
    assert Int(1, 8, step=1) == Int(1, 8)
    assert Int(1, 8, step=1, log=True).to_json() == {
        "type": "int",
        "low": 1,
        "high": 8,
        "log": True,
    }
    assert parameter_from_json("x", {"type": "float", "low": 0, "high": 1}).step is None
    assert repr(Float(0, 1, step=0.25)) == "Float(0.0, 1.0, step=0.25)"
    assert SPACE.size == 11 * 32 * 4


def test_text_and_descriptions_give_the_same_parameters():
    text = read_space_text(["dropout=float(0,1,step=0.1) width=int(8,256,step=8,default=64)"])
    assert parameter_from_json("dropout", text["dropout"]) == SPACE["dropout"]
    assert parameter_from_json("width", text["width"]) == Int(8, 256, step=8, default=64)
    items = [{"name": "x", "type": "float", "low": 0, "high": 1, "step": 0.1}]
    assert described_space(items)["x"] == SPACE["dropout"]


def test_designs_stay_on_the_grid():
    designed = sobol_design(SPACE, 64, np.random.default_rng(0))
    assert all(SPACE.validate(config) == config for config in designed)
    assert len({config["dropout"] for config in designed}) == 11
    whole = Space(a=Float(0, 1, step=0.5), b=Int(2, 6, step=4))
    assert [tuple(config.values()) for config in grid_design(whole)] == [
        (a, b) for a in (0.0, 0.5, 1.0) for b in (2, 6)
    ]
    few = [config["dropout"] for config in grid_design(Space(dropout=SPACE["dropout"]), 3)]
    assert few == [0.0, 0.5, 1.0]


def test_models_see_discrete_columns():
    encoding = Encoding(SPACE)
    assert [len(column.values) for column in encoding.columns] == [11, 32, 4]
    assert all(column.ordered for column in encoding.columns)
    assert (
        Encoding(Space(x=Float(0, 1, step=1e-4))).columns[0].values is None
    )  # many values: continuous, snapped
    x = encoding.domain.sample(200, np.random.default_rng(1))
    moved, _ = encoding.domain.moves(x[:5], np.random.default_rng(2))
    for rows in (x, moved):
        assert np.allclose(encoding.encode(encoding.decode(rows)), rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (Float(0, 1, step=0.2), Float(0, 1, step=0.1), ""),
        (Float(0, 1, step=0.1), Float(0, 1), ""),
        (Float(0, 1, step=0.5), Float(-1, 2, step=0.25), ""),
        (Int(8, 64, step=8), Int(4, 64, step=4), ""),
        (Int(8, 64, step=8), Int(1, 64), ""),
        (Int(2, 6, step=2), Float(0, 8, step=0.5), ""),
        (Float(1, 3, step=1), Int(1, 3), ""),
        (Int(2, 6, step=2), Ordinal([2, 4, 6, 8]), ""),
        (Float(0, 1, step=0.1), Float(0, 1, step=0.2), "no longer takes 0.1"),
        (Float(0, 1, step=0.1), Float(0, 0.9, step=0.1), "ran from 0.0 to 1.0"),
        (Float(0, 1), Float(0, 1, step=0.1), "was continuous"),
        (Int(1, 9), Int(1, 9, step=2), "no longer takes 2"),
        (Int(2, 10, step=2), Int(1, 11, step=2), "no longer takes 2"),
        (Float(1, 3, step=0.5), Int(1, 3), "no longer takes 1.5"),
    ],
)
def test_steps_may_become_finer(old, new, words):
    before, after = Space(x=old), Space(x=new)
    found = narrowings(before, after)
    assert ([] if not words else [words]) == [
        word for word in [words] if word and any(word in text for text in found)
    ]
    assert bool(found) == bool(words)
    kept = [grown_config({"x": value}, before, after) for value in old.grid or ()]
    assert (None in kept) <= bool(words)


@pytest.mark.parametrize("method", ["random", "sobol", "grid", "gp", "tpe", "dehb", "freeze-thaw"])
def test_every_kind_of_method_tries_the_grid_only(method):
    space = Space(x=Float(0, 1, step=0.1), n=Int(8, 32, step=8), fine=Float(0, 1, step=0.0001))
    budget = scrimp.Budget("epoch", 1, 3) if method in ("dehb", "freeze-thaw") else None
    study = scrimp.create_study(
        "s", space, method=method, budget=budget, storage="memory://", seed=0
    )
    for _ in range(8):
        trial = study.ask()
        assert space.validate(trial.params) == trial.params
        loss = abs(trial.params["x"] - 0.7) + trial.params["n"] / 64
        if budget is None:
            study.tell(trial, loss)
            continue
        step = trial.budget + 1
        while study.report(trial, step=step, value=loss):
            step += 1
