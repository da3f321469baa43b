"""A study run to its end: totals, workers, interrupts, limits and checkpoints."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from tests.study.test_study import SPACE, memory


def test_optimize_counts_in_total_and_survives_failures() -> None:
    def objective(trial: Any) -> float:
        if trial.id % 3 == 0:
            raise ValueError("boom")
        return float(trial.params["x"])

    finished: list[int] = []
    study = memory()
    study.optimize(
        objective, n_trials=7, callbacks=[lambda study, trial: finished.append(trial.id)]
    )
    assert study.history.counts["failed"] == 3 and study.history.counts["completed"] == 4
    assert finished == list(range(7))
    study.optimize(objective, n_trials=7)
    assert len(study.trials) == 7
    study.optimize(objective, n_trials=9)
    assert len(study.trials) == 9
    assert study.ask().id == 9  # asking by hand is not bound by the total of an earlier run


def test_asking_by_hand_does_not_lift_the_total_of_a_run() -> None:
    study = memory()
    asked: list[int] = []

    def ask_once(study: scrimp.Study, trial: Any) -> None:
        if not asked:
            asked.append(study.ask().id)

    study.optimize(lambda trial: 1.0, n_trials=5, callbacks=[ask_once])
    assert asked and len(study.trials) == 5  # the asked one is one of the five


def test_optimize_with_worker_processes(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "p", SPACE, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    study.optimize(lambda trial: trial.params["x"], n_trials=8, workers=2)
    assert study.history.counts["completed"] == 8
    reopened = scrimp.load_study("p", storage=f"sqlite:///{tmp_path}/s.db")
    assert reopened.best_value == min(trial.params["x"] for trial in study.trials)


def test_an_interrupted_run_hands_its_trial_back(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "i", SPACE, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )

    def interrupted(trial: Any) -> float:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.optimize(interrupted, n_trials=3)
    assert [trial.status for trial in study.trials] == ["stale"]
    study.optimize(lambda trial: float(trial.attempt), n_trials=3)
    assert [trial.value for trial in study.trials] == [2.0, 1.0, 1.0]


def test_stop_rules_and_timeout_end_a_run() -> None:
    study = memory()
    study.optimize(
        lambda trial: trial.params["x"], stop=scrimp.TargetReached(0.5) | scrimp.MaxTrials(50)
    )
    assert study.best_value <= 0.5
    again = memory(seed=1).optimize(lambda trial: 1.0, timeout=0.3)
    assert len(again.trials) > 0


def test_a_time_limit_is_known_to_the_method_and_lifted_by_the_next_run() -> None:
    study = memory()
    study.optimize(lambda trial: trial.params["x"], 1, timeout=60.0)
    totals = study.history.totals
    assert totals.timeout == 60.0 and totals.since >= study.history.created.time
    study.optimize(lambda trial: trial.params["x"], 2)
    assert study.history.totals.timeout is None


def test_checkpoints_survive_and_the_best_is_found(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "c", SPACE, storage=f"sqlite:///{tmp_path}/s.db", method="random", seed=0
    )

    def objective(trial: Any) -> None:
        (trial.checkpoint_dir / "model").write_text(str(trial.id))
        trial.report(trial.params["x"])

    study.optimize(objective, n_trials=3)
    assert (study.best_checkpoint / "model").read_text() == str(study.best_trial.id)
    assert tmp_path in study.best_checkpoint.parents


def _trained(trial: Any) -> None:
    """Small networks learn less; ``size`` shrinks with training: every first epoch is over the
    limit."""
    for epoch in trial.steps():
        size = 20.0 / epoch + trial.params["width"]
        trial.report(
            error=abs(trial.params["rate"] - 0.3) + 1.0 / epoch + 1.0 / trial.params["width"],
            size=size,
        )


@pytest.mark.parametrize(
    "method", ["freeze-thaw", "asha", "bohb", "mobster-joint", "hypertune-indep", "dyhpo"]
)
def test_training_runs_that_violate_a_constraint_at_first_may_go_on(method: str) -> None:
    space = scrimp.Space(rate=scrimp.Float(0, 1), width=scrimp.Int(1, 64))
    study = scrimp.create_study(
        "limited", space, metric="error", budget=scrimp.Budget("epoch", 1, 9), method=method,
        constraints={"size": scrimp.AtMost(20)}, storage="memory://", seed=1,
    )  # fmt: skip
    study.optimize(_trained, total_budget=120)
    assert study.best_trial.params["width"] <= 17
    full = [trial for trial in study.trials if trial.budget == 9]
    assert sum(trial.params["width"] <= 20 for trial in full) > len(full) / 2
