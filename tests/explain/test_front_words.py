"""Where on the front a trial stands, and which part of it a decision meant to move."""

import pytest

import scrimp
from scrimp.explain.front_words import aim_lines, front_headline
from scrimp.study_log.decision_record import Expected, Growth, Modelled
from scrimp.study_log.problem import Problem

METRICS = {"error": "minimize", "speed": "maximize"}
PROBLEM = Problem(scrimp.Space(x=scrimp.Float(0, 1)), METRICS)
FRONT = [((0.1, -1.0), 3, 1.0), ((0.5, -5.0), 4, 1.0), ((0.9, -9.0), 7, 1.0)]


def aimed(error, speed, front=FRONT):
    each = {"error": Expected(error, error - 0.1, error + 0.1), "speed": Expected(speed)}
    (line,) = aim_lines(Modelled(each=each), front, PROBLEM)
    return line


@pytest.mark.parametrize(
    ("error", "speed", "words"),
    [
        (0.3, 3.0, "between trial 3 and trial 4"),
        (0.7, 7.0, "between trial 4 and trial 7"),
        (0.05, 0.5, "beyond its best error, past trial 3"),
        (1.0, 12.0, "beyond its worst error, past trial 7"),
        (0.4, 6.0, "ahead of the front, in place of trial 4"),
        (0.6, 4.0, "behind the front near trial 4"),
    ],
)
def test_the_part_of_the_front_is_named(error, speed, words):
    line = aimed(error, speed)
    assert words in line
    assert line.startswith(f"The models predicted error {error:.4g} (")


def test_the_first_of_a_front_and_no_expectation():
    assert "the first of the front" in aimed(0.3, 3.0, [])
    assert aim_lines(Modelled(), FRONT, PROBLEM) == []
    assert aim_lines(Modelled(each={"error": Expected(0.1)}), FRONT, PROBLEM) == []


@pytest.mark.parametrize(
    ("error", "speed", "words"),
    [
        (
            Expected(0.1, 0.1, 0.6),
            Expected(1.0, 0.5, 9.0),
            "error 0.1 or better (up to 0.6), speed 1 (9 or better to 0.5): level with trial 3 on the"
            " front, or ahead of it.",
        ),
        (
            Expected(0.4, 0.2, 0.6),
            Expected(9.0, 5.0, 9.0),
            "error 0.4 (0.2 to 0.6), speed 9 or better (down to 5): ahead of the front, in place of"
            " trial 4, 7.",
        ),
    ],
)
def test_the_lowest_loss_that_a_model_of_curves_knows_is_told_as_that_or_better(
    error, speed, words
):
    each = {"error": error, "speed": speed}
    (line,) = aim_lines(Modelled(each=each, question=Growth(9.0)), FRONT, PROBLEM)
    assert line == f"The models predicted {words}"
    (plain,) = aim_lines(Modelled(each=each), FRONT, PROBLEM)
    assert "or better" not in plain


def told(*pairs, weights=None):
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics=METRICS,
        weights=weights,
        method="random",
        storage="memory://",
        seed=0,
    )
    for error, speed in pairs:
        study.tell(study.ask(), {"error": error, "speed": speed})
    return study


def test_the_headline_says_who_is_ahead():
    study = told((0.5, 5.0), (0.9, 1.0), (0.4, 4.0), (0.5, 5.0))
    heads = [front_headline(study.history, trial) for trial in study.trials]
    assert heads[0] == "on the front, with 2 reports in all; it dominates trial 1"
    assert heads[2] == "on the front, at its knee, with 2 reports in all; it dominates trial 1"
    assert heads[1] == "dominated by trial 2 and 1 more"
    assert "the same values" in heads[3]
    study.ask()
    assert front_headline(study.history, study.trials[-1]) == "not on the front"
    # A trial without a report is dominated by none.
    assert front_headline(study.history, study.trials[0]) == heads[0]


def test_an_explanation_speaks_of_the_front():
    study = told((0.5, 5.0), (0.9, 1.0))
    said = str(study.explain(1).details)
    assert "error 0.9, speed 1" in said and "dominated by trial 0" in said
    assert "the front had 1 report" in said
    assert study.explain().trial == 0 and "at its knee" in study.explain().headline


def test_without_a_number_the_weights_of_the_study_choose_and_an_empty_front_is_told():
    weighted = told((0.5, 5.0), (0.9, 9.0), weights={"error": 0.0, "speed": 1.0})
    assert weighted.knee[0].id == 0 and weighted.explain().trial == 1
    with pytest.raises(scrimp.errors.StudyError, match="no feasible value yet"):
        told().explain()
