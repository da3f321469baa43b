"""Pictures of a study of several metrics."""

import pytest

import scrimp
from scrimp.errors import StudyError

METRICS = {"error": "minimize", "speed": "maximize", "memory": "minimize"}


def made(count=12, metrics=METRICS, **settings):
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1)),
        metrics=metrics,
        method="random",
        storage="memory://",
        seed=0,
        **settings,
    )
    for _ in range(count):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        values = {"error": x + y, "speed": x**2, "memory": y}
        study.tell(trial, values)
    return study


def test_the_front_and_what_it_dominates_are_apart():
    study = made(metrics={"error": "minimize", "speed": "maximize"})
    picture = scrimp.plots.front(study)
    traces = {trace.name: trace for trace in picture.data}
    assert sorted(traces["front"].x) == [report.metrics["error"] for _, report in study.front]
    assert len(traces["front"].x) + len(traces["dominated"].x) == 12
    assert list(traces["knee"].customdata) == [study.knee[0].id]
    assert {"after 25%", "after 50%", "after 75%"} <= set(traces)
    assert "dominated by trial" in traces["dominated"].text[0]
    assert "on the front" in picture.layout.meta["alternative"]
    assert "lower is better" in picture.layout.xaxis.title.text


def test_what_was_attained_earlier_lies_behind():
    study = made(40, metrics={"error": "minimize", "memory": "minimize"})
    traces = {trace.name: trace for trace in scrimp.plots.front(study).data}
    early = list(zip(traces["after 25%"].x, traces["after 25%"].y, strict=True))
    late = list(zip(traces["after 75%"].x, traces["after 75%"].y, strict=True))
    assert all(any(a <= x and b <= y for a, b in late) for x, y in early)


def test_infeasible_reports_have_a_look_of_their_own():
    study = made(constraints={"memory": scrimp.AtMost(0.5)})
    traces = {trace.name: trace for trace in scrimp.plots.front(study, "speed", "memory").data}
    assert min(traces["infeasible"].y) > 0.5 >= max(traces["front"].y)


def test_metrics_are_chosen_by_name():
    study = made()
    assert "speed and memory" in scrimp.plots.front(study, "speed", "memory").layout.title.text
    for x, y, words in (("speed", "speed", "choose two"), ("sped", None, "is not a metric")):
        with pytest.raises(StudyError, match=words):
            scrimp.plots.front(study, x, y)


@pytest.mark.parametrize("over", ["trials", "time", "budget"])
def test_the_hypervolume_only_grows(over):
    study = made(reference={"error": 2.0, "speed": 0.0, "memory": 1.0})
    (line,) = scrimp.plots.front_history(study, over).data
    assert list(line.y) == sorted(line.y)
    assert line.y[-1] == pytest.approx(study.hypervolume())


def test_nothing_yet_and_one_metric():
    empty = made(0)
    for draw in (scrimp.plots.front, scrimp.plots.front_history, scrimp.plots.trade_offs):
        assert draw(empty).layout.meta["alternative"]
    single = made(2, metrics={"error": "minimize"})
    for draw in (scrimp.plots.front, scrimp.plots.front_history, scrimp.plots.trade_offs):
        with pytest.raises(StudyError, match="several metrics"):
            draw(single)
