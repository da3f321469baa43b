"""Everything with parameters: as many values as its parameters say, and other values make another
thing of the same kind."""

import numpy as np
import pytest

from scrimp.gp.columns import Column
from scrimp.gp.kernel import Scaled
from scrimp.gp.mean import ConstantMean, ZeroMean
from scrimp.gp.parametrised import Parametrised
from scrimp.gp.priors import ParameterVector
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import Matern52

KERNEL = Matern52((Column(), Column()))
THINGS = [
    KERNEL,
    Scaled(KERNEL),
    ConstantMean(),
    ZeroMean(),
    MeanAndKernel(Scaled(KERNEL), ConstantMean()),
    DecayResidual(),
    InnovationResidual(),
]


@pytest.mark.parametrize("thing", THINGS, ids=lambda thing: type(thing).__name__)
def test_other_values_make_another_thing_of_the_same_kind(thing: Parametrised) -> None:
    before = thing.values.copy()
    assert before.shape == (ParameterVector(thing.parameters).size,)
    other = thing.with_values(before * 1.25)
    assert type(other) is type(thing) and other.parameters == thing.parameters
    np.testing.assert_array_equal(other.values, before * 1.25)
    np.testing.assert_array_equal(thing.values, before)
