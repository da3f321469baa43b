"""Several metrics: decisions one by one, and the region that a front leaves open, against integrals."""

import math

import numpy as np
import pytest
from scipy.stats import norm

import scrimp
from scrimp.errors import NumericalError
from scrimp.freeze_thaw import freeze_thaw
from scrimp.freeze_thaw.front_growth import CurrentFront, log_growth
from scrimp.freeze_thaw.study_model import StudyModel
from scrimp.study.study import Study
from scrimp.study_log.decision_record import (
    AheadOfHalf,
    DecisionRecord,
    FirstDesign,
    Growth,
    Modelled,
    Race,
    Scouted,
)
from scrimp.study_log.events import BudgetGranted, Decided
from scrimp.study_log.history import History
from tests.freeze_thaw.front_studies import SPACE, front_study, measured, play, played
from tests.freeze_thaw.modelled import modelled


def notes_of(study: Study) -> list[DecisionRecord]:
    return [event.record for event in study._ledger.history.events if isinstance(event, Decided)]


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
    reasons = [record.reason for record in notes_of(study)]
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
        assert fresh.record.reason == notes_of(study)[-1].reason


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
    record = study._ledger.history.recorded.curves
    assert record is not None
    assert [fit.kind for fit in record.fits] == ["falling", "rising"]
    # short trainings belong to the front too
    assert len({point.step for _, point in study.front}) > 1


def test_a_model_that_fails_leaves_halving_by_fronts(monkeypatch: pytest.MonkeyPatch) -> None:
    study = play(front_study(), 12)

    def fail(*_: object, **__: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr(freeze_thaw, "model_study", fail)
    play(study, 6)
    assert all(isinstance(record.reason, AheadOfHalf | Scouted) for record in notes_of(study)[-6:])
    assert all("halving" in record.degraded for record in notes_of(study)[-6:])


def test_three_metrics_and_forecasts() -> None:
    ways = {"weights": "minimize", "error": "minimize", "depth": "maximize"}
    study = front_study(metrics=ways)
    for _ in range(20):
        trial = study.ask()
        for step in range(int(trial.budget) + 1, int(trial.granted) + 1):
            study.report(trial, step=step, depth=3.0, **measured(trial.params, step))
    assert isinstance(notes_of(study)[-1].reason, Modelled)
    found = study.predict([study.trials[0].params] * 2, at=[1.0, 9.0])
    assert found.names == tuple(ways) and found.mean.shape == (2, 3)
    np.testing.assert_allclose(found.mean[:, 2], 3.0, atol=1e-4)
    assert (found.std[:, 2] < 1e-4).all() and (found.std[:, :2] > 0.0).all()


def grounded(history: History) -> tuple[StudyModel, CurrentFront]:
    found = modelled(history)
    return found.model, CurrentFront.of(history, found.model, found.new)


def targets(model: StudyModel, losses: np.ndarray) -> np.ndarray:
    """Losses (k, m) as targets (k, m)."""
    pairs = zip(model.each, losses.T, strict=True)
    return np.column_stack([own.target.forward_unbounded(column) for own, column in pairs])


def growth(model: StudyModel, front: CurrentFront, mean: np.ndarray, std: np.ndarray) -> float:
    """EHVI in losses by a fine grid over both targets: what each outcome adds, strip by strip
    between the points of the front, clipped at the goals."""
    quantiles = np.linspace(-12.0, 12.0, 20_001)
    weights = norm.pdf(quantiles) * (quantiles[1] - quantiles[0])
    first, second = (
        np.maximum(own.target.backward_unbounded(m + s * quantiles), goal)
        for own, m, s, goal in zip(model.each, mean, std, front.best, strict=True)
    )
    corners = np.maximum(front.losses, front.best)
    corners = corners[(corners < front.reference).all(axis=1)]
    corners = corners[np.lexsort(corners.T[::-1])]
    starts = np.concatenate([[-np.inf], corners[:, 0]])
    ends = np.append(corners[:, 0], front.reference[0])
    heights = np.minimum.accumulate(np.concatenate([front.reference[1:], corners[:, 1]]))
    wide = np.maximum(ends - np.maximum(first[:, None], starts), 0.0)  # (q, strips)
    high = np.maximum(heights - second[:, None], 0.0)
    return float((weights @ wide) @ (weights @ high))


@pytest.mark.parametrize("goals", [{}, {"error": 0.3}])
def test_expected_growth_equals_the_integral_over_outcomes(goals: dict[str, float]) -> None:
    reference = {"error": 1.5, "weights": 70_000.0}
    model, front = grounded(play(front_study(goals=goals, reference=reference), 12)._ledger.history)
    middle = targets(model, front.losses.mean(axis=0)[None])[0]
    scale = np.ptp(targets(model, front.losses), axis=0)
    for offset in (-0.3, 0.1, 0.6):
        mean, std = middle + offset * scale, np.array([0.3, 0.2]) * scale
        found = log_growth(model, mean[:, None], std[:, None], front.open_region())
        assert np.exp(found[0]) == pytest.approx(growth(model, front, mean, std), rel=1e-5)


def test_running_slices_belong_to_the_front() -> None:
    history = played(14)
    model, free = grounded(history)
    paused = [trial.id for trial in history.with_status("paused")]
    known = np.array([trial for trial in model.trials if trial in paused], dtype=np.intp)
    ends = model.of_trials(known, np.full(len(known), 9.0))
    trial = int(known[np.argmax(log_growth(model, *ends, free.open_region()))])
    attempt = history.trials[trial].attempt + 1
    resumed = history.with_events([BudgetGranted(trial=trial, budget=9.0, attempt=attempt)])
    found = modelled(history)
    busy = CurrentFront.of(resumed, model, found.new)
    assert len(busy.losses) == len(free.losses) + 1
    means, _ = model.of_trials(np.array([trial]), np.array([9.0]))
    assert busy.running == pytest.approx(model.losses(means))
    sure = np.full((2, 1), 1e-3)
    left = [log_growth(model, means, sure, own.open_region())[0] for own in (free, busy)]
    assert left[1] < left[0] - 1.0  # an outcome that is coming is not looked for again


def test_references() -> None:
    reference = {"error": 1.0, "weights": 1e5}
    _, front = grounded(play(front_study(reference=reference), 12)._ledger.history)
    assert front.reference.tolist() == [1.0, 1e5]
    _, front = grounded(played(14))
    assert (front.reference > front.losses.max(axis=0)).all()


def test_goals_that_are_reached_no_longer_limit() -> None:
    history = play(front_study(goals={"error": 5.0, "weights": 1e9}), 12)._ledger.history
    _, front = grounded(history)
    assert np.isneginf(front.best).all()
    assert np.isfinite(front.log_volume)


def test_a_corner_does_not_cut_off_the_rest() -> None:
    """Where the front so far is a few cheap trials, wide networks count, since they promise more."""
    history = played(14)
    model, new, _, _ = modelled(history)
    front = CurrentFront.of(history, model, new)
    drawn = np.arange(len(new.x))
    means, deviations = new.predicted(model, drawn, np.full(len(drawn), 9.0))
    hoped = model.losses(means - 2 * deviations)
    promising = np.argsort(hoped[:, 0], kind="stable")[:3]
    assert (model.losses(means)[promising] < front.reference).all()


def test_early_levels_have_a_reference_of_their_own() -> None:
    _, front = grounded(played(14))
    early = front.losses + np.array([50.0, 0.0])
    assert (front.at_level(early).reference[0] > early[:, 0]).any()
    assert front.at_level(front.losses).reference.tolist() >= front.reference.tolist()


@pytest.mark.parametrize("signs", [(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0)])
def test_the_largest_numbers_do_not_end_a_study(signs: tuple[float, float]) -> None:
    study = scrimp.create_study(
        "huge",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"a": "minimize", "b": "minimize"},
        budget=scrimp.Budget("epoch", 1, 9),
        method="freeze-thaw",
        storage="memory://",
        seed=0,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        for _ in trial.steps():
            x = float(trial.params["x"])
            trial.report(a=signs[0] * 1.7e308 * (1 - x / 2), b=signs[1] * 1.7e308 * x)

    study.optimize(objective, total_budget=40)
    assert study.history.spent >= 31 and not study.history.degraded
