"""One panel per parameter, with the trials in which it exists."""

import json
from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.study_log.events import BudgetGranted, Decided, Reported, TrialAdded


def test_panels_hold_the_trials(staged: scrimp.Study) -> None:
    picture = scrimp.plots.slice(staged)
    assert [trace.name for trace in picture.data[::2]] == [
        "lr",
        "layers",
        "width",
        "optimizer",
        "momentum",
    ]
    lr, momentum = picture.data[0], picture.data[8]
    best = staged.history.best[0]
    assert (picture.data[1].name, list(picture.data[1].x)) == ("best", [best.config["lr"]])
    last = picture.layout.xaxis5.domain
    assert last[1] == picture.layout.xaxis3.domain[1], "the last row is as wide as the first"
    known = [trial for trial in staged.trials if trial.value is not None]
    assert list(lr.x) == [trial.params["lr"] for trial in known] and list(lr.y) == [
        trial.value for trial in known
    ]
    assert len(momentum.x) == sum("momentum" in trial.params for trial in known) < len(known)
    assert picture.layout.xaxis.type == "log" and picture.layout.xaxis4.type == "category"


def test_a_wrong_name_is_said(staged: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="'rate'"):
        scrimp.plots.slice(staged, ["rate"])


PLANTED = [
    {"x": 0.5, "c": -1e308},
    {"x": 0.5, "c": 2**63},
    {"x": {"a": 1}, "c": "a"},
    {"x": [1], "c": "a"},
    {"x": "t", "c": 5},
    {},
    {"x": None, "c": None},
    {"x": True, "c": False},
]


@pytest.mark.parametrize("config", PLANTED, ids=str)
def test_planted_configurations_are_left_out_of_every_figure(config: Any) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1), c=scrimp.Categorical(["a", "b"]))
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: 1 + trial.params["x"], n_trials=6)
    planted = [
        Decided(decision=6, seen=1),
        TrialAdded(trial=6, config=config),
        BudgetGranted(trial=6, budget=1.0),
        Reported(trial=6, step=1.0, metrics={"value": 0.001}),
    ]
    study._ledger.append(planted)
    for draw in (scrimp.plots.slice, scrimp.plots.parallel, scrimp.plots.contour):
        drawn = json.loads(draw(study).to_json())["data"]
        assert all(len(trace.get("x", [])) in (0, 1, 6, 41) for trace in drawn)


@pytest.mark.parametrize("draw", [scrimp.plots.slice, scrimp.plots.parallel])
def test_without_finite_values_the_error_names_the_metric(draw: Any) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, metric="e", method="random", storage="memory://")
    study.tell(study.ask(), state="failed")
    with pytest.raises(StudyError, match="no trial has reported a finite e yet"):
        draw(study)


def test_figures_of_parameters_show_any_metric(whole: scrimp.Study) -> None:
    memory = [trial.last.metrics["memory"] for trial in whole.trials]
    drawn = scrimp.plots.slice(whole, metric="memory")
    assert list(drawn.data[0].y) == memory and drawn.layout.yaxis.title.text == "memory"
    shares = scrimp.plots.importance(whole, metric="memory")
    bars = dict(zip(shares.data[0].y, shares.data[0].x, strict=True))
    assert bars["a"] > 0.9  # memory is the parameter a
    picture = scrimp.plots.contour(whole, metric="memory")
    assert "expects the best memory" in picture.layout.meta["alternative"]
    heights = np.array(picture.data[0].z)
    assert heights.min() == pytest.approx(0.0, abs=0.05)
    assert heights.max() == pytest.approx(1.0, abs=0.05)
    with pytest.raises(StudyError, match="no metric 'speed' was reported"):
        scrimp.plots.contour(whole, metric="speed")
