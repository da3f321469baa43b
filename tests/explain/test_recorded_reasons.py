"""The reason that a decision records is the one it was taken for, method by method."""

from collections.abc import Callable
from pathlib import Path

import pytest

import scrimp
from scrimp.json_values import Config
from scrimp.study_log.decision_record import (
    DrawnAtRandom,
    FirstDesign,
    FromDensity,
    Modelled,
    Reason,
    Said,
)
from scrimp.study_log.events import Decided

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def bowl(params: Config) -> float:
    return float((params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2)


def played(
    method: str,
    count: int = 14,
    space: scrimp.Space = SPACE,
    objective: Callable[[Config], float] = bowl,
    **settings: object,
) -> scrimp.Study:
    study = scrimp.create_study("s", space, method=method, storage="memory://", seed=0, **settings)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, objective(trial.params))
    return study


def reasons(study: scrimp.Study) -> list[Reason | None]:
    return [e.record.reason for e in study.history.events if isinstance(e, Decided)]


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tpe:random_fraction=0", {FromDensity}),
        ("tpe:random_fraction=1", {DrawnAtRandom}),
        ("tpe:random_fraction=0.5", {FromDensity, DrawnAtRandom}),
    ],
)
def test_a_density_is_named_only_where_it_was_drawn_from(method: str, expected: set[type]) -> None:
    study = played(method)
    found = reasons(study)
    assert {type(reason) for reason in found[:4]} == {FirstDesign}
    assert {type(reason) for reason in found[4:]} == expected
    for trial, reason in enumerate(found):
        words = str(study.explain(trial))
        assert ("density of the good trials" in words) == isinstance(reason, FromDensity)
        assert ("drawn at random" in words) == isinstance(reason, DrawnAtRandom)


@pytest.mark.parametrize("method", ["bohb", "sync-bohb"])
def test_a_third_of_bohb_is_said_to_be_random(method: str) -> None:
    budget = scrimp.Budget("epoch", 1, 9)
    study = scrimp.create_study(
        "s", SPACE, method=method, storage="memory://", seed=1, budget=budget
    )

    def train(trial: scrimp.Trial) -> None:
        for epoch in trial.steps():
            trial.report(bowl(trial.params) + 1 / epoch)

    study.optimize(train, n_trials=60)
    kinds = [type(reason) for reason in reasons(study)]
    random, dense = kinds.count(DrawnAtRandom), kinds.count(FromDensity)
    # 40 or more draws at a third: a standard deviation is at most 0.075, three of them allowed
    assert random + dense >= 40
    assert abs(random / (random + dense) - 1 / 3) < 0.225


def test_a_guess_of_the_user_is_no_point_of_the_design() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1, prior=(0.25, "high")), y=scrimp.Float(0, 1))
    for method in ("gp", "tpe", "nsga2"):
        study = played(method, 2, space)
        assert [reason.guessed for reason in reasons(study)] == [True, False]
        assert "the user's guess" in str(study.explain(0))
        assert "first design" in str(study.explain(1))


def test_a_child_has_the_parents_that_are_named() -> None:
    for crossover, expected in (
        (1.0, "a child of two of the best"),
        (0.0, "a mutated copy of one"),
    ):
        study = played(f"nsga2:population=6,crossover={crossover}", 9)
        tried = [(trial.params["x"], trial.params["y"]) for trial in study.trials]
        for child, reason in enumerate(reasons(study)[6:], start=6):
            assert isinstance(reason, Said)
            if crossover == 0.0:
                # one of two parameters is mutated on average; the other is the parent's own
                assert reason.text == "a mutated copy of one of the best 6 trials"
            else:
                assert reason.text.startswith((expected, "a mutated copy of one"))
            assert tried[child] not in tried[:child]


def test_random_draws_at_the_end_of_a_small_space_are_said_to_be_random() -> None:
    """Once children and points of the sequence repeat themselves, the rest is drawn at random."""
    space = scrimp.Space(a=scrimp.Categorical(["p", "q", "r"]), b=scrimp.Int(1, 4))
    for method in ("nsga2:population=4,mutation=0,crossover=0", "sobol"):
        study = played(method, 12, space, lambda params: float(params["b"]))
        found = reasons(study)
        if method.startswith("nsga2"):
            # copies without mutation are never new
            assert {type(reason) for reason in found[4:]} == {DrawnAtRandom}
        words = [str(study.explain(trial)) for trial in range(12)]
        for text, reason in zip(words, found, strict=True):
            assert ("drawn at random" in text) == isinstance(reason, DrawnAtRandom)


def test_scores_are_named_by_the_acquisition_that_was_maximised() -> None:
    guessed = scrimp.Space(x=scrimp.Float(0, 1, prior=(0.25, "high")), y=scrimp.Float(0, 1))
    plain, weighed = played("gp", 6), played("gp", 6, guessed)
    assert _score(plain).endswith(
        "(the logarithm of the expected improvement in the model's units)."
    )
    assert _score(weighed).endswith("model's units, weighted by the guesses of the user).")
    both = {"p": "minimize", "q": "minimize"}
    for method, expected in (
        ("gp", "expected addition to the front)."),
        ("gp:trade_off=chebyshev", "of the metrics)."),
    ):
        study = scrimp.create_study(
            "s", SPACE, method=method, storage="memory://", metrics=both, seed=0
        )
        for _ in range(6):
            trial = study.ask()
            study.tell(trial, {"p": bowl(trial.params), "q": trial.params["x"]})
        assert _score(study).endswith(expected)


def _score(study: scrimp.Study) -> str:
    """The line on the score of the latest decision."""
    (decision,) = study.explain(len(study.trials) - 1).decisions
    assert isinstance(reasons(study)[-1], Modelled)
    return next(line for line in decision.lines if line.startswith("It had the highest score"))


def test_children_and_promotions_of_brackets_are_named_as_such() -> None:
    budget = scrimp.Budget("epoch", 1, 9)
    for method in ("dehb", "sync-hyperband"):
        study = scrimp.create_study(
            "s", SPACE, method=method, storage="memory://", seed=1, budget=budget
        )

        def train(trial: scrimp.Trial) -> None:
            for epoch in trial.steps():
                trial.report(bowl(trial.params) + 1 / epoch)

        study.optimize(train, n_trials=40)
        for trial in study.trials:
            decisions = study.explain(trial.id).decisions
            for place, decision in enumerate(decisions):
                assert ("new trial started" in decision.lines[0]) <= (place == 0)
                assert ("among the best of its rung" in decision.lines[0]) == (place > 0)
        if method == "dehb":
            bred = [isinstance(reason, Said) for reason in reasons(study)]
            drawn = [isinstance(reason, DrawnAtRandom) for reason in reasons(study)]
            # the first bracket of nine is random, the next are children
            assert drawn[:9] == [True] * 9 and any(bred) and not any(bred[:9])


# --- weights of past studies ----------------------------------------------------------------------


def weights(tmp_path: Path, method: str) -> dict[str, float]:
    """The weights of the eighth decision of a study that learns from the same bowl and from its
    opposite."""
    storage = f"sqlite:///{tmp_path}/past.db"
    for name, sign in (("alike", 1.0), ("opposite", -1.0)):
        old = scrimp.create_study(name, SPACE, method="random", storage=storage, seed=7)
        for _ in range(20):
            trial = old.ask()
            old.tell(trial, sign * bowl(trial.params))
    past = ["alike", "opposite"]
    study = scrimp.create_study(
        "new", SPACE, method=method, storage=storage, learn_from=past, seed=0
    )
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, bowl(trial.params))
    found = dict(study.history.recorded.sources.weights)
    assert sum(found.values()) == pytest.approx(1.0, abs=2e-4)
    return found


def test_past_experts_with_its_trials_leave_nothing_to_this_study(tmp_path: Path) -> None:
    assert weights(tmp_path, "pogpe:experts=all")["this study"] < 0.001


@pytest.mark.parametrize("method", ["pogpe:experts=entropy", "pogpe", "taf-poe"])
def test_weights_of_products_are_those_at_the_configuration(tmp_path: Path, method: str) -> None:
    """The exponents of the last two are 1/4, 1/4 and 1/2; precisions change them."""
    found = weights(tmp_path, method)
    assert found != {"alike": 0.25, "opposite": 0.25, "this study": 0.5}
    assert found["this study"] > 0.05


def test_the_default_gives_each_past_study_the_share_of_its_prediction(tmp_path: Path) -> None:
    found = weights(tmp_path, "task-prior")
    assert found["alike"] > 0.0 and found["this study"] > 0.0
