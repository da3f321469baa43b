"""The exchange between a study and a search, with a stand-in for scikit-learn."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError

pytest.importorskip("sklearn")

from scrimp.integrations.sklearn import Results, SearchRows, SearchTalk
from scrimp.study_log.events import BudgetGranted, Decided, Event, Reported, TrialAdded


class Evaluator:
    """Scores by a formula, in the place of ``evaluate_candidates``."""

    def __init__(self, broken: float = 2.0) -> None:
        self.broken = broken
        self.seen: list[dict[str, float]] = []

    def __call__(
        self,
        candidates: Sequence[dict[str, float]],
        more_results: Mapping[str, Sequence[int]] | None = None,
    ) -> Results:
        if any(one["x"] > self.broken for one in candidates):
            raise ValueError("All the 1 fits failed.\ntoo large")
        self.seen += candidates
        scores = np.array([1.0 - one["x"] for one in candidates])
        return {"split0_test_score": scores, "mean_test_score": scores}


def talk(study: scrimp.Study, resource: str | None = None, **given: float) -> SearchTalk:
    return SearchTalk(study, Evaluator(**given), SearchRows(), {}, dict, resource, n_jobs=1)


def study(**given: object) -> scrimp.Study:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    settings = {"metric": "score", "direction": "maximize", "seed": 0, "method": "random"}
    return scrimp.create_study("s", space, storage="memory://", **settings | given)


def test_it_asks_as_often_as_told_and_goes_on_from_what_is_there() -> None:
    held = study()
    first = talk(held)
    first.run(3)
    more = talk(held)
    more.run(5)
    assert len(first.evaluate.seen) == 3 and len(more.evaluate.seen) == 2
    assert [row.params for row in more.rows.earlier] == first.evaluate.seen
    assert [trial.value for trial in held.trials] == [
        1 - trial.config["x"] for trial in held.trials
    ]


def test_a_budget_is_spent_and_set_as_the_parameter() -> None:
    held = study(budget=scrimp.Budget("epochs", 1, 9), method="asha")
    found = talk(held, "epochs")
    found.run(2)
    spent = [one["epochs"] for one in found.evaluate.seen]
    assert set(spent) <= {1, 3, 9} and 18 <= sum(spent) < 27


def test_what_is_finished_is_made_again_once_and_hidden() -> None:
    held = study()
    talk(held).run(2)
    again = talk(held)
    again.run(2)
    assert again.rows.repeats and len(again.evaluate.seen) == 1 and len(held.trials) == 2


def test_failures_are_told_and_three_alike_end_it() -> None:
    held = study()
    with pytest.raises(ValueError, match="too large"):
        talk(held, broken=-1.0).run(5)
    assert [trial.status for trial in held.trials] == ["failed"] * 3
    with pytest.raises(StudyError, match="all 3 trials of study 's' failed"):
        talk(held).run(3)


def plant(study: scrimp.Study, config: dict[str, object], **metrics: float) -> None:
    """Add a trial to the log, as anyone who can write to the storage can."""
    number = len(study.trials)
    events: list[Event] = [
        Decided(decision=study.history.decisions, seen=1),
        TrialAdded(trial=number, config=config),
        BudgetGranted(trial=number, budget=1.0),
    ]
    if metrics:
        events.append(Reported(trial=number, step=1.0, metrics=dict(metrics)))
    study._ledger.append(events)


WRONG = [{"x": -5.0}, {"x": "text"}, {"x": 0.5, "verbose": 3}, {}, {"x": [1]}]


@pytest.mark.parametrize("config", WRONG)
def test_planted_running_trials_are_not_evaluated(config: dict[str, object]) -> None:
    held = study()
    talk(held).run(2)
    plant(held, config)
    more = talk(held)
    more.run(4)
    assert config not in more.evaluate.seen and len(more.evaluate.seen) == 1
    assert held.trials[2].status == "failed"
    assert held.trials[2].message.startswith("not run: its configuration does not fit the space")


@pytest.mark.parametrize("config", WRONG)
def test_planted_results_are_left_out(config: dict[str, object]) -> None:
    held = study()
    talk(held).run(2)
    plant(held, config, score=9.0, split0_test_score=9.0)
    more = talk(held)
    more.run(4)
    assert len(more.rows.earlier) == 2


def test_rows_of_another_shape_are_left_out() -> None:
    held = study()
    talk(held).run(2)
    plant(held, {"x": 0.5}, score=9.0, **{f"split{fold}_test_score": 9.0 for fold in range(3)})
    plant(held, {"x": 0.6}, score=9.0, split0_test_other=9.0, split0_test_score=9.0)
    more = talk(held)
    more.run(5)
    assert len(more.rows.earlier) == 4
    fold = {"fit_time": 0.0, "score_time": 0.0, "test_scores": 0.5}
    more.rows.evaluated = [{"x": 0.1}], 1, [fold], None
    params, splits, fits, _ = more.rows.joined()
    assert len(params) == 3 and len(fits) == 3 * splits
