"""Pictures of studies as Plotly figures: the same in Python, in files and in the dashboard."""

from scrimp.plots.attainment import attainment
from scrimp.plots.compare import compare
from scrimp.plots.contour import contour
from scrimp.plots.curves import curves
from scrimp.plots.edf import edf
from scrimp.plots.front import front, front_history
from scrimp.plots.history import history
from scrimp.plots.importance import importance
from scrimp.plots.metrics import metrics
from scrimp.plots.parallel import parallel
from scrimp.plots.regret import regret
from scrimp.plots.rungs import rungs
from scrimp.plots.selection import selection_confidence, selection_curve, selection_grid
from scrimp.plots.selection_correlations import selection_correlations
from scrimp.plots.slice import slice
from scrimp.plots.source_weights import source_weights
from scrimp.plots.spending import spending
from scrimp.plots.surrogate import surrogate
from scrimp.plots.timeline import timeline
from scrimp.plots.trade_offs import trade_offs

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
    "slice",
    "source_weights",
    "spending",
    "surrogate",
    "timeline",
    "trade_offs",
]
