"""Which report of a front to take, and what the front is worth."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.study_log.compromise import best_of_front, hypervolume_of, knee_of, reference_of

METRICS = {"error": "minimize", "speed": "maximize"}


def told(*pairs, **settings):
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics=METRICS,
        method="random",
        storage="memory://",
        seed=0,
        **settings,
    )
    for error, speed in pairs:
        study.tell(study.ask(), {"error": error, "speed": speed})
    return study.history


BENT = ((0.0, 0.0), (0.1, 90.0), (0.5, 95.0), (1.0, 100.0), (0.9, 10.0))


def test_the_knee_is_where_the_front_bends_most():
    trial, report = knee_of(told(*BENT))
    assert trial.id == 1 and report.metrics["speed"] == 90.0


def test_weights_walk_along_the_front():
    history = told(*BENT)
    chosen = [
        best_of_front(history, {"error": 1.0 - share, "speed": share})[0].id
        for share in (0.0, 0.5, 0.93, 1.0)
    ]
    assert chosen == [0, 1, 2, 3]
    assert best_of_front(told(*BENT, weights={"error": 0.0, "speed": 1.0}))[0].id == 3


def test_the_hypervolume_is_measured_in_the_users_units():
    history = told((0.2, 10.0), (0.6, 30.0))
    reference = {"error": 1.0, "speed": 0.0}
    assert hypervolume_of(history, reference) == pytest.approx(0.8 * 10 + 0.4 * 20)
    own = told((0.2, 10.0), (0.6, 30.0), reference=reference)
    assert hypervolume_of(own) == pytest.approx(16.0)
    assert hypervolume_of(history, {"error": 0.1, "speed": 0.0}) == 0.0
    assert reference_of(history) == pytest.approx([0.64, -8.0])  # a tenth beyond the worst


def test_beyond_a_goal_nothing_is_gained():
    history = told((0.2, 10.0), (0.1, 10.0), (0.3, 20.0), goals={"error": 0.2})
    assert [trial.id for trial, _ in history.front] == [0, 2]
    assert hypervolume_of(history, {"error": 1.0, "speed": 0.0}) == pytest.approx(8.0 + 7.0)


@pytest.mark.parametrize("pairs", [((0.5, 5.0),), ((0.5, 5.0),) * 3])
def test_one_point_and_all_equal(pairs):
    history = told(*pairs)
    assert [trial.id for trial, _ in history.front] == [0]  # of equal reports the first
    assert knee_of(history)[0].id == best_of_front(history, {"error": 1.0})[0].id == 0
    assert hypervolume_of(history) > 0.0
    assert hypervolume_of(history, {"error": 1.0, "speed": 0.0}) == pytest.approx(2.5)


def test_an_objective_that_never_changes_does_not_matter():
    history = told((0.5, 1.0), (0.2, 1.0), (0.7, 1.0))
    assert [trial.id for trial, _ in history.front] == [1]
    assert hypervolume_of(history) > 0.0


def test_nothing_yet():
    history = told()
    assert knee_of(history) is best_of_front(history, {"error": 1.0}) is None
    assert hypervolume_of(history) == 0.0 and history.front == []


def test_mistakes_are_named():
    history = told(*BENT)
    with pytest.raises(StudyError, match="no trial is best in all"):
        best_of_front(history)
    with pytest.raises(StudyError, match="did you mean 'speed'"):
        best_of_front(history, {"sped": 1.0})
    with pytest.raises(StudyError, match="leaves out speed"):
        hypervolume_of(history, {"error": 1.0})
    with pytest.raises(StudyError, match="reference is empty"):
        hypervolume_of(history, {})
    single = scrimp.create_study(
        "one", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    ).history
    for ask in (knee_of, hypervolume_of, best_of_front):
        with pytest.raises(StudyError, match="has one, 'value'"):
            ask(single)
