import scrimp
from tests.plots.test_pareto import made


def test_the_good_end_of_every_axis_is_at_the_top_and_the_front_is_drawn_last():
    study = made()
    (lines,) = scrimp.plots.trade_offs(study).data
    ranges = {axis.label: tuple(axis.range) for axis in lines.dimensions}
    assert ranges["error"][0] > ranges["error"][1] and ranges["speed"][0] < ranges["speed"][1]
    ahead = len({trial.id for trial, _ in study.front})
    assert list(lines.line.color) == [0.0] * (12 - ahead) + [1.0] * ahead
