"""The card of a study in a notebook: everything is there, and nothing of a user is read as HTML."""

import sys
from types import ModuleType
from typing import Any

import pytest

import scrimp
from scrimp.display.card import notebook_output, study_card
from scrimp.study_log.record import StudyRecord


def test_a_running_study(halving: scrimp.Study) -> None:
    card = study_card(StudyRecord.of(halving.history, seconds=12.0, done_before=0.0))
    for words in (
        "digits: minimize error with asha",
        "12 s",
        "3 of 5 trials",
        "best 0.2  trial 1 after 2 epochs",
    ):
        assert words in card
    assert (
        "running: trial 1  epoch 2 of 3  error 0.2" in card
        and "4 epochs spent" in card
        and "<svg" in card
    )
    assert "saved" not in card and "the best 3 of 3 trials" in card


def test_hostile_names_are_text() -> None:
    space = scrimp.Space({"<script>p</script>": scrimp.Categorical(["<img src=x>", "b"])})
    study = scrimp.create_study(
        "<b>name", space, metric='"><i>', method="grid", storage="memory://", seed=0
    )
    for value in (0.5, 0.4):
        study.tell(study.ask(), value)
    card = study_card(StudyRecord.of(study.history))
    for bad in ("<script", "<img", "<i>", "<b>name"):
        assert bad not in card
    assert "&lt;b&gt;name" in card and "&lt;script&gt;" in card and "&lt;img" in card


def test_an_empty_study() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert "best none yet" in study_card(StudyRecord.of(study.history))


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
    card = notebook_output()
    assert card is not None
    card.show("<b>1</b>")
    card.show("<b>2</b>")
    assert outputs.shown == ["<b>2</b>"]


@pytest.mark.parametrize("shell", [None, object()])
def test_no_card_in_a_terminal(monkeypatch: pytest.MonkeyPatch, shell: Any) -> None:
    pretend(monkeypatch, shell)
    assert notebook_output() is None
    monkeypatch.delitem(sys.modules, "IPython")
    assert notebook_output() is None
