"""Pictures of studies as Plotly figures: the same in Python, in files and in the dashboard."""

from scrimp.plots.surrogate import surrogate

__all__ = ["surrogate"]
