"""Which configurations are made."""

from scrimp.bench.making import MakingSettings, drawn

SPACE = (
    {"name": "x", "type": "float", "low": 0.0, "high": 1.0},
    {"name": "k", "type": "int", "low": 1, "high": 9},
)


def test_more_configurations_begin_alike():
    assert drawn(SPACE, 3, 40)[:7] == drawn(SPACE, 3, 7) != drawn(SPACE, 4, 7)
    assert (MakingSettings().size, MakingSettings(small=True).size) == ("full", "small")
