"""The surface is the model's mean through the best configuration, in the user's direction."""

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError


def test_the_surface_of_a_known_function(whole: scrimp.Study) -> None:
    surface, trials, best = scrimp.plots.contour(whole, "a", "b").data
    grid = 3 * np.array(surface.x)[None, :] + np.array(surface.y)[:, None]
    assert np.abs(np.array(surface.z) - grid).max() < 0.15
    assert list(trials.x) == [trial.params["a"] for trial in whole.trials]
    assert (best.x[0], best.y[0]) == (whole.best_params["a"], whole.best_params["b"])


def test_choices_make_a_heat_map(staged: scrimp.Study) -> None:
    picture = scrimp.plots.contour(staged, "lr", "optimizer")
    assert picture.data[0].type == "heatmap" and picture.layout.xaxis.type == "log"
    assert list(picture.data[0].y) == ["adamw", "&lt;b&gt;sgd&lt;/b&gt;"]
    assert np.array(picture.data[0].z).shape == (2, 41)


def test_which_parameters(whole: scrimp.Study) -> None:
    assert scrimp.plots.contour(whole).layout.xaxis.title.text == "a"
    turned = scrimp.plots.contour(whole, y="a").layout
    assert (turned.xaxis.title.text, turned.yaxis.title.text) == ("b", "a")
    with pytest.raises(StudyError, match="two different"):
        scrimp.plots.contour(whole, "a", "a")
    with pytest.raises(StudyError, match="'z'"):
        scrimp.plots.contour(whole, "z")


def test_the_caption_counts_the_trials_that_the_model_was_fitted_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("scrimp.plots.models.MAX_LANDSCAPE_ROWS", 10)
    space = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))
    study = scrimp.create_study("many", space, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=30)
    words = scrimp.plots.contour(study).layout.meta["alternative"]
    assert int(words.split()[3]) <= 10
