"""An order that is kept is the one made again, and costs the trials that changed."""

import random

import scrimp
from scrimp.study_log.history import History
from scrimp.study_log.ordered_trials import MAX_ORDERS, ordered_trials
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import Trial


def study(**settings: object) -> scrimp.Study:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    return scrimp.create_study(
        "s",
        space,
        method="random",
        storage="memory://",
        seed=0,
        **settings,  # type: ignore[arg-type]
    )


def test_the_order_follows_every_change() -> None:
    tuned, draw = study(budget=scrimp.Budget("epoch", 1, 3)), random.Random(0)
    key = lambda trial: trial.best  # noqa: E731
    for _ in range(80):
        trial = tuned.ask()
        for step in range(1, draw.choice([2, 3, 4])):
            tuned.report(trial, step=step, value=draw.choice([0.1, 0.2, draw.random()]))
            history = tuned.history
            known = [(t.best, t.id) for t in history.trials if t.best is not None]
            assert list(ordered_trials(history, "best", key)) == sorted(known)


def test_only_the_trials_that_changed_are_looked_at() -> None:
    tuned, seen = study(), []

    def key(trial: Trial) -> float | None:
        seen.append(trial.id)
        return trial.best

    tuned.optimize(lambda trial: trial.params["x"], n_trials=50)
    ordered_trials(tuned.history, "best", key)
    assert seen == list(range(50))
    tuned.tell(tuned.ask(), 0.5)
    ordered_trials(tuned.history, "best", key)
    ordered_trials(tuned.history, "best", key)
    assert seen[50:] == [50]
    for number in range(2 * MAX_ORDERS):
        ordered_trials(tuned.history, number, key)
    seen.clear()
    assert len(ordered_trials(tuned.history, "best", key)) == 51 == len(seen)


def test_a_new_problem_measures_all_again() -> None:
    tuned = study(constraints={"memory": scrimp.AtMost(10)})
    for memory in (5.0, 15.0, 20.0, float("nan")):
        tuned.tell(tuned.ask(), {"value": memory, "memory": memory})
    (rule,) = StudyRecord.of(tuned.history).rules
    assert (rule.held, rule.reported) == (1, 3)


def test_the_facts_of_a_record_do_not_look_at_every_trial() -> None:
    """Facts after one more trial are those of the log read again, in both directions."""
    for direction in ("minimize", "maximize"):
        tuned = study(direction=direction)
        for number in range(40):
            tuned.tell(tuned.ask(), (number * 7) % 10)
            now = StudyRecord.of(tuned.history)
            again = StudyRecord.of(History.of(tuned.history.events))
            assert (now.hints, now.begun, now.unfit) == (again.hints, again.begun, again.unfit)
            for trial in now.trials[:3]:
                better = [t for t in now.trials if (t.best - trial.best) * now.problem.sign < 0]
                assert now.rank(trial) == (1 + len(better), len(now.trials))
