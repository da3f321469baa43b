"""Which configurations are made."""

from scrimp.bench.making import MakingSettings, drawn
from scrimp.space.parameter import Float, Int
from scrimp.space.space import Space

SPACE = Space(x=Float(0.0, 1.0), k=Int(1, 9))


def test_more_configurations_begin_alike():
    assert drawn(SPACE, 3, 40)[:7] == drawn(SPACE, 3, 7) != drawn(SPACE, 4, 7)
    assert (MakingSettings().size, MakingSettings(small=True).size) == ("full", "small")
