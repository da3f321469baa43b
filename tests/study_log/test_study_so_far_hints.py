"""Hints where the best configuration lies at an end of the space."""

from typing import Any

import pytest

from scrimp.json_values import Config
from scrimp.space.parameter import Categorical, Float, Int, Ordinal
from scrimp.space.space import Pool, Space
from scrimp.study_log.events import BudgetGranted, Ended, Event, Reported, StudyCreated, TrialAdded
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.study_so_far import bound_hints, hints

SPACE = Space(
    lr=Float(1e-4, 1e-1, log=True),
    layers=Int(1, 6),
    batch=Ordinal([16, 32, 64]),
    kind=Categorical(["a", "b"]),
)
INSIDE: dict[str, Any] = {"lr": 1e-2, "layers": 3, "batch": 32, "kind": "a"}


def history_of(space: Space, *trials: tuple[Config, float]) -> History:
    """One finished trial for each configuration and loss."""
    events: list[Event] = [
        StudyCreated(
            name="s",
            problem=Problem(space, metrics={"loss": "minimize"}).to_json(),
            method={"name": "random"},
        )
    ]
    for number, (config, loss) in enumerate(trials):
        events.append(TrialAdded(trial=number, config=config))
        events.append(BudgetGranted(trial=number, budget=1.0, attempt=1))
        events.append(Reported(trial=number, attempt=1, step=1.0, metrics={"loss": loss}))
        events.append(Ended(trial=number, attempt=1, status="completed"))
    return History.of(events)


def test_nothing_to_say_inside_and_before_the_first_report() -> None:
    assert bound_hints(history_of(SPACE)) == []
    assert bound_hints(history_of(SPACE, (INSIDE, 1.0), ({**INSIDE, "lr": 1e-1}, 2.0))) == []


def test_every_parameter_at_an_end_is_told_with_how_many_of_the_best_are_there() -> None:
    """Two of the five best trials at an end may be there by accident."""
    best = {"lr": 0.0999, "layers": 1, "batch": 64, "kind": "b"}
    next_best = {**INSIDE, "lr": 1e-1, "layers": 1, "batch": 64}
    runs = [
        (best, 0.1),
        (next_best, 0.15),
        ({**INSIDE, "lr": 1e-1, "layers": 1}, 0.2),
        ({**INSIDE, "lr": 1e-1}, 0.2),
        *[(INSIDE, 0.5)] * 4,
    ]
    lr, layers = bound_hints(history_of(SPACE, *runs))
    assert lr == "lr is at its upper bound in 4 of the top 5 trials; consider widening its range"
    assert layers.startswith("layers is at its lower bound in 3 of the top 5 trials")


def test_an_end_that_every_trial_had_says_nothing() -> None:
    """Such as the first trials of a grid, or a value that a user always queued."""
    runs = [({**INSIDE, "lr": 1e-1}, 0.1 * loss) for loss in range(6)]
    assert bound_hints(history_of(SPACE, *runs)) == []
    (hint,) = bound_hints(history_of(SPACE, *runs, (INSIDE, 9.0)))
    assert hint.startswith("lr is at its upper bound in 5 of the top 5 trials")


def test_near_an_end_means_within_a_hundredth_of_the_range() -> None:
    just_inside = 1e-4 * 10 ** (3 * 0.02)
    assert bound_hints(history_of(SPACE, ({**INSIDE, "lr": just_inside}, 1.0))) == []
    (hint,) = bound_hints(history_of(SPACE, ({**INSIDE, "lr": 1.01e-4}, 1.0)))
    assert hint.startswith("lr is at its lower bound; ")


def test_a_list_has_no_ends() -> None:
    pool = Pool(Space(lr=SPACE["lr"]), [{"lr": 1e-4}, {"lr": 1e-1}])
    assert bound_hints(history_of(pool, ({"lr": 1e-1}, 1.0))) == []


def test_the_ends_of_a_grid_are_its_first_and_last_number() -> None:
    space = Space(x=Float(0, 1, step=0.001), n=Int(8, 64, step=8))
    assert bound_hints(history_of(space, ({"x": 0.999, "n": 56}, 1.0))) == []
    x, n = bound_hints(history_of(space, ({"x": 1.0, "n": 8}, 1.0)))
    assert x.startswith("x is at its upper bound") and n.startswith("n is at its lower bound")


def test_an_objective_that_does_not_read_its_parameters() -> None:
    same = history_of(SPACE, *[({**INSIDE, "layers": 2 + place % 3}, 0.5) for place in range(5)])
    (hint,) = hints(same)
    assert "all 5 trials have the same loss" in hint and "lr, layers, batch, kind" in hint
    other = history_of(SPACE, *[(INSIDE, 0.5)] * 4, (INSIDE, 0.6))
    assert hints(other) == [] and hints(history_of(SPACE, *[(INSIDE, 0.5)] * 4)) == []


def test_few_configurations_are_compared_with_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [({**INSIDE, "lr": 1e-4}, 1.0 + number) for number in range(500)]
    history = history_of(SPACE, *runs, (INSIDE, 900.0))
    compared = []
    real = Space.contains
    monkeypatch.setattr(
        Space, "contains", lambda space, config: compared.append(1) or real(space, config)
    )
    (hint,) = hints(history)
    assert "5 of the top 5" in hint and len(compared) < 10
    assert hints(history) == [hint] and len(compared) < 10
