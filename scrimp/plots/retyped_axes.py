"""Figures whose axes may be made logarithmic in Plotly's usual way.

Plotly reads the range of a logarithmic axis as powers of ten, so a range that was set for a linear
axis would leave nothing to see. Here a range is dropped when only the type of its axis changes:

    curves(study).update_yaxes(type="log")
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from plotly.graph_objects import Figure


class RetypedAxes(Figure):  # type: ignore[misc]
    """A figure that forgets the range of an axis with the type of that axis."""

    def update_xaxes(self, *args: object, **changes: object) -> "RetypedAxes":
        """Change horizontal axes, as Plotly does."""
        with self._without_stale_ranges():
            super().update_xaxes(*args, **changes)
        return self

    def update_yaxes(self, *args: object, **changes: object) -> "RetypedAxes":
        """Change vertical axes, as Plotly does."""
        with self._without_stale_ranges():
            super().update_yaxes(*args, **changes)
        return self

    def update_layout(self, *args: object, **changes: object) -> "RetypedAxes":
        """Change the layout, as Plotly does."""
        with self._without_stale_ranges():
            super().update_layout(*args, **changes)
        return self

    @contextmanager
    def _without_stale_ranges(self) -> Iterator[None]:
        before = self._axes()
        yield
        for name, (kind, ends) in self._axes().items():
            old_kind, old_ends = before.get(name, (kind, None))
            if ends is not None and ends == old_ends and (kind == "log") != (old_kind == "log"):
                self.layout[name].range = None

    def _axes(self) -> Mapping[str, tuple[str | None, tuple[float, ...] | None]]:
        """Return the type and the range of every axis."""
        names = [name for name in self.layout if name[1:5] == "axis"]
        return {name: (self.layout[name].type, self.layout[name].range) for name in names}
