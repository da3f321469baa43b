"""Pictures of studies as Plotly figures: the same in Python, in files and in the dashboard. Needs
``pip install 'scrimp[plots]'``.
"""

from importlib.util import find_spec

from scrimp.errors import PluginError

if find_spec("plotly") is None:
    raise PluginError("plots need Plotly, which is not installed; pip install 'scrimp[plots]'")

from scrimp.plots.learning_curves import curves, metrics, rungs
from scrimp.plots.models import surrogate
from scrimp.plots.parameters import contour, importance, parallel, slice
from scrimp.plots.pareto import attainment, front, front_history, trade_offs
from scrimp.plots.progress import compare, edf, history, regret
from scrimp.plots.resources import source_weights, spending, timeline
from scrimp.plots.selections import (
    selection_confidence,
    selection_correlations,
    selection_curve,
    selection_grid,
    selection_race,
    selection_saved,
    selection_scores,
    selection_tasks,
)

__all__ = [
    "attainment",
    "compare",
    "contour",
    "curves",
    "edf",
    "front",
    "front_history",
    "history",
    "importance",
    "metrics",
    "parallel",
    "regret",
    "rungs",
    "selection_confidence",
    "selection_correlations",
    "selection_curve",
    "selection_grid",
    "selection_race",
    "selection_saved",
    "selection_scores",
    "selection_tasks",
    "slice",
    "source_weights",
    "spending",
    "surrogate",
    "timeline",
    "trade_offs",
]
