"""What each name of the list stands for exists, and takes what the list presets."""

import importlib
from dataclasses import fields

import pytest

from scrimp.tuning.own_methods import OWN


@pytest.mark.parametrize("name", OWN)
def test_parts_exist_and_take_their_presets(name: str) -> None:
    entry = OWN[name]
    assert bool(entry.policy) != bool(entry.suggester)
    taken = set()
    for path in [entry.policy] if entry.policy else [entry.suggester, entry.scheduler]:
        assert isinstance(path, str)  # so that a name costs no import
        module, _, part = path.partition(":")
        taken |= {item.name for item in fields(getattr(importlib.import_module(module), part))}
    assert set(entry.presets) <= taken
