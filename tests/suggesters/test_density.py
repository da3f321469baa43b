"""TPE and BOHB: levels, splits, pending trials, conditions, and whether they find anything."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from scrimp.bench.formulas import FORMULAS
from scrimp.bench.tables import described_space
from scrimp.encoding.encoding import Encoding
from scrimp.errors import MethodError
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import DecisionRecord, FromDensity
from scrimp.study_log.events import Ended, Reported, StudyChanged
from scrimp.study_log.history import History
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.density import (
    DensitySuggester,
    Ranking,
    encode_existing,
    encoded_rows,
    rank_trials,
)
from scrimp.suggesters.suggester import Request, Suggester
from scrimp.suggesters.untried_configs import KNOWN, QuasiRandomSuggester, RandomSuggester
from scrimp.testing.policies import SuggesterBattery, ask, begin, drive, pend, tell

LINE = Space(x=Float(0, 1))
NONE = np.empty((0, 1))


class TestTpe(SuggesterBattery):
    def suggester(self) -> Suggester:
        return DensitySuggester()


class TestBohb(SuggesterBattery):
    def suggester(self) -> Suggester:
        return DensitySuggester(random_fraction=1 / 3)


def with_curve(
    history: History, losses: list[float | None], granted: float | None = None
) -> History:
    """One more trial that reported these losses at steps 1, 2, ..."""
    number = len(history.trials)
    history = pend(history, {"x": number / 100}, len(losses) if granted is None else granted)
    return history.with_events(
        Reported(trial=number, step=step, metrics={"value": loss})
        for step, loss in enumerate(losses, 1)
    )


def test_the_largest_level_with_enough_trials_is_ranked() -> None:
    """Four trials reached 1, three reached 3, two reached 9; the trial that stands at 4 counts with
    its loss at 3."""
    history = begin(Problem(LINE, budget=Budget("epoch", 1, 9)))
    history = with_curve(history, [0.5])
    history = with_curve(history, [0.1, 0.2, 0.7])
    history = with_curve(history, [0.9, 0.9, 0.6, *[0.1] * 6])
    history = with_curve(history, [0.2, 0.3, 0.4, 0.8], granted=9)
    assert rank_trials(history, 5) is None
    assert rank_trials(history, 4) == Ranking(1, (1, 3, 0, 2), ())
    assert rank_trials(history, 3) == Ranking(3, (3, 2, 1), ())
    assert rank_trials(history, 1) == Ranking(9, (2,), (3,))


def test_a_trial_that_ended_by_itself_has_reached_every_level() -> None:
    history = with_curve(begin(Problem(LINE, budget=Budget("epoch", 1, 9))), [0.5, 0.4], granted=3)
    history = history.with_events([Ended(trial=0, status="completed")])
    history = with_curve(history, [0.9, 0.9, 0.3])
    assert rank_trials(history, 2) == Ranking(3, (1, 0), ())


def test_failed_and_running_trials_are_avoided() -> None:
    """A failed one although it had the best loss, a running one, and one whose loss was no number
    is ranked last."""
    history = begin(Problem(LINE, budget=Budget("epoch", 1, 9)))
    history = with_curve(history, [0.0], granted=3).with_events([Ended(trial=0, status="failed")])
    history = with_curve(with_curve(with_curve(history, [None]), [0.5]), [0.4])
    history = pend(history, {"x": 0.9}, 1)
    assert rank_trials(history, 3) == Ranking(1, (3, 2, 1), (0, 4))


def test_infeasible_trials_come_after_feasible_ones_by_their_violation() -> None:
    history = begin(Problem(LINE, constraints={"memory": AtMost(1.0)}))
    for loss, memory in ((1.0, 5.0), (2.0, 1.5), (3.0, 0.5), (4.0, 1.0), (0.0, math.nan)):
        history = tell(history, {"x": loss / 10}, loss, memory=memory)
    ranking = rank_trials(history, 3)
    assert ranking is not None
    assert ranking.trials == (2, 3, 4, 1, 0)


def test_losses_of_a_maximised_metric_are_turned() -> None:
    history = begin(Problem(LINE, metrics={"value": "maximize"}))
    for value in (1.0, 3.0, 2.0):
        history = tell(history, {"x": value / 10}, value)
    assert rank_trials(history, 2) == Ranking(1, (1, 2, 0), ())


def test_the_start_is_the_sobol_sequence_until_d_plus_2_trials_have_reported() -> None:
    space = Space(x=Float(0, 1), y=Float(0, 1))
    history = begin(Problem(space))
    for _ in range(6):
        expected = ask(QuasiRandomSuggester(), history).configs
        assert ask(DensitySuggester(), history).configs == expected
        history = pend(history, expected[0])  # pending ones do not count
    for number in range(4):
        history = history.with_events([Reported(trial=number, step=1, metrics={"value": number})])
    suggestion = ask(DensitySuggester(), history)
    assert suggestion.configs != ask(QuasiRandomSuggester(), history).configs
    assert suggestion.record == DecisionRecord(reason=FromDensity(1.0, 4, 2))


def test_the_guess_of_the_user_is_tried_first() -> None:
    history = begin(Problem(Space(x=Float(0, 1, prior=(0.123, "high")))))
    history = drive(DensitySuggester(), history, 3, lambda config: 0.0)
    assert [trial.config["x"] == 0.123 for trial in history.trials] == [True, False, False]


def bowl(space: Space = LINE) -> History:
    """20 trials with the best at x = 0.3."""
    history = begin(Problem(space))
    for x in np.linspace(0, 1, 20):
        history = tell(history, {"x": float(x)}, (x - 0.3) ** 2)
    return history


def places(suggester: Suggester, history: History, count: int = 60) -> Any:
    """What it would suggest with many different generators (count,)."""
    draws = [
        suggester.suggest(history, Request(1.0), 1, np.random.default_rng(seed))
        for seed in range(count)
    ]
    return np.array([draw.configs[0]["x"] for draw in draws])


def test_suggestions_lie_where_the_good_trials_do() -> None:
    """Within 0.15 of the optimum 90 % of the time; uniform draws would be there 30 % of the
    time."""
    assert np.mean(np.abs(places(DensitySuggester(), bowl()) - 0.3) < 0.15) > 0.9


def test_a_random_fraction_goes_anywhere() -> None:
    """Half of 200 suggestions uniform: 35 % +- 10 % lie farther than 0.15 from the optimum, four
    standard deviations wide."""
    away = np.abs(places(DensitySuggester(random_fraction=0.5), bowl(), 200) - 0.3) > 0.15
    assert 0.25 < np.mean(away) < 0.5


def test_workers_keep_away_from_pending_trials() -> None:
    """With 12 trials under evaluation left of the optimum, suggestions move to its right."""
    history = bowl()
    before = places(DensitySuggester(), history)
    for x in np.linspace(0.2, 0.3, 12):
        history = pend(history, {"x": float(x) + 1e-3})
    after = places(DensitySuggester(), history)
    assert np.mean(before < 0.305) > 0.4
    assert np.mean(after < 0.305) < 0.5 * np.mean(before < 0.305)


PUBLISHED = {
    "share": 0.15,
    "candidates": 64,
    "spread": "observed",
    "least_bandwidth": 1e-3,
    "widening": 3.0,
    "weighting": "equal",
    "uniform": 0.0,
    "least_good": None,
    "avoid_running": False,
}
"""BOHB as in the paper."""


class TestPublishedTpe(SuggesterBattery):
    def suggester(self) -> Suggester:
        return DensitySuggester(multivariate=False, spread="neighbours", design="random")


class TestPublishedBohb(SuggesterBattery):
    def suggester(self) -> Suggester:
        return DensitySuggester(random_fraction=1 / 3, **PUBLISHED)  # type: ignore[arg-type]


def test_running_trials_may_be_ignored_as_published() -> None:
    history = bowl()
    ignoring = DensitySuggester(avoid_running=False)
    before = places(ignoring, history, 20)
    for x in np.linspace(0.2, 0.3, 12):
        history = pend(history, {"x": float(x) + 1e-3})
    assert places(ignoring, history, 20) == pytest.approx(before)


def test_settings_of_the_papers_change_the_densities() -> None:
    """The kernels follow the spread of what was seen; weights are equal; d + 1 = 2 are good where
    15 % of five would be one."""
    history = begin(Problem(LINE))
    for x in (0.30, 0.32, 0.5, 0.7, 0.9):
        history = tell(history, {"x": x}, (x - 0.3) ** 2)
    known, ranking = history.derive(KNOWN), rank_trials(history, 3)
    assert ranking is not None
    rng = np.random.default_rng(0)
    ratio = DensitySuggester(**PUBLISHED)._ratio(known, encoded_rows(history), ranking, NONE, rng)  # type: ignore[arg-type]
    assert ratio.good.weights.tolist() == [0.5, 0.5] and len(ratio.bad.weights) == 3
    assert ratio.good.widths == pytest.approx([1.06 * 0.01 * 2 ** (-1 / 5)])
    usual = DensitySuggester(share=0.15)._ratio(known, encoded_rows(history), ranking, NONE, rng)
    assert len(usual.good.weights) == 1 and usual.good.weights.sum() == pytest.approx(0.5)


def test_fewer_trials_in_a_density_where_that_is_asked_for() -> None:
    history = begin(Problem(LINE))
    for x in np.linspace(0.01, 0.99, 40):
        history = tell(history, {"x": float(x)}, (x - 0.3) ** 2)
    known, ranking = history.derive(KNOWN), rank_trials(history, 3)
    assert ranking is not None
    rows, sizes = encoded_rows(history), []
    for most in (10, 1000, None):
        suggester = DensitySuggester(max_data=most)
        ratio = suggester._ratio(known, rows, ranking, NONE, np.random.default_rng(0))
        sizes.append((len(ratio.good.weights), len(ratio.bad.weights)))
    assert sizes == [(2, 10), (8, 32), (8, 32)]


def test_rows_are_kept_from_decision_to_decision() -> None:
    """They are what encoding all trials again gives, with NaN for what does not exist, and follow a
    change of the space."""
    space = Space(a=Categorical(["u", "v"]), x=Float(0, 1, when={"a": "v"}))
    history = begin(Problem(space))
    for number, config in enumerate([{"a": "u"}, {"a": "v", "x": 0.5}, {"a": "v", "x": 0.2}]):
        history = tell(history, config, float(number))
        configs = [trial.config for trial in history.trials]
        expected = encode_existing(Encoding(space), configs)
        np.testing.assert_array_equal(encoded_rows(history), expected)
    wider = Problem(Space(a=Categorical(["u", "v"]), x=Float(0, 2, when={"a": "v"})))
    changed = history.with_events([StudyChanged(problem=wider.to_json())])
    np.testing.assert_array_equal(encoded_rows(changed)[:, 1], [np.nan, 0.25, 0.1])


def test_the_ranking_follows_each_report() -> None:
    """Trials that report in any order are ranked as they are when all are ranked at once."""
    history, rng = begin(Problem(LINE, budget=Budget("epoch", 1, 9))), np.random.default_rng(0)
    for _ in range(12):
        history = with_curve(history, rng.random(rng.integers(1, 9)).tolist(), granted=9)
        if rng.random() < 0.3:
            last = len(history.trials) - 1
            history = history.with_events([Ended(trial=last, status="failed")])
        ranked = [rank_trials(history, needed) for needed in (2, 4, 6)]
        again = History.of(history.events)
        assert ranked == [rank_trials(again, needed) for needed in (2, 4, 6)]


def test_a_batch_spreads() -> None:
    """Eight at once cover a wider range than eight for the same history one by one, in the mean
    over 20 generators."""
    history, ranges = bowl(), []
    for seed in range(20):
        batch = (
            DensitySuggester()
            .suggest(history, Request(1.0), 8, np.random.default_rng(seed))
            .configs
        )
        ranges.append(np.ptp([config["x"] for config in batch]))
    singles = np.ptp(places(DensitySuggester(), history, 160).reshape(20, 8), axis=1)
    assert np.mean(ranges) > 1.3 * np.mean(singles)


def test_parameters_that_do_not_exist_are_nan() -> None:
    space = Space(a=Categorical(["u", "v"]), x=Float(0, 1, when={"a": "v"}), y=Float(0, 2))
    rows = encode_existing(Encoding(space), [{"a": "u", "y": 1.0}, {"a": "v", "x": 0.25, "y": 2.0}])
    np.testing.assert_array_equal(rows, [[0.0, np.nan, 0.5], [1.0, 0.25, 1.0]])


def test_a_pool_gives_the_nearest_row_that_is_left() -> None:
    """The pool has rows near the optimum and far from it; the near ones are taken first."""
    rows = [{"x": x} for x in (*np.linspace(0, 1, 20).tolist(), 0.29, 0.31, 0.32, 0.98, 0.99)]
    history = bowl(Pool(LINE, rows))
    first = drive(DensitySuggester(), history, 3, lambda config: (config["x"] - 0.3) ** 2)
    assert {trial.config["x"] for trial in first.trials[20:]} == {0.29, 0.31, 0.32}


def test_a_branch_is_learned_with_its_own_parameters() -> None:
    """'sgd' with momentum near 0.9 is best: suggestions find the branch, and the value within
    it."""
    space = Space(
        optimizer=Categorical(["adam", "sgd"]),
        momentum=Float(0, 1, when={"optimizer": "sgd"}),
        lr=Float(0, 1),
    )

    def loss(config: Mapping[str, Any]) -> float:
        return (
            (config["momentum"] - 0.9) ** 2
            if config["optimizer"] == "sgd"
            else 0.3 + 0.1 * config["lr"]
        )

    history = drive(DensitySuggester(), begin(Problem(space)), 40, loss)
    late = [trial.config for trial in history.trials[25:]]
    assert sum(config["optimizer"] == "sgd" for config in late) >= 11
    best = history.best
    assert best is not None
    assert abs(best[0].config["momentum"] - 0.9) < 0.05


def test_a_small_discrete_space_is_searched_by_the_model() -> None:
    """The optimum of 400 configurations within 30 trials, in at least 8 of 10 studies (by chance:
    in 0.75 of 10)."""
    space, found = Space(a=Int(0, 19), b=Int(0, 19)), 0
    for seed in range(10):
        history = begin(Problem(space, seed=seed))
        history = drive(
            DensitySuggester(), history, 30, lambda c: (c["a"] - 13) ** 2 + (c["b"] - 6) ** 2
        )
        found += any(trial.loss == 0 for trial in history.trials)
    assert found >= 8


@pytest.mark.parametrize("name", ["branin", "hartmann6", "ackley5"])
def test_better_than_random_search(name: str) -> None:
    """Best of 50 trials, 20 seeds each: a one-sided rank test rejects "no better than random" at
    the 1 % level."""
    formula = FORMULAS[name]
    problem = [Problem(described_space(formula.space), seed=seed) for seed in range(20)]
    best = {
        type(suggester): [
            drive(suggester, begin(item), 50, formula.evaluate).best for item in problem
        ]
        for suggester in (DensitySuggester(), RandomSuggester())
    }
    losses = [[point[1].loss for point in runs if point is not None] for runs in best.values()]
    assert mannwhitneyu(*losses, alternative="less").pvalue < 0.01


@pytest.mark.parametrize(
    "setting",
    [
        {"share": 0.0},
        {"share": 1.0},
        {"candidates": 0},
        {"bandwidth": 0},
        {"random_fraction": 1.5},
        {"initial": 1},
        {"spread": "wide"},
        {"least_bandwidth": 0},
        {"widening": 0},
        {"weighting": "none"},
        {"uniform": -1},
        {"least_good": 0},
        {"max_data": 2},
        {"design": "grid"},
    ],
)
def test_impossible_settings_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(MethodError, match=f"{next(iter(setting))} is .*; it must be"):
        DensitySuggester(**setting)
