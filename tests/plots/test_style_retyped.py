"""An axis that becomes logarithmic in Plotly's usual way still shows its points."""

import pickle

import pytest

import scrimp
from scrimp.plots.style import RetypedAxes


@pytest.fixture(scope="module")
def diverged() -> scrimp.Study:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    for value in [0.2 + 0.01 * place for place in range(30)] + [1e6, 1e7]:
        study.tell(study.ask(), value)
    return study


@pytest.mark.parametrize("change", ["axes", "layout", "nested"])
def test_a_range_does_not_outlive_the_type_of_its_axis(diverged: scrimp.Study, change: str) -> None:
    figure = scrimp.plots.history(diverged)
    assert isinstance(figure, RetypedAxes) and figure.layout.yaxis.range is not None
    if change == "axes":
        figure.update_yaxes(type="log")
    elif change == "layout":
        figure.update_layout(yaxis_type="log")
    else:
        figure.update_layout(yaxis={"type": "log"})
    assert figure.layout.yaxis.type == "log" and figure.layout.yaxis.range is None
    assert pickle.loads(pickle.dumps(figure)).layout == figure.layout


def test_a_range_given_with_the_type_stays(diverged: scrimp.Study) -> None:
    figure = scrimp.plots.history(diverged).update_yaxes(type="log", range=[-1, 1])
    assert figure.layout.yaxis.range == (-1, 1)
    assert scrimp.plots.history(diverged, log=True).layout.yaxis.range is not None
    moved = scrimp.plots.history(diverged).update_yaxes(title="loss")
    assert moved.layout.yaxis.range is not None
