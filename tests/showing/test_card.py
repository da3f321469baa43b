"""The card of a study in a notebook: everything is there, and nothing of a user is read as HTML."""

import scrimp
from scrimp.showing.card import study_card
from scrimp.showing.standing import Standing


def test_a_running_study(halving: scrimp.Study) -> None:
    card = study_card(halving.history, Standing.of(halving.history, 12.0, 0.0))
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
    card = study_card(study.history)
    for bad in ("<script", "<img", "<i>", "<b>name"):
        assert bad not in card
    assert "&lt;b&gt;name" in card and "&lt;script&gt;" in card and "&lt;img" in card


def test_an_empty_study() -> None:
    study = scrimp.create_study(
        "e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    assert "best none yet" in study_card(study.history)
