"""The picture of a model is drawn from the model that decided."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), kind=scrimp.Categorical(["a", "b"]))


@pytest.fixture(scope="module")
def study() -> scrimp.Study:
    made = scrimp.create_study(
        "s",
        SPACE,
        direction="maximize",
        metric="accuracy",
        method="gp-ei:initial=3",
        storage="memory://",
        seed=0,
    )
    made.optimize(
        lambda trial: 1 - (np.log10(trial.params["lr"]) + 2) ** 2 - (trial.params["kind"] == "b"),
        n_trials=9,
    )
    return made


def trace(picture: Any, name: str) -> Any:
    return next(item for item in picture.data if item.name == name)


def test_it_shows_mean_band_observations_and_acquisition(study: scrimp.Study) -> None:
    picture = scrimp.plots.surrogate(study, "lr")
    observed = trace(picture, "observed")
    assert sorted(observed.y) == sorted(trial.value for trial in study.trials)
    mean, low = trace(picture, "mean"), trace(picture, "two standard deviations")
    assert (
        len(mean.x) == 201 and mean.x[0] == pytest.approx(1e-4) and mean.x[-1] == pytest.approx(1.0)
    )
    high = picture.data[0]
    assert (np.minimum(low.y, high.y) <= np.array(mean.y) + 1e-9).all()
    assert (np.maximum(low.y, high.y) >= np.array(mean.y) - 1e-9).all()
    best = study.best_params
    place = int(np.argmin(np.abs(np.log(np.array(mean.x) / best["lr"]))))
    assert mean.y[place] == pytest.approx(
        study.best_value, abs=0.1
    )  # the mean passes through what was seen
    assert picture.layout.xaxis.type == "log" and picture.layout.yaxis.title.text == "accuracy"
    assert picture.layout.xaxis2.title.text == "lr"
    assert "9 observations of accuracy" in picture.layout.meta["alternative"]


def test_the_acquisition_of_an_iteration_peaks_where_the_next_point_went() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("one", space, method="gp-ei:initial=2", storage="memory://", seed=1)
    study.optimize(lambda trial: (trial.params["x"] - 0.3) ** 2, n_trials=6)
    first = scrimp.plots.surrogate(study, "x", iteration=1).layout.meta["alternative"]
    assert first.startswith("1 observation of value")
    for iteration in range(3, 6):
        acquisition = trace(scrimp.plots.surrogate(study, "x", iteration=iteration), "acquisition")
        peak = acquisition.x[int(np.argmax(acquisition.y))]
        assert peak == pytest.approx(study.trials[iteration].params["x"], abs=0.02)


def test_discrete_parameters_are_shown_at_their_values(study: scrimp.Study) -> None:
    assert list(trace(scrimp.plots.surrogate(study, "kind"), "mean").x) == ["a", "b"]


def test_other_methods_get_a_model_for_the_picture() -> None:
    study = scrimp.create_study("r", SPACE, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["lr"], n_trials=5)
    picture = scrimp.plots.surrogate(study, "lr")
    assert trace(picture, "mean").y is not None
    # An acquisition that does not decide is not drawn.
    assert "acquisition" not in {item.name for item in picture.data}
    assert "random has none of its own" in picture.layout.meta["alternative"]


def test_every_metric_has_its_model() -> None:
    study = scrimp.create_study(
        "m",
        SPACE,
        metrics={"error": "minimize", "speed": "maximize"},
        constraints={"memory": scrimp.AtMost(2.0)},
        method="gp:initial=3",
        storage="memory://",
        seed=0,
    )

    def measure(trial: Any) -> dict[str, float]:
        place = np.log10(trial.params["lr"])
        return {"error": (place + 2) ** 2, "speed": place, "memory": -place, "heat": 3.0 * place}

    study.optimize(measure, n_trials=10)
    for metric, slope in {"error": None, "speed": 1.0, "memory": -1.0, "heat": 3.0}.items():
        picture = scrimp.plots.surrogate(study, "lr", metric=metric)
        mean = trace(picture, "mean")
        assert picture.layout.yaxis.title.text == metric
        assert sorted(trace(picture, "observed").y) == sorted(
            trial.last.metrics[metric] for trial in study.trials
        )
        if slope is not None:
            assert (mean.y[-1] - mean.y[0]) / 4.0 == pytest.approx(slope, rel=0.3)
        assert "acquisition" in {item.name for item in picture.data}


@pytest.mark.parametrize(
    ("parameter", "iteration", "words"),
    [("rate", None, "'rate'"), ("lr", 99, "iteration is 99"), ("lr", 0, "no observations")],
)
def test_what_cannot_be_drawn_is_said(
    study: scrimp.Study, parameter: str, iteration: int | None, words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        scrimp.plots.surrogate(study, parameter, iteration=iteration)
