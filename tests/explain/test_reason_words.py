"""Records of decisions as sentences."""

from dataclasses import replace

import pytest

import scrimp
from scrimp.explain.reason_words import (
    SCORES,
    belief_lines,
    other_lines,
    score_lines,
    score_words,
    why,
)
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    DecisionRecord,
    Expected,
    FirstDesign,
    FromDensity,
    Gain,
    Horizon,
    InBracket,
    Modelled,
    Promoted,
    Race,
    Rival,
    Said,
    Sides,
    Sources,
)
from scrimp.study_log.events import Decided
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Trial

SPACE = scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4))
PLAIN = Problem(
    SPACE,
    metrics={"accuracy": "maximize"},
)
STAGED = Problem(SPACE, metrics={"error": "minimize"}, budget=Budget("epoch", 1, 9))


@pytest.fixture
def trial() -> Trial:
    study = scrimp.create_study(
        "s", SPACE, metric="accuracy", direction="maximize", method="random", storage="memory://"
    )
    return study.tell(study.ask(), 0.7)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (DecisionRecord(grant=Promoted(1)), "so it was promoted to 3 epochs."),
        (
            DecisionRecord(
                reason=Modelled(1.0, Expected(0.2, step=5.0), question=Horizon(2.0, 0.25))
            ),
            "to beat the best error so far by epoch 5.",
        ),
        (DecisionRecord(reason=Said("nobody knows")), "Nobody knows."),
        (DecisionRecord(reason=Modelled(1.0, exploring=True)), "to explore where"),
        (DecisionRecord(reason=FirstDesign(step=True)), "a random step from the best trial"),
        (DecisionRecord(reason=Modelled(1.0, elsewhere=True)), "with other discrete values"),
        (DecisionRecord(reason=Modelled(1.0)), "the most promising configuration"),
        (DecisionRecord(), "continued it to 3 epochs."),
        (DecisionRecord(grant=InBracket(1)), "started in bracket 1 with 3 epochs."),
    ],
)
def test_reasons(record: DecisionRecord, words: str) -> None:
    assert words in why(record, STAGED, "asha", False, 3.0)


def test_methods_without_a_model_say_so() -> None:
    assert why(DecisionRecord(), PLAIN, "random", True, 1.0) == "It was drawn at random."


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.8, -0.6, "inside the interval"),
        (-0.6, -0.5, "better than predicted (noise not counted)"),
        (-0.9, -0.8, "worse than predicted (noise not counted)"),
    ],
)
def test_beliefs_are_told_in_the_direction_of_the_metric(
    trial: Trial, low: float, high: float, words: str
) -> None:
    reason = Modelled(expected=Expected(-0.65, low, high))
    expected, came = belief_lines(DecisionRecord(reason=reason), PLAIN, trial)
    assert expected.startswith(
        f"The model predicted accuracy 0.65 (95% interval {-high:.4g} to {-low:.4g}, noise excluded)."
    )
    assert came == f"The result was 0.7, {words}."


def test_beliefs_about_a_budget_name_it(trial: Trial) -> None:
    reason = Modelled(expected=Expected(0.2, 0.1, 0.3), at=9.0)
    (line,) = belief_lines(DecisionRecord(reason=reason), STAGED, trial)
    assert "error 0.2 after 9 epochs" in line


@pytest.mark.parametrize(
    ("expected", "best", "words"),
    [
        (
            Expected(0.3, 0.3, 0.5, 9.0),
            0.3,
            "a new best error after 9 epochs (95% interval: up to 0.5)",
        ),
        (
            Expected(0.4, 0.3, 0.5, 9.0),
            0.3,
            "error 0.4 after 9 epochs (95% interval: a new best to 0.5)",
        ),
        (
            Expected(0.3, 0.3, 0.5, 9.0),
            0.2,
            "error 0.3 or better after 9 epochs (95% interval: up to 0.5)",
        ),
        (Expected(0.4, 0.3, 0.5, 9.0), 0.2, "(95% interval: 0.3 or better to 0.5)"),
        # Six digits are recorded.
        (Expected(0.103001, 0.103001, 0.5, 9.0), 0.1030005, "a new best error after 9 epochs"),
        (Expected(0.4, 0.35, 0.5, 9.0), 0.2, "(95% interval 0.35 to 0.5, noise excluded)"),
    ],
)
def test_a_band_that_ends_where_the_knowledge_ends_says_so(
    trial: Trial, expected: Expected, best: float, words: str
) -> None:
    rival = Rival(0.1, trial=7, expected=Expected(0.45, 0.3, 0.6, 9.0))
    reason = Modelled(0.5, expected, rivals=(rival,), question=Horizon(2.0, 0.3))
    (line,) = belief_lines(DecisionRecord(reason=reason), STAGED, trial, best)
    assert words in line


def test_scores_of_two_sides_and_of_one(trial: Trial) -> None:
    sides = score_lines(DecisionRecord(reason=Modelled(-2.0, sides=Sides(paused=-2.0))), "", trial)
    assert sides[1:] == [
        "The best of the paused trials had -2.",
        "There was no new configuration to choose from.",
    ]
    lines = score_lines(
        DecisionRecord(reason=Modelled(0.5, rivals=(Rival(0.4, trial=7),))),
        score_words(EMPTY_RECORD, {"name": "gp-pi"}, PLAIN),
        trial,
    )
    assert lines == [
        "It had the highest score: 0.5 (the logarithm of the probability of improvement).",
        "Runner-up: trial 7, with 0.4.",
    ]


@pytest.mark.parametrize(
    ("per_unit", "per_cost", "cost", "each"),
    [
        (False, False, None, ""),
        (True, False, "dollars", " per epoch"),
        (True, True, None, " per second of training"),
        (True, True, "dollars", " per unit of dollars"),
    ],
)
def test_a_gain_is_told_with_the_value_it_improves_on(
    trial: Trial, per_unit: bool, per_cost: bool, cost: str | None, each: str
) -> None:
    expected, problem = Expected(0.2, 0.1, 0.3, 9.0), replace(STAGED, cost=cost)
    record = DecisionRecord(
        reason=Modelled(-1.5, expected, question=Gain(9.0, 0.25, per_unit, per_cost))
    )
    assert why(record, problem, "freeze-thaw", True, 3.0) == (
        f"It had the highest expected improvement{each} over the best error so far (0.25) by epoch 9."
    )
    scattered = why(record, problem, "freeze-thaw", True, 3.0, [((0.1,), 4, 9.0)])
    assert "over the best error that the model learns from (0.25) by epoch 9." in scattered
    assert "so far (0.25)" in why(record, problem, "freeze-thaw", True, 3.0, [((0.25,), 4, 9.0)])
    words = score_words(record, {"name": "freeze-thaw"}, problem)
    assert score_lines(record, words, trial) == [
        f"It had the highest score: -1.5 (the logarithm of the expected improvement{each})."
    ]
    asked_early = DecisionRecord(reason=Modelled(-1.5, expected, question=Race()))
    assert score_words(asked_early, {"name": "freeze-thaw"}, problem).endswith("model's units")


def test_a_score_is_named_after_the_acquisition_of_the_paper() -> None:
    ours, paper = (
        score_words(EMPTY_RECORD, {"name": "gp", "settings": settings}, PLAIN)
        for settings in ({}, {"published": True})
    )
    assert ours == SCORES["log-ei"] and paper == SCORES["ei"]


def test_a_score_is_named_after_the_acquisition_of_the_settings_and_what_weighs_it() -> None:
    weighed = Problem(SPACE, constraints={"memory": scrimp.AtMost(1)}, cost="seconds")
    mine = {"name": "gp", "settings": {"acquisition": "mine"}}
    assert score_words(EMPTY_RECORD, mine, PLAIN) == "the acquisition 'mine'"
    assert (
        score_words(EMPTY_RECORD, mine, weighed)
        == "the acquisition 'mine', weighted by the constraints and the cost"
    )
    assert (
        score_words(EMPTY_RECORD, {"name": "gp-ei", "settings": {"acquisition": "pi"}}, PLAIN)
        == "the logarithm of the probability of improvement"
    )
    costly = Problem(SPACE, cost="seconds")
    assert (
        score_words(EMPTY_RECORD, {"name": "gp-ei"}, costly)
        == "the expected improvement in the model's units, weighted by the cost, as a logarithm"
    )
    assert score_words(EMPTY_RECORD, {"name": "dyhpo", "settings": {}}, PLAIN) == ""
    race, horizon = (
        DecisionRecord(reason=Modelled(question=asked)) for asked in (Race(), Horizon(2.0))
    )
    assert "logarithm" in score_words(race, {"name": "freeze-thaw"}, STAGED)
    assert "deviations" in score_words(horizon, {"name": "freeze-thaw"}, STAGED, failures=2)


@pytest.mark.parametrize("method", ["gp-ei", "gp-pi"])
def test_after_a_failure_a_score_is_called_the_logarithm_that_it_is(method: str) -> None:
    study = scrimp.create_study(
        "s", SPACE, metric="error", method=method, storage="memory://", seed=0
    )
    for number in range(8):
        trial = study.ask()
        if number == 1:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, trial.params["lr"])
    reason = [event.record.reason for event in study.history.events if isinstance(event, Decided)][
        -1
    ]
    assert isinstance(reason, Modelled) and reason.score is not None
    assert reason.score < 0.0  # no probability and no improvement is negative
    words = "weighted by the probability that it does not fail, as a logarithm"
    assert words in study.explain(7).details


def test_weights_of_past_studies_are_shares() -> None:
    sources = Sources(weights={"old": 0.25, "none": 0.001, "this study": 0.749})
    assert other_lines(DecisionRecord(sources=sources), PLAIN) == [
        "Weights of studies: this study 75%, old 25%."
    ]
    nearly = Sources(weights={"old": 0.996, "this study": 0.004})
    (line,) = other_lines(DecisionRecord(sources=nearly), PLAIN)
    assert line == "Weights of studies: old over 99%."


def test_densities_name_a_budget_only_if_the_study_has_one() -> None:
    record = DecisionRecord(reason=FromDensity(1.0, 10))
    assert other_lines(record, PLAIN)[0].endswith("among 10 finished trials.")
    assert other_lines(record, STAGED)[0].endswith("among 10 trials compared at budget 1.")


def test_the_score_of_one_trade_off_is_not_called_a_probability() -> None:
    record = DecisionRecord(reason=Modelled(-0.69, weights={"p": 0.5, "q": 0.5}))
    assert score_words(record, {"name": "gp-pi"}, PLAIN) == "for one trade-off of the metrics"
    assert score_words(record, {"name": "gp"}, PLAIN).startswith("the logarithm of the expected")


def test_past_studies_that_do_not_count() -> None:
    sources = Sources(
        left_out=("past study 'one' has 1 usable trials; it is left out",), unlearnable=("a", "b")
    )
    assert other_lines(DecisionRecord(sources=sources), PLAIN) == [
        "Past study 'one' has 1 usable trials; it is left out.",
        (
            "The values of past studies 'a', 'b' cannot be predicted from their configurations (too"
            " few trials or too much noise), so they do not count."
        ),
    ]
    assert (
        "'e' and 3 more cannot"
        in other_lines(DecisionRecord(sources=Sources(unlearnable=tuple("abcdefgh"))), PLAIN)[0]
    )
