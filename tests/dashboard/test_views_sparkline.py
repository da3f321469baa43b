"""The line of the best in a few pixels."""

import pytest

import scrimp
from scrimp.dashboard.views import SPARKLINE_SIZE, svg_sparkline


def drawn(values: list[float], direction: str) -> list[tuple[float, float]]:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        direction=direction,  # type: ignore[arg-type]
        method="random",
        storage="memory://",
        seed=0,
    )
    for value in values:
        study.tell(study.ask(), value)
    return [tuple(map(float, pair.split(","))) for pair in svg_sparkline(study.history).split()]  # type: ignore[misc]


@pytest.mark.parametrize(("direction", "top"), [("minimize", True), ("maximize", False)])
def test_it_goes_from_the_first_value_to_the_best(direction: str, top: bool) -> None:
    sign = 1 if direction == "minimize" else -1
    line = drawn([sign * value for value in (3.0, 4.0, 2.0, 1.0, 5.0)], direction)
    heights = [y for _, y in line]
    assert heights == sorted(heights, reverse=not top) and len(set(heights)) == 3
    assert {heights[0], heights[-1]} == {2.0, SPARKLINE_SIZE[1] - 2.0}
    assert [x for x, _ in line] == sorted(x for x, _ in line) and line[-1][0] == SPARKLINE_SIZE[
        0
    ] - 1


def test_a_single_value_is_no_line() -> None:
    assert drawn([], "minimize") == [] and drawn([1.0], "minimize") == []
    assert len({y for _, y in drawn([1.0, 1.0], "minimize")}) == 1
