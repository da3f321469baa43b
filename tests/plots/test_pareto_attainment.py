"""The picture of what repeated studies attain."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.fronts.dominance import attained

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))
METRICS = {"error": "minimize", "speed": "maximize"}


def made(seed, count=8, metrics=METRICS):
    study = scrimp.create_study(
        f"s{seed}", SPACE, metrics=metrics, method="random", storage="memory://", seed=seed
    )
    for _ in range(count):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, {"error": x + y, "speed": x**2})
    return study


def test_the_median_and_the_quartiles_are_drawn_above_each_front():
    import numpy as np

    studies = [made(seed) for seed in range(5)]
    picture = scrimp.plots.attainment(*studies)
    traces = {trace.name: trace for trace in picture.data}
    assert set(traces) == {*(f"s{k}" for k in range(5)), "best quarter", "median", "three quarters"}
    own = studies[2].front
    assert sorted(traces["s2"].x) == sorted(report.metrics["error"] for _, report in own)
    runs = [
        np.array([[t.curve[-1].metrics["error"], -t.curve[-1].metrics["speed"]] for t in s.trials])
        for s in studies
    ]
    assert list(traces["median"].x) == attained(runs, 0.5)[:, 0].tolist()
    assert list(traces["median"].y) == (-attained(runs, 0.5)[:, 1]).tolist()
    assert traces["three quarters"].fill == "tonexty"
    assert "5 studies" in picture.layout.meta["alternative"]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(StudyError, match="given no study"):
        scrimp.plots.attainment()
    with pytest.raises(StudyError, match="none of the studies has a report"):
        scrimp.plots.attainment(made(0, count=0))
    turned = {"error": "minimize", "speed": "minimize"}
    with pytest.raises(StudyError, match="'s1' does not have"):
        scrimp.plots.attainment(made(0), made(1, metrics=turned))
    with pytest.raises(StudyError, match="not a metric"):
        scrimp.plots.attainment(made(0), x="loss")
