"""Every family builds what its space allows."""

import warnings

import numpy as np
import pytest

from scrimp.bench.made_data import FAMILIES, split


@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize("task", ["iris", "petal-width"])
def test_what_is_built_learns(name, task):
    family, data = FAMILIES[name], split(task, 75, 0)
    errors = []
    for config in family.space.sample(6, np.random.default_rng(0)):
        model = family.build(config, data.classification)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = model.fit(data.x, data.y).predict(data.x_valid)
            except ValueError as error:  # some configurations fail, as they may
                assert not isinstance(error, TypeError)  # but no parameter is unknown
                continue
        errors.append(
            (found != data.y_valid).mean()
            if data.classification
            else np.abs(found - data.y_valid).mean()
        )
    chance = 0.6 if data.classification else np.abs(data.y_valid).mean()
    assert min(errors) < 0.5 * chance


def test_there_are_seven_of_two_to_ten_parameters():
    sizes = {name: len(family.space) for name, family in FAMILIES.items()}
    assert len(sizes) == 7 and min(sizes.values()) == 2 and max(sizes.values()) == 10
    conditional = [
        name for name, family in FAMILIES.items() if any(p.when for p in family.space.values())
    ]
    assert len(conditional) >= 4
