"""Every axis holds the trials' own values."""

import math

import scrimp


def worst_first(study: scrimp.Study) -> list[scrimp.Trial]:
    known = [trial for trial in study.trials if trial.value is not None]
    return sorted(known, key=lambda trial: (trial.best, trial.id), reverse=True)


def test_axes_hold_the_values_of_the_trials(staged: scrimp.Study) -> None:
    (trace,) = scrimp.plots.parallel(staged).data
    known = worst_first(staged)
    axes = {axis.label: axis for axis in trace.dimensions}
    assert (
        list(axes["val_error"].values) == [trial.value for trial in known] == list(trace.line.color)
    )
    assert list(axes["lr"].values) == [math.log10(trial.params["lr"]) for trial in known]
    assert list(axes["layers"].values) == [trial.params["layers"] for trial in known]
    assert list(axes["width"].values) == [
        [64, 128, 256].index(trial.params["width"]) for trial in known
    ]


def test_an_absent_parameter_has_a_place_of_its_own(staged: scrimp.Study) -> None:
    (trace,) = scrimp.plots.parallel(staged, ["momentum", "optimizer"]).data
    momentum, optimizer = trace.dimensions[:2]
    known = worst_first(staged)
    for trial, place in zip(known, momentum.values, strict=True):
        assert place == trial.params["momentum"] if "momentum" in trial.params else place < 0.0
    assert "n/a" in momentum.ticktext and momentum.range[0] == min(momentum.values)
    assert optimizer.ticktext == ("adamw", "&lt;b&gt;sgd&lt;/b&gt;")


def test_ticks_are_round_and_whole_for_integers() -> None:
    space = scrimp.Space(
        lr=scrimp.Float(2e-4, 0.5, log=True), n=scrimp.Int(1, 4), m=scrimp.Int(0, 100)
    )
    study = scrimp.create_study("t", space, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["lr"], n_trials=3)
    lr, n, m, _ = scrimp.plots.parallel(study).data[0].dimensions
    assert lr.ticktext == ("0.0002", "0.001", "0.01", "0.1", "0.5")
    assert n.ticktext == ("1", "2", "3", "4") and m.ticktext == ("0", "25", "50", "75", "100")


def test_axes_are_described_for_whoever_brushes_them(staged: scrimp.Study) -> None:
    axes = scrimp.plots.parallel(staged).layout.meta["axes"]
    assert axes[0] == {"name": "lr", "log": True} and axes[1] == {"name": "layers", "log": False}
    assert axes[3] == {"name": "optimizer", "choices": ["adamw", "<b>sgd</b>"]}
    assert axes[-1] == {"name": "last"}


def test_another_metric_and_values_beyond_the_axis() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("far", space, method="random", storage="memory://", seed=0)
    for number in range(9):
        far = 1e6 if number == 4 else float(number)
        study.tell(study.ask(), {"value": far, "memory": -float(number)})
    picture = scrimp.plots.parallel(study)
    axis = picture.data[0].dimensions[-1]
    assert max(axis.values) == axis.range[1] < 100.0 and axis.ticktext[-1].startswith("≥")
    assert "1 values beyond" in picture.layout.meta["alternative"]
    assert picture.layout.meta["axes"][-1] == {"name": "last", "open": "high"}
    other = scrimp.plots.parallel(study, metric="memory")
    assert other.data[0].dimensions[-1].label == "memory"
    assert other.layout.meta["axes"][-1] == {"name": "memory"}
