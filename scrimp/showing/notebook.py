"""A card in a Jupyter notebook that is drawn anew in place while a study runs.

IPython is never imported by scrimp: where a notebook runs, it is loaded already.

    card = notebook_card()           # None outside a notebook
    card.show("<b>12 of 30</b>")
"""

import sys
from collections.abc import Callable
from typing import Protocol

__all__ = ["NotebookCard", "notebook_card"]


class _Handle(Protocol):
    """What IPython gives for an output that can be changed."""

    def update(self, shown: object) -> None: ...


class _Html:
    """Text that a notebook shows as HTML."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return "<card of a study>"


class NotebookCard:
    """One output of the running cell."""

    def __init__(self, display: Callable[..., _Handle]) -> None:
        self._display = display
        self._handle: _Handle | None = None

    def show(self, html: str) -> None:
        """Show ``html``, in place of what was shown before."""
        if self._handle is None:
            self._handle = self._display(_Html(html), display_id=True)
        else:
            self._handle.update(_Html(html))


def notebook_card() -> NotebookCard | None:
    """A card where a notebook's kernel runs this code; None in a terminal, IPython's own included."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    return NotebookCard(display)
