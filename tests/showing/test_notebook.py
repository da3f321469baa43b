"""A card is shown where a notebook's kernel runs, in place, and nowhere else."""

import sys
from types import ModuleType
from typing import Any

import pytest

from scrimp.showing.notebook import notebook_card


class Outputs:
    """What a notebook shows: every output as it is now."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, thing: Any, display_id: bool) -> "Outputs":
        assert display_id
        self.shown.append(thing._repr_html_())
        return self

    def update(self, thing: Any) -> None:
        self.shown[-1] = thing._repr_html_()


def pretend(monkeypatch: pytest.MonkeyPatch, shell: Any) -> Outputs:
    """An IPython with this shell."""
    outputs, ipython, display = Outputs(), ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: shell  # type: ignore[attr-defined]
    display.display = outputs.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return outputs


class Kernel:
    kernel = object()


def test_one_output_that_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = pretend(monkeypatch, Kernel())
    card = notebook_card()
    assert card is not None
    card.show("<b>1</b>")
    card.show("<b>2</b>")
    assert outputs.shown == ["<b>2</b>"]


@pytest.mark.parametrize("shell", [None, object()])
def test_no_card_in_a_terminal(monkeypatch: pytest.MonkeyPatch, shell: Any) -> None:
    pretend(monkeypatch, shell)
    assert notebook_card() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_card() is None
