"""The models behind pictures, and `surrogate`: the model along one parameter, with observations and,
where the method has one, the acquisition.

    scrimp.plots.surrogate(study, "lr")                 # the model now
    scrimp.plots.surrogate(study, "lr", iteration=3)    # as it was when trial 3 was chosen

If the method is a Gaussian process, `surrogate` shows the models and the acquisition that a decision
used. `landscape_of` models the effect of the parameters on losses at one budget,
because losses after 1 and after 81 epochs answer different questions. That budget is the largest
one that three quarters of the trials reached: few trials get further, and only good ones. Losses
are standardised and diverged ones capped.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from plotly.graph_objects import Figure
from plotly.subplots import make_subplots

from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.errors import ScrimpError, StudyError
from scrimp.json_values import Scalar
from scrimp.plots import style
from scrimp.plots.learning_curves import check_metric
from scrimp.plots.style import figure, short_value, trace, unmarked
from scrimp.study.predict import predict_configs
from scrimp.study.study import Study
from scrimp.study_log.events import Decided, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial
from scrimp.suggesters.bayesian import BayesianSuggester, Belief
from scrimp.suggesters.fit_and_choose import forecast_columns
from scrimp.suggesters.model_settings import ModelSettings, loss_model
from scrimp.surrogates.forecast import ForecastColumn, column_of
from scrimp.surrogates.surrogate import Data, FittedSurrogate
from scrimp.threads import one_thread

CURVE_POINTS = 201
MAX_OBSERVATION_DOTS = 1000
ACQUISITION_DEPTH = 25.0
"""Range of the acquisition shown below its maximum."""


@one_thread()
def surrogate(
    study: Study,
    parameter: str | None = None,
    iteration: int | None = None,
    *,
    metric: str | None = None,
) -> Figure:
    """Return the model of a metric (default: the first) along ``parameter`` (default: the first),
    with the others fixed at the best configuration, and the acquisition if the method has one.

    ``iteration`` shows the model as it was when that trial was chosen; None, the model now.
    """
    history, chosen = _as_it_was(study.history, iteration)
    _check(history)
    metric, own = check_metric(history, metric), study.suggester
    given = None if parameter is None else [parameter]
    (parameter,) = style.check_parameters(history.problem.space, given, 1)
    belief = None
    if isinstance(own, BayesianSuggester):
        belief = own.belief(history, history.rng("decide"))
    values, rows = _slice(history, parameter, metric)
    column, remark = _column(study, history, belief, rows, metric), ""
    if column is None:
        landscape = landscape_of(history, metric=metric)
        natural = partial(np.multiply, style.metric_sign(history.problem, metric))
        column = column_of(metric, landscape.model, rows, natural)
        at = style.after_words(history.problem, landscape.budget)
        remark = (
            f" The model is a plain Gaussian process of {unmarked(metric)}{at}, fitted for this picture;"
            f" {unmarked(study.method)} has none of its own."
        )
    picture = _drawn(history, belief, column, (parameter, values, rows), chosen)
    picture.layout.meta["alternative"] += remark
    return picture


def _column(
    study: Study, history: History, belief: Belief | None, rows: np.ndarray, metric: str
) -> ForecastColumn | None:
    """Return what the method's model believes of the metric at rows (n, d), if it has one."""
    if belief is not None:
        columns = forecast_columns(history.problem, belief.models.fitted, rows)
    else:
        configs = encoding_of(history.problem.space).decode(rows)
        try:
            columns = list(predict_configs(study.policy, history, configs, None).columns)
        except ScrimpError:
            columns = []
    return next((column for column in columns if column.name == metric), None)


def _as_it_was(history: History, iteration: int | None) -> tuple[History, Trial | None]:
    """Return the history that the decision for trial ``iteration`` saw, and that trial."""
    if iteration is None:
        return history, None
    if not 0 <= iteration < len(history.trials):
        raise StudyError(
            f"iteration is {iteration}; the study has trials 0 to {len(history.trials) - 1}"
        )
    seen = 0
    for event in history.events:
        if isinstance(event, Decided):
            seen = event.seen
        elif isinstance(event, TrialAdded) and event.trial == iteration:
            break
    return History.of(history.events[:seen]), history.trials[iteration]


def _slice(history: History, parameter: str, metric: str) -> tuple[list[Scalar], np.ndarray]:
    """Return values of the parameter, and the rows (n, d) through the best configuration."""
    problem, space = history.problem, history.problem.space
    encoding, sign = encoding_of(space), style.metric_sign(problem, metric)
    known = style.fitting_trials(history, style.with_value(history, metric))
    best = min(known, key=lambda trial: sign * (style.last_value(problem, trial, metric) or 0.0))
    column = space.searched.index(parameter)
    listed = encoding.columns[column].values
    units = np.linspace(0.0, 1.0, CURVE_POINTS) if listed is None else np.array(listed)
    rows = np.repeat(encoding.encode([best.config]), len(units), axis=0)
    rows[:, column] = units
    values = style.labels(space[parameter], space[parameter].from_units(units))
    return values, encoding.domain.snap(rows)


def _drawn(
    history: History,
    belief: Belief | None,
    column: ForecastColumn,
    along: tuple[str, list[Scalar], np.ndarray],
    chosen: Trial | None,
) -> Figure:
    problem, metric, (parameter, values, _) = history.problem, column.name, along
    shape = {"rows": 1} if belief is None else {"rows": 2, "row_heights": [0.68, 0.32]}
    picture = make_subplots(**shape, cols=1, shared_xaxes=True, vertical_spacing=0.06)
    band = style.band(values, *column.band(2.0), style.BAND, name="two standard deviations")
    middle = zip(values, column.moments()[0], strict=True)
    mean = trace(middle, "lines", line={"color": style.LINE}, name="mean")
    picture.add_traces([*band, mean], rows=1, cols=1)
    seen = [t for t in style.with_value(history, metric) if parameter in t.config]
    shown = style.shown_trials(history, seen, MAX_OBSERVATION_DOTS, metric)
    spec, heights = problem.space[parameter], [style.last_value(problem, t, metric) for t in shown]
    places = style.labels(spec, [trial.config[parameter] for trial in shown])
    look = {"color": style.MUTED, "size": 7, "line": {"color": style.LINE, "width": 1}}
    dots = style.trial_dots(list(zip(shown, places, heights, strict=True)), "observed", look)
    picture.add_trace(dots, 1, 1)
    words = f"{len(seen)} observation{'s' * (len(seen) != 1)} of {unmarked(metric)}"
    if belief is not None:
        words += f"; {_add_acquisition(picture, belief, along)}"
    if chosen is not None and parameter in chosen.config:
        (where,) = style.labels(spec, [chosen.config[parameter]])
        picture.add_vline(x=where, line={"color": style.ACCENT, "dash": "dot"})
    picture.update_xaxes(**style.order(spec))
    picture.update_xaxes(title_text=unmarked(parameter), row=shape["rows"], col=1)
    known = [height for height in heights if height is not None]
    limits, outside = style.value_axis(known, style.metric_sign(problem, metric), False)
    picture.update_yaxes(title_text=unmarked(metric), row=1, col=1, **limits)
    title = f"Model of {unmarked(metric)} along {unmarked(parameter)}"
    words += (
        ". The band is two standard deviations; the other parameters are those of the trial with the"
        f" best {unmarked(metric)}."
    )
    return figure(picture, title, words + outside)


def _add_acquisition(
    picture: Figure, belief: Belief, along: tuple[str, list[Scalar], np.ndarray]
) -> str:
    """Draw the acquisition of the next decision, and return a phrase about its maximum."""
    parameter, values, rows = along
    scores = belief.score(rows)
    # log EI falls without bound next to observations.
    scores = np.maximum(scores, float(np.max(scores)) - ACQUISITION_DEPTH)
    line = {"line": {"color": style.SCORE}, "name": "acquisition"}
    picture.add_trace(trace(zip(values, scores, strict=True), "lines", **line), 2, 1)
    picture.update_yaxes(title_text="acquisition", row=2, col=1)
    best = short_value(values[int(np.argmax(scores))])
    return f"the acquisition is highest at {unmarked(parameter)} = {best}"


MAX_LANDSCAPE_ROWS = 500
"""Observations that a landscape is fitted to at most: half of them the best, half the newest."""

LANDSCAPE_MODEL = ModelSettings(transform="standardise")


@dataclass(frozen=True)
class Landscape:
    """A fitted model of the loss after ``budget``, with its data: rows (n, d) and losses (n,)."""

    encoding: Encoding
    model: FittedSurrogate
    data: Data
    budget: float

    @property
    def best(self) -> NDArray[np.float64]:
        """Return the row (d,) of the best configuration."""
        return np.asarray(self.data.x[int(np.argmin(self.data.y))])

    def resampled(self, count: int, rng: np.random.Generator) -> list[FittedSurrogate]:
        """Return ``count`` models with the same hyperparameters, each on a random two thirds of the data."""
        size = max(len(self.data) * 2 // 3, min(len(self.data), 2))
        chosen = [np.sort(rng.choice(len(self.data), size, replace=False)) for _ in range(count)]
        surrogate = loss_model(self.encoding.columns, LANDSCAPE_MODEL)
        return [surrogate.restore(self.data.select(rows), self.model.state) for rows in chosen]


def landscape_of(
    history: History, budget: float | None = None, metric: str | None = None
) -> Landscape:
    """Return a model of the loss after ``budget``; None takes the comparison budget. ``metric`` is
    the first one unless another is given."""
    _check(history)
    space = history.problem.space
    encoding = encoding_of(space)
    budget = comparison_budget(history) if budget is None else budget
    rows = [
        (trial, loss)
        for trial in history.trials
        if (loss := _loss_at(history.problem, trial, budget, metric)) is not None
        and space.contains(trial.config)
    ]
    if not rows:
        raise StudyError(f"no trial has reported a value after {budget:g}; take a smaller budget")
    if len(rows) > MAX_LANDSCAPE_ROWS:
        half = MAX_LANDSCAPE_ROWS // 2
        best = {trial.id for trial, _ in sorted(rows, key=lambda row: row[1])[:half]}
        rows = [*(row for row in rows[:-half] if row[0].id in best), *rows[-half:]]
    losses = np.array([loss for _, loss in rows])
    data = Data(encoding.encode([trial.config for trial, _ in rows]), losses)
    model = loss_model(encoding.columns, LANDSCAPE_MODEL).fit(data, history.rng("landscape"))
    return Landscape(encoding, model, data, budget)


def comparison_budget(history: History) -> float:
    """Return the largest budget that at least three quarters of the trials with a value reached."""
    reached = sorted(trial.budget for trial in history.trials if trial.loss is not None)
    return reached[len(reached) // 4]


def _loss_at(problem: Problem, trial: Trial, budget: float, metric: str | None) -> float | None:
    """Return the loss of the first report at or beyond ``budget``."""
    point = next((point for point in trial.curve if point.step >= budget), None)
    if point is None or metric is None or metric == problem.metric:
        return None if point is None else point.loss
    value = style.finite_value(point, metric)
    return None if value is None else style.metric_sign(problem, metric) * value


def _check(history: History) -> None:
    if not any(trial.loss is not None for trial in history.trials):
        raise StudyError(
            "there are no observations yet, so there is no model to show; run trials first"
        )
