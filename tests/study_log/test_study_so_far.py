"""The path of the best value: one point per improvement, at what was spent by then."""

import scrimp
from scrimp.study_log.history import History
from scrimp.study_log.study_so_far import BEST_PATH


def played(direction: str, values: list[float]) -> History:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        direction=direction,
        method="random",
        storage="memory://",
    )  # type: ignore[call-overload]
    for value in values:
        study.tell(study.ask(), value)
    return study.history


def test_improvements_only_in_the_users_direction() -> None:
    assert played("minimize", [3.0, 4.0, 1.0, 2.0]).derive(BEST_PATH).points == [
        (1.0, 0, 3.0),
        (3.0, 2, 1.0),
    ]
    rising = played("maximize", [3.0, 4.0, 1.0]).derive(BEST_PATH)
    assert rising.points == [(1.0, 0, 3.0), (2.0, 1, 4.0)] and rising.spent == 3.0


def test_what_is_infeasible_is_no_improvement_and_steps_are_counted() -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        constraints={"size": scrimp.AtMost(1)},
        method="asha",
        storage="memory://",
        seed=0,
    )
    first = study.history.derive(BEST_PATH)
    one, two = study.ask(count=2)
    study.report(one, step=1, error=0.5, size=0.5)
    study.report(two, step=1, error=0.1, size=2.0)
    three = study.ask()
    study.report(three, step=2, error=0.4, size=1.0)
    assert study.history.derive(BEST_PATH) is first  # kept current, not computed again
    assert first.points == [(1.0, one.id, 0.5), (3.0, three.id, 0.4)]
