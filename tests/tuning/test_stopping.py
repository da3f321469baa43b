"""Stop rules alone and combined."""

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.tuning.stopping import NoImprovement, Seconds, StopRule, TargetReached, Trials

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def study_of(values: list[float], direction: str = "minimize") -> scrimp.Study:
    study = scrimp.create_study(
        "s", SPACE, direction=direction, method="random", storage="memory://", seed=0
    )
    for value in values:
        study.tell(study.ask(), value)
    return study


def satisfied(rule: StopRule, study: scrimp.Study, seconds: float = 0.0) -> bool:
    return rule.satisfied(study.history, 100.0 + seconds, 100.0)


def test_trials_count_failures_too() -> None:
    study = study_of([1.0, 2.0])
    assert not satisfied(Trials(3), study)
    study.tell(study.ask(), state="failed")
    assert satisfied(Trials(3), study)


def test_the_target_is_in_the_direction_of_the_study() -> None:
    assert satisfied(TargetReached(0.5), study_of([0.9, 0.5]))
    assert not satisfied(TargetReached(0.5), study_of([0.9, 0.6]))
    assert satisfied(TargetReached(0.5), study_of([0.9, 0.1], "maximize"))
    assert not satisfied(TargetReached(0.95), study_of([0.9, 0.1], "maximize"))


def test_no_improvement_counts_finished_trials_since_the_best() -> None:
    assert not satisfied(NoImprovement(3), study_of([3.0, 1.0, 2.0, 2.0]))
    assert satisfied(NoImprovement(3), study_of([3.0, 1.0, 2.0, 2.0, 1.0]))
    assert not satisfied(NoImprovement(3), study_of([3.0, 2.9, 2.8, 2.7]))
    assert satisfied(NoImprovement(3, least=0.5), study_of([3.0, 2.9, 2.8, 2.7]))


def test_no_improvement_counts_feasible_values_only() -> None:
    study = scrimp.create_study(
        "c",
        SPACE,
        method="random",
        storage="memory://",
        seed=0,
        constraints={"m": scrimp.AtMost(0.0)},
    )
    for value, size in [(-100.0, 1.0), (5.0, 0.0), (4.0, 0.0), (3.0, 0.0), (2.0, 0.0)]:
        study.tell(study.ask(), {"value": value, "m": size})
    assert not satisfied(NoImprovement(3), study)


def test_rules_combine() -> None:
    study = study_of([1.0])
    assert satisfied(Seconds(5) | TargetReached(0.0), study, seconds=6)
    assert not satisfied(Seconds(5) & TargetReached(0.0), study, seconds=6)
    assert satisfied(Seconds(5) & TargetReached(1.0), study, seconds=6)
    assert satisfied((Seconds(50) & Trials(1)) | Trials(1), study)


@pytest.mark.parametrize(
    "make", [lambda: Trials(0), lambda: Seconds(-1), lambda: NoImprovement(0), lambda: Trials(True)]
)
def test_senseless_numbers_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(StudyError, match="positive number"):
        make()
