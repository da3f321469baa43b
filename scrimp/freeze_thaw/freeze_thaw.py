"""Freeze-thaw: every decision gives the next slice of training to one trial, paused or new.

The idea: train many configurations a little, freeze them, and thaw those whose learning curves
promise most. One decision from top to bottom (`FreezeThaw.decide`); docs/freeze-thaw.md tells the
same in words, and the files are best read in this order:

1.  `curve_rows`: the *rows*, that is the reports that count, at levels that grow by a factor of 1.6.
2.  `budget_left`: the share of the budget that is spent, and what may still be granted.
3.  `FreezeThaw.first_design`: a few configurations come before any model; in a continuous space those
    that lead continue in between.
4.  `study_model`: the *model*, a Gaussian process over the learning curves of each metric
    (`curve_process`), of the rows as arrays (`study_curves`), with losses transformed to targets
    (`curve_target`). Past studies may shape its prior (`past_curves`).
5.  `whole_trainings`: where first slices foretell little, whole trainings; `scouts`: where many
    trials share the best value, some decisions go to a random *scout*.
6.  `new_configs`: new configurations, which compete with the paused trials.
7.  `scoring`: the *question* that all candidates are asked: race, horizon or gain;
8.  and their *scores*. In a continuous space one *nominee* stands for the new configurations. With
    several metrics `front_growth` takes the place of 7 and 8.
9.  `decision_for`: the highest score gets its next slice, and the log gets the reasons.

    create_study(..., budget=Budget("epoch", 1, 81), method="freeze-thaw")

All tuning numbers, each with its origin, stand in `freeze_thaw_numbers`. The race is that of Wistuba,
Kadra, Grabocka, Supervising the Multi-Fidelity Race of Hyperparameter Configurations, 2022; random
horizon and threshold are those of Rakotoarison et al., In-Context Freeze-Thaw Bayesian Optimization
for Hyperparameter Optimization, 2024.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np

from scrimp.acquisition.gain_left import UNKNOWN_GAIN, GainLeft
from scrimp.encoding.encoding import encoding_of
from scrimp.errors import NumericalError, StudyError
from scrimp.freeze_thaw.budget_left import BudgetLeft, UnitCosts
from scrimp.freeze_thaw.curve_rows import SCOUT, CurveTable, PausedTrial, RowList
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.freeze_thaw.front_growth import score_front_growth
from scrimp.freeze_thaw.new_configs import new_configs_of, when_drawn
from scrimp.freeze_thaw.past_curves import Hint, PastLessons, prior_centre
from scrimp.freeze_thaw.scoring import (
    Scores,
    Situation,
    gain_of_curves,
    questions,
    score_candidates,
)
from scrimp.freeze_thaw.scouts import ranked_by_fronts, scouting, send_scout
from scrimp.freeze_thaw.study_curves import StudyCurves
from scrimp.freeze_thaw.study_model import Array, MetricModel, Places, StudyModel, model_study
from scrimp.freeze_thaw.whole_trainings import whole_training
from scrimp.json_values import Config
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.plugins.settings import at_least, between, check_settings, handed_in, setting
from scrimp.plugins.study_rules import WITH_PAST, StudyRule
from scrimp.schedulers.scheduler import Resume, wait_or_finish
from scrimp.space.space import Pool, Space
from scrimp.study_log.decision_record import (
    CurveFit,
    DecisionRecord,
    DrawnAt,
    Expected,
    FirstDesign,
    LeadsItsLevel,
    Modelled,
    Rival,
    Scouted,
)
from scrimp.study_log.history import History
from scrimp.suggesters.suggester import ForecastPoints, PastKnowledge
from scrimp.suggesters.untried_configs import first_configs, guess
from scrimp.surrogates.forecast import ForecastColumn

WITH_ONE_CURVE = StudyRule(
    "with several metrics no curve model sees what past studies expect",
    lambda study, _: study.metrics == 1,
)


@dataclass(frozen=True)
class FreezeThaw(Policy):
    """The policy. ``initial``: configurations before the model decides, None for 4 of a list and 3
    for each parameter of a continuous space while less than a tenth of the budget is spent.
    ``race``: while less than this share of the budget is spent, candidates are compared at their
    next level only. ``hint``: whether the curve model sees what past studies expect of a
    configuration (`scrimp.freeze_thaw.past_curves`).

    ``shapes``: the centre of the curve model's prior, as past studies taught it.
    """

    initial: int | None = setting(None, at_least(1))
    race: float = setting(0.15, between(0, 1), "it is a share of the budget")
    hint: bool = setting(False, only_with=(WITH_PAST, WITH_ONE_CURVE))
    shapes: tuple[float, ...] = handed_in(())
    past: PastKnowledge | None = handed_in(None)

    def __post_init__(self) -> None:
        check_settings(self)

    def informed_by(self, past: PastKnowledge) -> Policy:
        """Return a copy that knows the curves of past studies and what they expect."""
        return replace(self, shapes=prior_centre(past.curves()), past=past)

    def decide(self, history: History, rng: np.random.Generator) -> Decision:
        """Return the next slice: steps 1 to 3, then the model's choice, or halving."""
        rows = history.derive(CurveTable())
        left = BudgetLeft.of(history, rows)
        paused = left.affordable(list(rows.paused.values()))
        if not left.may_add and not paused:
            text = "no further configuration may be added and no slice is left"
            return Decision(wait_or_finish(history, text))
        first = self.first_design(history, rows, left, paused, rng)
        if first is not None and not rows.is_scattered:
            return first
        if not _has_values(rows):
            text = "every configuration was tried, and nothing finite was reported"
            return Decision(wait_or_finish(history, text))
        try:
            encoding = encoding_of(history.problem.space)
            running = [(one.id, one.granted) for one in history.with_status("running", "stale")]
            model = model_study(history, rows, encoding, running, rng, self._lessons(history))
            if rows.is_scattered:
                fit = _new_fit(history, model, when_drawn(history, model))
                chosen = whole_training(history, model, left, paused, rng, fit) or first
                if chosen is not None:
                    return chosen
            return self._by_model(history, model, left, paused, rng)
        except NumericalError as error:
            record = DecisionRecord(
                degraded=f"the curve model failed ({error}); successive halving instead"
            )
            ranked = ranked_by_fronts(history, rows)
            return send_scout(history, ranked, paused, left, rng, record)

    def _by_model(
        self,
        history: History,
        model: StudyModel,
        left: BudgetLeft,
        paused: list[PausedTrial],
        rng: np.random.Generator,
    ) -> Decision:
        """Return the next slice by the model: steps 5 to 9."""
        rows, encoding = history.derive(CurveTable()), encoding_of(history.problem.space)
        drawn_at = when_drawn(history, model)
        one_metric, stuck = len(model.each) == 1, frozenset[int]()
        if one_metric:
            probability, stuck = scouting(rows, model, left)
            if rng.random() < probability:
                paused = [waiting for waiting in paused if waiting.trial not in stuck]
                record = DecisionRecord(
                    reason=Scouted(probability), curves=_new_fit(history, model, drawn_at)
                )
                return send_scout(history, rows, paused, left, rng, record)
        known = [trial for trial in model.trials.tolist() if trial in rows.paused]
        paused = left.affordable([rows.paused[trial] for trial in known if trial not in stuck])
        situation = Situation(history, rows, left, model, paused)
        new = new_configs_of(history, model, encoding, drawn_at)
        places = new.untried(model, drawn_at) if left.may_add else np.zeros(0, dtype=np.intp)
        if not paused and not len(places):
            text = "every configuration of the space was tried to its end"
            return Decision(wait_or_finish(history, text))
        if not one_metric:
            scores = score_front_growth(situation, new, places, self.race, rng)
            return decision_for(scores, situation, drawn_at)
        for question in questions(situation, self.race, rng):
            scores = score_candidates(question, situation, new, places, rng)
            if scores.score.max() >= question.least_score:
                break
        return decision_for(scores, situation, drawn_at)

    # --- first design -----------------------------------------------------------------------------

    def first_design(
        self,
        history: History,
        rows: RowList,
        left: BudgetLeft,
        paused: list[PausedTrial],
        rng: np.random.Generator,
    ) -> Decision | None:
        """Return the next slice of a leader, or the next configuration of the first design; None
        where the design is complete."""
        if not left.may_add:
            return None
        if len(history.trials) >= self._first_count(history, left) and _has_values(rows):
            return None
        leading = None if history.problem.several else leader(rows, paused)
        if leading is not None:
            resumed = Resume(leading.trial, leading.slice_end)
            return Decision(resumed, DecisionRecord(reason=LeadsItsLevel()))
        config = _first_config(history, rows, left, rng)
        if config is None:
            return None
        start = Start(config, left.first_slice_end, {SCOUT: True})
        return Decision(start, DecisionRecord(reason=FirstDesign()))

    def _first_count(self, history: History, left: BudgetLeft) -> int:
        """Return the number of first configurations: with few points in many dimensions the model
        only proposes corners."""
        if self.initial is not None:
            return self.initial
        space, least = history.problem.space, NUMBERS.first_configs_of_list
        if isinstance(space, Pool) or left.spent_share >= NUMBERS.first_design_share:
            return least
        return max(least, NUMBERS.first_configs_per_parameter * len(space))

    # --- past studies and forecasts ---------------------------------------------------------------

    def _lessons(self, history: History) -> PastLessons:
        """Return the lessons of past studies in the space of this one."""
        past = self.past if self.hint else None
        return lessons_of(past, history.problem.space, self.shapes)

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> Sequence[ForecastColumn]:
        """Predict the lowest value of each metric up to each budget; the last one of a metric that
        gets worse during training, and of the only metric in a continuous space. A configuration
        that was tried continues its longest run."""
        rows = history.derive(CurveTable())
        if not _has_values(rows):
            return ()
        problem, encoding = history.problem, encoding_of(history.problem.space)
        model = model_study(history, rows, encoding, None, rng, self._lessons(history))
        losses = len(model.each) == len(problem.names) if problem.several else model.first.feasible
        if not losses or (history.best is None and not problem.several):
            raise StudyError(
                "no trial satisfies all constraints yet, so the model learns violations and cannot"
                f" predict {problem.metric!r}; run more trials"
            )
        return _forecast_columns(history, model, encoding.encode(points.configs), points.budgets)

    def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft:
        """Return the improvement that the rest of the study is expected to bring, by the model."""
        rows = history.derive(CurveTable())
        left = BudgetLeft.of(history, rows)
        if history.best is None or len(history.trials) < self._first_count(history, left):
            return UNKNOWN_GAIN
        model = model_study(
            history, rows, encoding_of(history.problem.space), [], rng, self._lessons(history)
        )
        known = set(model.trials.tolist())
        paused = [waiting for waiting in rows.paused.values() if waiting.trial in known]
        return gain_of_curves(Situation(history, rows, left, model, paused), rng)


@lru_cache(maxsize=8)
def lessons_of(past: PastKnowledge | None, space: Space, shapes: tuple[float, ...]) -> PastLessons:
    """Return the lessons of past studies, computed once: the models of a past do not change."""
    hint = None if past is None else Hint.over(encoding_of(space), past)
    return PastLessons(shapes, hint)


def _has_values(rows: RowList) -> bool:
    """Return True when there is a finite value to learn from."""
    return bool(np.isfinite(rows.standing).any())


def leader(rows: RowList, paused: list[PausedTrial]) -> PausedTrial | None:
    """Return the paused trial with the most training whose loss no other run has reached with as
    little training, while its next slice ends three quarters of the way to a full training at the
    latest; None in a list, and before four runs have a value."""
    if isinstance(rows.problem.space, Pool) or len(rows.lowest) < NUMBERS.first_configs_of_list:
        return None
    best = dict.fromkeys(range(len(rows.levels) + 1), (math.inf, -1))
    for trial, step, loss in zip(rows.trial, rows.step, rows.standing, strict=True):
        level = rows.levels_reached(step)
        best[level] = min((loss, trial), best[level])
    ahead = list(accumulate(best.values(), min))
    lowest, full = rows.levels[0], rows.levels[-1]
    highest = lowest * (full / lowest) ** NUMBERS.leader_exponent * (1.0 + 1e-9)
    leading = [
        own
        for own in paused
        if own.slice_end <= highest and ahead[rows.levels_reached(own.used)][1] == own.trial
    ]
    return max(leading, key=lambda own: own.used, default=None)


def _first_config(
    history: History, rows: RowList, left: BudgetLeft, rng: np.random.Generator
) -> Config | None:
    """Return the next configuration of the first design; where costs count, the cheapest of three,
    unless it is the user's guess. None where the space is used up."""
    encoding, costs = encoding_of(history.problem.space), None
    if left.costs_count:
        costs = UnitCosts.of(rows, StudyCurves.of(history, rows, encoding))
    count = 1 if costs is None else NUMBERS.first_configs_compared_by_cost
    some = first_configs(history, count, count, rng)
    if not some:
        return None
    if costs is None or some[0] == guess(history):
        return some[0]
    return some[int(np.argmin(costs.of_configs(encoding.encode(some))))]


def _forecast_columns(
    history: History, model: StudyModel, x: Array, steps: Array
) -> list[ForecastColumn]:
    """Return the belief about each metric of runs of x (k, d) after steps (k,)."""
    runs = _runs(history, model, x)
    tried, features = runs >= 0, model.curves.featured(x)
    means, deviations = model.of_configs(x, steps)
    if tried.any():
        means[:, tried], deviations[:, tried] = model.of_trials(runs[tried], steps[tried])
    columns = []
    for place, metric in enumerate(model.each):

        def natural(targets: Array, metric: MetricModel = metric, place: int = place) -> Array:
            return history.problem.signs[place] * metric.target.backward_unbounded(targets)

        covariance = partial(metric.covariance, features, runs, steps)
        noise = metric.factor.parameters.noise_variance
        mean, variance = means[place], deviations[place] ** 2
        name = history.problem.names[place]
        columns.append(ForecastColumn(name, mean, variance, natural, covariance, noise))
    return columns


def _runs(history: History, model: StudyModel, x: Array) -> Places:
    """Return the longest run (k,) of each configuration x (k, d), or a negative number of its own for
    one that was never tried; equal configurations have equal numbers."""
    longest: dict[bytes, int] = {}
    for trial in sorted(model.trials.tolist(), key=lambda trial: history.trials[trial].budget):
        longest[model.curves.x[trial].tobytes()] = trial
    new = iter(range(-1, -len(x) - 1, -1))
    for row in x:
        if row.tobytes() not in longest:
            longest[row.tobytes()] = next(new)
    return np.array([longest[row.tobytes()] for row in x], dtype=np.intp)


# --- the decision and its record ------------------------------------------------------------------


def decision_for(scores: Scores, situation: Situation, drawn_at: DrawnAt) -> Decision:
    """Return the next slice of the candidate with the highest score, with predictions of it and of
    its closest competitors."""
    history, model = situation.history, situation.model
    order = np.argsort(-np.round(scores.score, 9), kind="stable")[: NUMBERS.rivals_shown]
    best = int(order[0])
    winner, *others = (_rival(model, scores, int(place)) for place in order)
    reason = Modelled(
        winner.score,
        winner.expected,
        tuple(others),
        question=scores.question,
        each=_expected_of_each(history, model, scores, best),
    )
    record = DecisionRecord(reason=reason, curves=_new_fit(history, model, drawn_at))
    if best < len(scores.paused):
        resumed = scores.paused[best]
        return Decision(Resume(resumed.trial, resumed.slice_end), record)
    return Decision(Start(scores.config(best), situation.left.first_slice_end), record)


def _rival(model: StudyModel, scores: Scores, place: int) -> Rival:
    """Return a candidate with its score and, with one metric, its predicted lowest loss with a band
    of two standard deviations."""
    score, expected = _six_digits(scores.score[place]), None
    if len(model.each) == 1 and model.first.feasible:
        expected = _expected(model.first, scores, place, 0)
        expected = expected if math.isfinite(expected.loss) else None
    if place < len(scores.paused):
        return Rival(score, trial=scores.paused[place].trial, expected=expected)
    return Rival(score, scores.config(place), expected=expected)


def _expected_of_each(
    history: History, model: StudyModel, scores: Scores, place: int
) -> dict[str, Expected] | None:
    """Return the prediction of a candidate in each of several metrics; None with one metric."""
    if len(model.each) == 1:
        return None
    problem, found = history.problem, {}
    for j, (name, sign) in enumerate(zip(problem.names, problem.signs, strict=True)):
        one = _expected(model.each[j], scores, place, j)
        assert one.low is not None and one.high is not None
        ends = sign * one.low, sign * one.high
        found[name] = Expected(sign * one.loss, min(ends), max(ends), one.step)
    return found


def _expected(metric: MetricModel, scores: Scores, place: int, number: int) -> Expected:
    """Return the predicted loss of a candidate and a band of two deviations, in six digits."""
    mean, deviation = scores.means[number, place], scores.deviations[number, place]
    band = metric.target.backward(mean + deviation * np.array([0.0, -2.0, 2.0])).tolist()
    loss, low, high = (_six_digits(number) for number in band)
    return Expected(loss, low, high, _six_digits(scores.steps[place]))


def _six_digits(number: float) -> float:
    return float(f"{number:.6g}")


def _new_fit(history: History, model: StudyModel, drawn_at: DrawnAt) -> CurveFit | None:
    """Return the fit and the moment of the draw for the next decision; None if the log has them."""
    record = CurveFit(model.fits, model.rows, drawn_at)
    return None if record == history.recorded.curves else record
