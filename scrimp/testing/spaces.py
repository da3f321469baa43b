"""The battery for spaces, and random spaces to test it on."""

import json
import pickle
from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import strategies as st

from scrimp.errors import ConfigError
from scrimp.json_values import Config, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int, Ordinal
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

scalars = st.sampled_from(
    ["a", "b", "", "é", True, False, None, 0, 1, -2, 7, 0.0, 1.0, 0.1, -1e300]
)


def _unlike(values: list[Scalar]) -> list[Scalar]:
    """Return ``values`` without repetitions, where 1, 1.0 and True are different."""
    return list({(type(value), value): value for value in values}.values())


@st.composite
def parameters(draw: st.DrawFn, when: Mapping[str, list[Scalar]] | None = None) -> Parameter:
    """A random parameter."""
    kind = draw(st.sampled_from([Float, Int, Ordinal, Categorical, Constant]))
    if kind is Constant:
        return Constant(draw(scalars), when=when)
    if kind in (Ordinal, Categorical):
        return kind(_unlike(draw(st.lists(scalars, min_size=1, max_size=6))), when=when)
    if draw(st.booleans()):
        step = draw(st.sampled_from([1, 3, 8]))
        count = draw(st.integers(2, 12) | st.integers(10**3, 10**6))
        if kind is Int:
            first = draw(st.integers(-(10**6), 10**6))
            return Int(first, first + step * (count - 1), step=step, when=when)
        scale = draw(st.sampled_from([0.1, 0.05, 1e-7, 1.0, 1e6]))
        start = draw(st.integers(-50, 50)) * scale
        return Float(start, start + step * scale * (count - 1), step=step * scale, when=when)
    log = draw(st.booleans())
    if kind is Int:
        low = draw(st.integers(1 if log else -(10**12), 10**12 - 1))
        furthest = min(10**12, low + draw(st.sampled_from([3, 10**12])))
        return Int(low, draw(st.integers(low + 1, furthest)), log=log, when=when)
    exponents = sorted(
        draw(st.lists(st.floats(-20, 20), min_size=2, max_size=2, unique_by=lambda e: round(e, 3)))
    )
    low_float, high = 10.0 ** exponents[0], 10.0 ** exponents[1]
    lowest = low_float if log else draw(st.sampled_from([-high, 0.0, low_float]))
    return Float(lowest, high, log=log, when=when)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """A random space of up to seven parameters, with conditions on earlier ones."""
    made: dict[str, Parameter] = {}
    for number in range(draw(st.integers(1, 7))):
        parents = [name for name, parameter in made.items() if parameter.size <= 10]
        when = None
        if len(parents) > 0 and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            values: list[Scalar] = list(made[parent].grid or ())
            when = {
                parent: _unlike(draw(st.lists(st.sampled_from(values), min_size=1, max_size=3)))
            }
        made[f"p{number}"] = draw(parameters(when=when))
    return Space(made)


def same_config(space: Space, one: Config, other: Config) -> bool:
    """True if two configurations are equal, floats up to rounding."""
    if list(one) != list(other):
        return False
    for name in one:
        parameter = space[name]
        if isinstance(parameter, Float) and parameter.step is None:
            scale = abs(one[name]) * 100 if parameter.log else parameter.high - parameter.low
            if abs(one[name] - other[name]) > 1e-14 * scale:
                return False
        elif type(one[name]) is not type(other[name]) or one[name] != other[name]:
            return False
    return True


class SpaceBattery(ABC):
    """Tests for every space."""

    @abstractmethod
    def space(self) -> Space:
        """Return the space under test, with at least three configurations."""

    def test_samples_are_valid_and_in_normal_form(self) -> None:
        space = self.space()
        for config in space.sample(3, np.random.default_rng(0)):
            assert space.validate(config) == config
            assert list(space.validate(config)) == list(config)
            assert space.contains(config)
            assert tuple(config) == space.active(config)

    def test_equal_generators_give_equal_samples(self) -> None:
        space = self.space()
        one, other = (space.sample(3, np.random.default_rng(7)) for _ in range(2))
        assert one == other

    def test_keys_tell_configurations_apart(self) -> None:
        space = self.space()
        one, other = space.sample(2, np.random.default_rng(1))
        assert space.key(one) == space.key(dict(reversed(one.items())))
        assert (space.key(one) == space.key(other)) == (one == other)
        assert isinstance(hash(space.key(one)), int)

    def test_the_unit_cube_and_back(self) -> None:
        space = self.space()
        configs = space.sample(3, np.random.default_rng(2))
        units = space.to_units(configs)
        assert units.shape == (3, len(space.searched))
        assert ((units >= 0) & (units <= 1)).all()
        pairs = zip(configs, space.from_units(units), strict=True)
        assert all(same_config(space, one, other) for one, other in pairs)

    def test_any_place_of_the_cube_is_a_valid_configuration(self) -> None:
        space = self.space()
        units = np.random.default_rng(3).random((20, len(space.searched)))
        units[0], units[1] = 0.0, 1.0
        assert all(space.contains(config) for config in space.from_units(units))

    def test_json_and_pickle_give_the_same_space(self) -> None:
        space = self.space()
        for copy in (
            Space.from_json(json.loads(json.dumps(space.to_json()))),
            pickle.loads(pickle.dumps(space)),
        ):
            assert copy == space
            assert hash(copy) == hash(space)
            assert type(copy) is type(space)
            one, other = (each.sample(2, np.random.default_rng(4)) for each in (copy, space))
            assert one == other

    def test_completing_keeps_what_is_given(self) -> None:
        space = self.space()
        config = space.sample(1, np.random.default_rng(5))[0]
        for name in config:
            completed = space.complete({name: config[name]}, np.random.default_rng(6))
            assert completed[name] == config[name]
            assert space.contains(completed)

    def test_unknown_parameters_are_refused(self) -> None:
        space = self.space()
        config = space.sample(1, np.random.default_rng(8))[0]
        with pytest.raises(ConfigError, match="no such parameter"):
            space.validate({**config, "no such parameter": 1})
