"""Whole trainings: granted where early losses are noise, and nowhere else."""

from collections.abc import Callable

import numpy as np
import pytest

import scrimp
from scrimp.encoding.encoding import encoding_of
from scrimp.explain.replay import replay
from scrimp.freeze_thaw.curve_process import CurveFactor, CurveParameters
from scrimp.freeze_thaw.curve_rows import CurveTable, RowList
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.study_curves import StudyCurves
from scrimp.study_log.decision_record import DecisionRecord, Modelled, WholeTraining
from scrimp.study_log.events import BudgetGranted, Decided, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.suggester import ForecastPoints

FULL = 9
SQUARE = scrimp.Space(x=scrimp.Float(0.0, 1.0), y=scrimp.Float(0.0, 1.0))
Curve = Callable[[float, float, int, np.random.Generator], float]


def meaningless(x: float, y: float, epoch: int, rng: np.random.Generator) -> float:
    """Only the end says anything: noise falls to nothing with the last epoch."""
    noise = 3.0 * (1.0 - np.log(epoch) / np.log(FULL))
    return (x - 0.3) ** 2 + (y - 0.7) ** 2 + noise * abs(rng.standard_normal())


def telling(x: float, y: float, epoch: int, rng: np.random.Generator) -> float:
    """Every epoch ranks as the last one does."""
    del rng
    return (x - 0.3) ** 2 + (y - 0.7) ** 2 + 1.0 / epoch


def played(curve: Curve, space: scrimp.Space = SQUARE, runs: float = 14) -> scrimp.Study:
    def objective(trial: scrimp.LiveTrial) -> None:
        x, y = float(trial.params["x"]), float(trial.params["y"])
        rng = np.random.default_rng(int(1e6 * (x + 2 * y)))
        losses = [curve(x, y, epoch, rng) for epoch in range(1, FULL + 1)]
        for epoch in trial.steps():
            trial.report(loss=losses[int(epoch) - 1])

    study = scrimp.create_study(
        "whole",
        space,
        metric="loss",
        budget=scrimp.Budget("epoch", 1, FULL),
        method="freeze-thaw",
        storage="memory://",
        seed=0,
    )
    study.optimize(objective, total_budget=runs * FULL, progress=False)
    return study


def grants(study: scrimp.Study) -> list[tuple[Decided, BudgetGranted, bool]]:
    """The decisions for whole trainings, their grants, and whether the trial was new."""
    found, events = [], study.history.events
    for place, event in enumerate(events):
        if isinstance(event, Decided) and isinstance(event.record.grant, WholeTraining):
            after = events[place + 1 : place + 3]
            new = isinstance(after[0], TrialAdded)
            granted = next(one for one in after if isinstance(one, BudgetGranted))
            found.append((event, granted, new))
    return found


@pytest.fixture(scope="module")
def noisy() -> scrimp.Study:
    return played(meaningless)


def test_runs_are_trained_to_their_ends_where_first_slices_foretell_little(
    noisy: scrimp.Study,
) -> None:
    found = grants(noisy)
    assert len(found) >= 6 and all(granted.budget == FULL for _, granted, _ in found)
    # a few of the first design, until there are as many ends as Bayesian optimization begins with
    news = [new for *_, new in found]
    assert not news[0] and news[-1] and sum(not new for new in news) <= 3
    for decided, _, new in found:
        grant = decided.record.grant
        assert isinstance(grant, WholeTraining) and grant.foretold < NUMBERS.least_foretold
        assert isinstance(decided.record.reason, Modelled) == new
    assert sum(trial.budget == FULL for trial in noisy.trials) >= 9


def test_the_waiting_trial_that_is_expected_to_end_best_is_trained(noisy: scrimp.Study) -> None:
    decided, granted, _ = grants(noisy)[0]
    # With the record of the decision, which has its fit.
    then = History.of(noisy.history.events[: decided.seen + 1])
    waiting = then.with_status("paused")
    points = ForecastPoints([trial.config for trial in waiting], np.full(len(waiting), float(FULL)))
    (column,) = noisy.policy.forecast(then, points, np.random.default_rng(0))
    ends = dict(zip((trial.id for trial in waiting), column.mean.tolist(), strict=True))
    assert len(ends) >= 3 and min(ends, key=lambda number: ends[number]) == granted.trial


def test_runs_that_are_trained_now_count_as_ends() -> None:
    """Workers that ask at once do not all train trials of the first design."""
    study = played(meaningless, runs=3)
    taken = study.ask(count=8)
    whole = [trial for trial in taken if trial.granted == FULL]
    ended = sum(trial.budget == FULL for trial in study.trials)
    assert ended + sum(trial.budget > 0 for trial in whole) <= 3


def test_slices_are_granted_where_first_slices_foretell_ends() -> None:
    assert grants(played(telling)) == []


def test_a_short_study_has_no_whole_trainings() -> None:
    """Bayesian optimization begins with three ends here, and finds little among fewer than six."""
    study = played(meaningless, runs=6)
    assert study.history.derive(CurveTable()).is_scattered and grants(study) == []


def test_a_list_has_no_whole_trainings() -> None:
    rng = np.random.default_rng(0)
    rows = [dict(zip("xy", pair, strict=True)) for pair in rng.random((60, 2)).tolist()]
    assert grants(played(meaningless, scrimp.Pool(SQUARE, rows))) == []


def test_whole_trainings_are_decided_again_from_the_log(noisy: scrimp.Study) -> None:
    steps = list(replay(noisy.history.events))
    assert len(steps) == noisy.history.decisions and all(step.same for step in steps)


def test_whole_trainings_are_explained(noisy: scrimp.Study) -> None:
    continued, begun = (
        next(granted.trial for _, granted, new in grants(noisy) if new == wanted)
        for wanted in (False, True)
    )
    share = r"values of the first levels explain \d+% of the differences between the ends"
    for trial in (continued, begun):
        text = str(noisy.explain(trial).text)
        assert "the values of the first levels explain" in text and share
    assert "it was expected to end best" in noisy.explain(continued).text
    assert "the whole training: the values" in noisy.explain(begun).text


def test_rows_keep_no_lucky_early_loss_where_reports_scatter(noisy: scrimp.Study) -> None:
    """The model learns from the loss of each level, not from the lowest so far."""
    history = noisy.history
    rows = history.derive(CurveTable())
    curves = StudyCurves.of(history, rows, encoding_of(history.problem.space))
    assert rows.is_scattered and curves.standing.tolist() == rows.newest.tolist()
    assert rows.newest != rows.standing
    for trial, step, newest in zip(rows.trial, rows.step, rows.newest, strict=True):
        (point,) = (one for one in history.trials[trial].curve if one.step == step)
        assert newest == point.loss


def test_smooth_curves_do_not_scatter() -> None:
    """Neither those that fall, nor those that rise again: rows have the lowest loss so far."""

    def rising(x: float, y: float, epoch: int, rng: np.random.Generator) -> float:
        return telling(x, y, epoch, rng) + 0.3 * x * epoch

    for curve in (telling, rising):
        history = played(curve).history
        rows = history.derive(CurveTable())
        curves = StudyCurves.of(history, rows, encoding_of(history.problem.space))
        assert rows.scatter == 0.0 and not rows.is_scattered
        assert curves.standing.tolist() == rows.standing.tolist()


SPREAD = 1.0


def rows_with(noise: float) -> RowList:
    """Rows of 200 configurations with one report, and 100 with fifty noisy ones."""
    rng, problem = np.random.default_rng(0), Problem(SQUARE, budget=Budget("e", 1, 50))
    rows = CurveTable().begin(problem)
    for trial in range(300):
        rows.scouts.add(trial)
        level = 20.0 + SPREAD * rng.standard_normal()
        losses = [level] if trial < 200 else (20.0 + noise * rng.standard_normal(50)).tolist()
        points = [Observation(float(i + 1), {}, (y,), (y,)) for i, y in enumerate(losses)]
        for count in range(1, len(points) + 1):
            rows.add_report(Trial(id=trial, config={}, curve=tuple(points[:count])))
    return rows


@pytest.mark.parametrize("noise", [0.1, 0.4])
def test_the_scatter_is_the_noise_of_a_report_by_the_spread_of_configurations(noise: float) -> None:
    rows = rows_with(noise)
    drawn = list(rows.lowest.values())
    expected = noise / ((np.median(drawn) - min(drawn)) / 2.0)
    assert rows.scatter == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize(("noise", "before", "after"), [(0.1, False, False), (0.2, False, True)])
def test_less_scatter_is_enough_once_a_whole_training_was_granted(
    noise: float, before: bool, after: bool
) -> None:
    """Whole trainings spread configurations further apart, which does not make reports less noisy."""
    rows = rows_with(noise)
    assert rows.is_scattered == before
    record = DecisionRecord(grant=WholeTraining(0.1))
    CurveTable().step(rows, Decided(decision=0, seen=0, record=record), None, None)
    assert rows.is_scattered == after


def test_a_run_that_explodes_is_not_taken_for_noise() -> None:
    def exploding(x: float, y: float, epoch: int, rng: np.random.Generator) -> float:
        peak = 1e12 if x > 0.9 and epoch == 2 else 0.0
        return telling(x, y, epoch, rng) + peak

    assert not played(exploding).history.derive(CurveTable()).is_scattered


@pytest.mark.parametrize("growth", [0.0, 0.8])
def test_the_share_foretold_is_a_squared_correlation(growth: float) -> None:
    """That of an observation early in a run with its curve at the end, under the prior."""
    theta = np.log([0.4, 0.5, 0.3, 0.2, 0.8, 0.6, 0.1])
    theta = np.concatenate([theta, [0.3, -0.5, growth]])
    factor = CurveFactor(theta, np.zeros(1, dtype=np.intp))
    x, run = np.zeros((1, 1)), np.zeros(1, dtype=np.intp)
    factor.append(x, run, np.array([0.2]))
    columns = factor.columns(factor.scaled(x), run, np.ones(1))
    _, deviation = factor.marginals(columns, np.ones(1), np.zeros(1))
    parameters = CurveParameters.of(theta)
    left = float(deviation[0] ** 2 / parameters.variances(np.ones(1))[0])
    assert parameters.foretold(0.2, 1.0) == pytest.approx(1.0 - left)
