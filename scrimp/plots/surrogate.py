"""What the model believed and why it chose: mean and band over one parameter, observations, the
acquisition below.

scrimp.plots.surrogate(study, "lr") # as it is now scrimp.plots.surrogate(study, "lr",
iteration=3) # as it was when the fourth configuration was chosen
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scrimp.errors import StudyError
from scrimp.history.events import Noted, TrialAdded
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.json_values import Scalar
from scrimp.plots.axes import check_parameters, labels, order
from scrimp.plots.model import belief_of
from scrimp.plots.ranges import value_span
from scrimp.plots.style import (
    ACCENT,
    BAND,
    LINE,
    MUTED,
    figure,
    short_value,
    thinned_items,
    unmarked,
)
from scrimp.space.parameter_contract import Parameter
from scrimp.suggesters.bayesian import BayesianSuggester, Belief
from scrimp.tuning.study import Study
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # only for types: drawing loads it
    from plotly.graph_objects import Figure, Scatter

__all__ = ["surrogate"]

POINTS = 201
MOST = 1000
DEPTH = 25.0
"""How far below its maximum the acquisition is shown."""


@one_thread()
def surrogate(study: Study, parameter: str | None = None, iteration: int | None = None) -> "Figure":
    """A Plotly figure of the loss model along ``parameter`` (the first one for None), the others
    held at the best configuration.

    ``iteration`` is the number of the trial about to be chosen; None shows the model after all that
    happened.
    """
    history, chosen = _as_it_was(study.history, iteration)
    (parameter,) = check_parameters(
        history.problem.space, None if parameter is None else [parameter], 1
    )
    belief = belief_of(study, history)
    picture = _drawn(history, belief, parameter, _slice(belief, history, parameter), chosen)
    if not isinstance(study.suggester, BayesianSuggester):
        picture.layout.meta["alternative"] += (
            f" It is a model of the last values; {unmarked(study.method)} decides otherwise."
        )
    return picture


def _as_it_was(history: History, iteration: int | None) -> tuple[History, Trial | None]:
    """The history that the decision for trial ``iteration`` saw, and that trial."""
    if iteration is None:
        return history, None
    if not 0 <= iteration < len(history.trials):
        raise StudyError(
            f"iteration is {iteration}; the study has trials 0 to {len(history.trials) - 1}"
        )
    seen = 0
    for event in history.events:
        if isinstance(event, Noted):
            seen = event.seen
        elif isinstance(event, TrialAdded) and event.trial == iteration:
            break
    return History.of(history.events[:seen]), history.trials[iteration]


def _slice(
    belief: Belief, history: History, parameter: str
) -> tuple[list[Scalar], np.ndarray, np.ndarray]:
    """Values of the parameter, their places in the unit cube, and the rows through the best
    configuration."""
    space, encoding = history.problem.space, belief.encoding
    column = space.searched.index(parameter)
    listed = encoding.columns[column].values
    units = np.linspace(0.0, 1.0, POINTS) if listed is None else np.array(listed)
    best = belief.training.x[int(np.argmin(belief.training.y))]
    rows = np.repeat(best[None, :], len(units), axis=0)
    rows[:, column] = units
    rows = encoding.domain.snap(rows)
    values = space[parameter].from_units(units)
    return labels(space[parameter], values), units, rows


def _drawn(
    history: History,
    belief: Belief,
    parameter: str,
    line: tuple[list[Scalar], np.ndarray, np.ndarray],
    chosen: Trial | None,
) -> "Figure":
    from plotly.graph_objects import Scatter
    from plotly.subplots import make_subplots

    problem = history.problem
    values, _, rows = line
    picture = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.68, 0.32], vertical_spacing=0.06
    )
    for trace in _belief_traces(problem, belief, values, rows):
        picture.add_trace(trace, 1, 1)
    seen = [
        trial for trial in history.trials if trial.value is not None and parameter in trial.config
    ]
    shown = thinned_items(seen, MOST)
    spec = problem.space[parameter]
    heights = [trial.value for trial in shown]
    picture.add_trace(_observed(spec, parameter, shown), 1, 1)
    scores = belief.score(rows)
    picture.add_trace(
        Scatter(x=values, y=scores, mode="lines", line={"color": ACCENT}, name="acquisition"), 2, 1
    )
    if chosen is not None and parameter in chosen.config:
        (where,) = labels(spec, [chosen.config[parameter]])
        picture.add_vline(x=where, line={"color": ACCENT, "dash": "dot"})
    picture.update_xaxes(**order(spec))
    picture.update_xaxes(title_text=unmarked(parameter), row=2, col=1)
    span = value_span([value for value in heights if value is not None], problem.sign)
    limits = {} if span is None else {"range": list(span)}
    picture.update_yaxes(title_text=unmarked(problem.metric), row=1, col=1, **limits)
    highest = float(np.max(scores))
    picture.update_yaxes(title_text="acquisition", row=2, col=1)
    if (
        float(np.min(scores)) < highest - DEPTH
    ):  # a logarithm falls without end beside what is known
        picture.update_yaxes(range=[highest - DEPTH, highest + 0.05 * DEPTH], row=2, col=1)
    next_ = short_value(values[int(np.argmax(scores))])
    title = f"Model of {unmarked(problem.metric)} along {unmarked(parameter)}"
    words = (
        f"After {len(seen)} observations the acquisition is highest at {unmarked(parameter)} = {next_}; "
        "the band is two standard deviations, the other parameters are those of the best trial."
    )
    return figure(picture, title, words)


def _observed(spec: Parameter, parameter: str, shown: Sequence[Trial]) -> object:
    """The trials as points; a click leads to each."""
    from plotly.graph_objects import Scatter

    return Scatter(
        x=labels(spec, [trial.config[parameter] for trial in shown]),
        y=[trial.value for trial in shown],
        mode="markers",
        marker={"color": MUTED, "size": 7, "line": {"color": LINE, "width": 1}},
        name="observed",
        meta={"trials": True},
        customdata=[trial.id for trial in shown],
        hovertemplate="trial %{customdata}: %{y}<extra></extra>",
    )


def _belief_traces(
    problem: Problem, belief: Belief, values: list[Scalar], rows: np.ndarray
) -> "list[Scatter]":
    """The mean and a band of two standard deviations, in the units and the direction of the
    metric."""
    from plotly.graph_objects import Scatter

    model = belief.models.fitted["loss"]
    posterior = model.posterior(rows)
    mean = posterior.mean[:, 0]
    deviation = np.sqrt(np.zeros(len(mean)) if posterior.variance is None else posterior.variance)

    def shown(losses: np.ndarray) -> np.ndarray:
        return problem.sign * model.target_units(losses)

    edge = {"x": values, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip"}
    band = {"fill": "tonexty", "fillcolor": BAND, "name": "two standard deviations"}
    return [
        Scatter(y=shown(mean + 2 * deviation), showlegend=False, **edge),
        Scatter(y=shown(mean - 2 * deviation), **band, **edge),
        Scatter(x=values, y=shown(mean), mode="lines", line={"color": LINE}, name="mean"),
    ]
