"""Freeze-thaw on several metrics, decision by decision."""

import math

import numpy as np
import pytest

import scrimp
from scrimp.errors import NumericalError
from scrimp.freeze_thaw import freeze_thaw
from scrimp.history.events import Noted
from scrimp.history.history import History
from scrimp.history.notes import AheadOfHalf, FirstDesign, Growth, Modelled, Notes, Race, Scouted
from scrimp.tuning.study import Study
from tests.freeze_thaw.front_studies import SPACE, front_study, measured, play


def notes_of(study: Study) -> list[Notes]:
    return [event.notes for event in study._ledger.history.events if isinstance(event, Noted)]


def slices(study: Study) -> list[tuple[object, ...]]:
    """What was tried, in which order, and how far."""
    return [(*trial.params.items(), trial.granted) for trial in study.trials]


LIST = scrimp.Pool(SPACE, SPACE.sample(60, np.random.default_rng(3)))


@pytest.mark.parametrize("space", [SPACE, LIST])
def test_the_front_grows_beyond_that_of_halving(space: scrimp.Space) -> None:
    reference = {"error": 1.5, "weights": 70_000.0}

    def volume(method: str) -> float:
        study = play(front_study(method, space=space, reference=reference), 30, workers=2)
        return study.hypervolume()

    assert volume("freeze-thaw") > volume("asha")


def test_reasons() -> None:
    study = play(front_study(), 16)
    reasons = [notes.reason for notes in notes_of(study)]
    assert isinstance(reasons[0], FirstDesign)
    modelled = [reason for reason in reasons if isinstance(reason, Modelled)]
    assert {type(reason.question) for reason in modelled} <= {Race, Growth}
    last = modelled[-1]
    assert last.each is not None
    assert set(last.each) == {"error", "weights"}
    assert last.rivals
    assert all(own.low <= own.loss <= own.high for own in last.each.values())
    text = str(study.explain(len(study.trials) - 1))
    assert "front" in text


def test_decisions_are_functions_of_the_history() -> None:
    study = front_study()
    play(study, 10)
    for _ in range(8):
        again = History.of(study._ledger.history.events)  # nothing is kept from earlier decisions
        fresh = study._deciding().decide(again, again.rng("decide"))
        play(study, 1)
        assert fresh.notes.reason == notes_of(study)[-1].reason


def test_directions_are_mirror_images() -> None:
    ways = {"score": "maximize", "weights": "minimize"}
    mirrored = play(front_study(metrics=ways), 14, sign=-1.0)
    assert slices(mirrored) == slices(play(front_study(), 14))


def test_constraints_and_failures() -> None:
    study = front_study(constraints={"memory": scrimp.AtMost(100.0)}, seed=2)
    for number in range(24):
        trial = study.ask()
        if trial.params["lr"] > 0.05:
            study.tell(trial, state="failed")
            continue
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            found = measured(trial.params, step)
            study.report(trial, step=step, memory=float(trial.params["width"]), **found)
        assert number < 16 or study.front
    late = study.trials[len(study.trials) // 2 :]
    assert all(trial.params["width"] <= 100 for trial, _ in study.front)
    assert np.mean([trial.params["width"] <= 100 for trial in late]) > 0.6
    assert np.mean([trial.status == "failed" for trial in late]) < 0.4


def test_a_short_list_is_tried_to_its_end() -> None:
    pool = scrimp.Pool(SPACE, SPACE.sample(5, np.random.default_rng(0)))
    study = play(front_study(space=pool), 100)
    assert [trial.status for trial in study.trials] == ["completed"] * 5


def test_a_metric_that_training_makes_worse() -> None:
    ways = {"error": "minimize", "seconds": "minimize"}
    study = front_study(metrics=ways)
    for _ in range(18):
        trial = study.ask()
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            found = measured(trial.params, step)
            seconds = step * math.sqrt(found.pop("weights"))
            study.report(trial, step=step, seconds=seconds, **found)
    record = study._ledger.history.notes.curves
    assert record is not None
    assert [fit.kind for fit in record.each] == ["falling", "rising"]
    # short trainings belong to the front too
    assert len({point.step for _, point in study.front}) > 1


def test_a_model_that_fails_leaves_halving_by_fronts(monkeypatch: pytest.MonkeyPatch) -> None:
    study = play(front_study(), 12)

    def fail(*_: object, **__: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr(freeze_thaw, "believe_front", fail)
    play(study, 6)
    assert all(isinstance(notes.reason, AheadOfHalf | Scouted) for notes in notes_of(study)[-6:])
    assert all("halving" in notes.degraded for notes in notes_of(study)[-6:])


def test_three_metrics_and_forecasts() -> None:
    ways = {"weights": "minimize", "error": "minimize", "depth": "maximize"}
    study = front_study(metrics=ways)
    for _ in range(20):
        trial = study.ask()
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            study.report(trial, step=step, depth=3.0, **measured(trial.params, step))
    assert isinstance(notes_of(study)[-1].reason, Modelled)
    policy, history = study._deciding(), study._ledger.history
    assert policy.forecast(history, [0], [1.0, 9.0], np.random.default_rng(0))[0].mean
