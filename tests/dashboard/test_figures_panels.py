"""A page shows the pictures that have something to show."""

import scrimp
from scrimp.dashboard.figures import APART, CELLS, FIGURES, HEADINGS, SELECTION, heading, panels_of


def made(names: str = "xy", **settings: object) -> scrimp.Study:
    space = scrimp.Space({name: scrimp.Float(0, 1) for name in names})
    return scrimp.create_study("s", space, method="random", storage="memory://", **settings)  # type: ignore[arg-type]


def test_the_history_and_the_curves_come_first(url: str) -> None:
    panels = panels_of(scrimp.load_study("staged", storage=url).history)
    assert panels.first == ("history", "curves") and "rungs" in panels.last
    assert {"parallel", "contour", "importance", "slice", "surrogate"} <= set(panels.more)
    fallen = panels_of(scrimp.load_study("fallen", storage=url).history)
    assert fallen.more == ("source_weights",) and fallen.first == ()


def test_nothing_without_trials_and_no_pictures_of_values_without_values() -> None:
    study = made()
    assert panels_of(study.history).all == ()
    study.tell(study.ask(), state="failed")
    assert panels_of(study.history).all == ("timeline",)
    study.tell(study.ask(), 1.0)
    assert panels_of(study.history).first == ("history",)


def test_without_budgets_parallel_coordinates_stand_beside_the_history() -> None:
    study = made()
    study.optimize(lambda trial: {"value": 1.0, "other": 2.0}, n_trials=5)
    panels = panels_of(study.history)
    assert panels.first == ("history", "parallel") and "curves" not in panels.all
    assert "metrics" in panels.more and "rungs" not in panels.all
    one = made("x")
    one.optimize(lambda trial: 1.0, n_trials=5)
    assert not {"contour", "importance", "metrics"} & set(panels_of(one.history).all)


def test_a_selection_has_its_own() -> None:
    selection = scrimp.create_selection("c", checkpoints=[1, 2], tasks=["a"], storage="memory://")
    assert panels_of(selection.history).all == ()
    selection.tell(1, "a", 0.5)
    assert panels_of(selection.history).all == CELLS


def test_every_picture_has_a_heading_and_can_be_drawn() -> None:
    assert set(HEADINGS) <= {*FIGURES, *SELECTION} == {*scrimp.plots.__all__} - {*APART}
    assert heading("my_picture") == "My picture"
