"""Keras 3 as a trial, on the real library."""

import os
import warnings
from collections.abc import Iterator

import numpy as np
import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="make test-integrations installs keras")

import scrimp
from scrimp.errors import BrokenObjective, ReportError, StorageError
from scrimp.integrations.keras import FILE, ScrimpCallback

X = np.random.default_rng(0).normal(size=(64, 3)).astype("float32")
Y = X @ np.array([[1.0], [-2.0], [0.5]], dtype="float32")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def fit(rate: float, callback: ScrimpCallback | None, epochs: int = 9) -> list[float]:
    model = None if callback is None else callback.restored
    if model is None:
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
        model.compile(keras.optimizers.Adam(rate), loss="mse")
    history = model.fit(
        X,
        Y,
        validation_data=(X, Y),
        initial_epoch=0 if callback is None else callback.initial_epoch,
        epochs=epochs,
        shuffle=False,
        verbose=0,
        callbacks=[] if callback is None else [callback],
    )
    return list(history.history["val_loss"])


def objective(trial: scrimp.LiveTrial) -> None:
    fit(trial.params["rate"], ScrimpCallback({"loss": "val_loss"}, trial))


def test_a_paused_trial_goes_on_as_if_it_had_not_stopped(paused_study: scrimp.Study) -> None:
    paused_study.optimize(objective, n_trials=4)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.attempt > 1 and longest.budget in (3, 9)
    alone = fit(longest.config["rate"], None, int(longest.budget))
    assert [point.metrics["loss"] for point in longest.curve] == pytest.approx(alone, rel=1e-4)


def test_every_so_many_epochs_and_the_last_are_reported(paused_study: scrimp.Study) -> None:
    def sparse(trial: scrimp.LiveTrial) -> None:
        fit(trial.params["rate"], ScrimpCallback({"loss": "val_loss"}, trial, every=2))

    paused_study.optimize(sparse, n_trials=4)
    longest = max(paused_study.trials, key=lambda trial: trial.budget)
    assert longest.budget in (3, 9)
    assert [point.step for point in longest.curve] == [1, 2, 3, 4, 6, 8, 9][: len(longest.curve)]


def test_a_metric_that_is_not_logged_is_named_with_those_that_are(
    paused_study: scrimp.Study,
) -> None:
    def wrong(trial: scrimp.LiveTrial) -> None:
        fit(0.1, ScrimpCallback("val_los", trial))

    with pytest.raises(BrokenObjective) as caught:
        paused_study.optimize(wrong, n_trials=3)
    assert "did you mean 'val_loss'?" in caught.value.details


def test_outside_a_trial() -> None:
    with pytest.raises(ReportError, match="outside a trial: pass it the trial"):
        ScrimpCallback("val_loss")


def test_a_checkpoint_that_cannot_be_read_is_named(paused_study: scrimp.Study) -> None:
    def spoilt(trial: scrimp.LiveTrial) -> None:
        if trial.resumed:
            path = trial.checkpoint_dir / FILE
            path.write_bytes(path.read_bytes()[:500])
        objective(trial)

    paused_study.optimize(spoilt, n_trials=4, catch=(StorageError,))
    failed = [trial for trial in paused_study.trials if trial.status == "failed"]
    assert failed and all("of step 1 at" in trial.message for trial in failed)
