"""Stop rules alone and combined."""

import html
import math
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import scrimp
from scrimp.acquisition.gain_left import GainLeft
from scrimp.cli.main import app
from scrimp.dashboard.server import create_app
from scrimp.errors import StudyError
from scrimp.methods.policy import Decision, Policy
from scrimp.storage.open import open_storage
from scrimp.study.stopping import MaxSeconds, MaxTrials, NoImprovement, StopRule, TargetReached
from scrimp.study_log.events import Annotated
from scrimp.study_log.history import History

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
    assert not satisfied(MaxTrials(3), study)
    study.tell(study.ask(), state="failed")
    assert satisfied(MaxTrials(3), study)


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
    assert satisfied(MaxSeconds(5) | TargetReached(0.0), study, seconds=6)
    assert not satisfied(MaxSeconds(5) & TargetReached(0.0), study, seconds=6)
    assert satisfied(MaxSeconds(5) & TargetReached(1.0), study, seconds=6)
    assert satisfied((MaxSeconds(50) & MaxTrials(1)) | MaxTrials(1), study)


@pytest.mark.parametrize(
    "make",
    [
        lambda: MaxTrials(0),
        lambda: MaxSeconds(-1),
        lambda: NoImprovement(0),
        lambda: MaxTrials(True),
    ],
)
def test_senseless_numbers_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(StudyError, match="positive number"):
        make()


BOWL = scrimp.Space(x=scrimp.Float(-1, 1), y=scrimp.Float(-1, 1))


def bowl(trial: scrimp.LiveTrial) -> float:
    return float((trial.params["x"] - 0.3) ** 2 + (trial.params["y"] + 0.2) ** 2)


def trained(trial: scrimp.LiveTrial) -> None:
    for epoch in trial.steps():
        trial.report(value=bowl(trial) + 0.1 / epoch)


def run_until(rule: StopRule, method: str, **more: object) -> scrimp.Study:
    epochs = None if method == "gp" else scrimp.Budget("epoch", 1, 9)
    study = scrimp.create_study(
        "left", BOWL, method=method, budget=epochs, storage="memory://", seed=0, **more
    )
    limit = {"n_trials": 60} if epochs is None else {"total_budget": 400}
    study.optimize(bowl if epochs is None else trained, stop=rule, **limit)
    return study


@pytest.mark.parametrize("method", ["gp", "freeze-thaw"])
def test_a_study_ends_when_little_is_left_to_gain(method: str) -> None:
    early, late = (run_until(scrimp.LittleLeft(gain), method) for gain in (0.02, 1e-9))
    assert early.history.spent < 0.7 * late.history.spent
    assert early.best_value < late.best_value + 0.02


def test_little_left_combines_and_counts_by_cost() -> None:
    both = scrimp.LittleLeft(0.01) & scrimp.MaxTrials(30)
    assert len(run_until(both, "gp").trials) == 30
    dear = run_until(scrimp.LittleLeft(0.01, per_cost=True), "gp", cost="seconds")
    assert len(dear.trials) <= 60


def test_methods_without_a_model_say_so_before_anything_runs() -> None:
    study = scrimp.create_study("none", BOWL, method="tpe", storage="memory://")
    with pytest.raises(StudyError, match="method 'tpe' has none; use 'gp' or 'freeze-thaw'"):
        study.optimize(bowl, n_trials=5, stop=scrimp.LittleLeft(0.1))
    assert not study.trials


def test_little_left_is_for_one_metric() -> None:
    metrics = {"a": "minimize", "b": "minimize"}
    study = scrimp.create_study("two", BOWL, metrics=metrics, storage="memory://")
    with pytest.raises(StudyError, match="LittleLeft is for one metric"):
        study.optimize(lambda trial: {"a": 1.0, "b": 2.0}, n_trials=5, stop=scrimp.LittleLeft(0.1))


def test_the_gain_is_computed_once_for_each_report() -> None:
    class Counting(Policy):
        asked = 0

        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            raise AssertionError

        def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft:
            Counting.asked += 1
            return GainLeft(0.5, 0.5)

    study = study_of([1.0, 2.0])
    rule = scrimp.LittleLeft(0.6, patience=2).bound_to(Counting())
    assert not satisfied(rule, study) and not satisfied(rule, study) and Counting.asked == 1
    assert rule.words(study.history) == "0.5 expected to gain; ends below 0.6"
    assert (rule | MaxTrials(3)).words(study.history) == rule.words(study.history)
    study.tell(study.ask(), 3.0)
    assert rule.words(study.history) == ""
    assert satisfied(rule, study) and Counting.asked == 2


def test_too_little_has_to_be_left_several_times_in_a_row() -> None:
    class Wavering(Policy):
        gains = iter((0.1, 0.9, 0.1, 0.1))

        def decide(self, history: History, rng: np.random.Generator) -> Decision:
            raise AssertionError

        def gain_left(self, history: History, rng: np.random.Generator) -> GainLeft:
            return GainLeft(next(self.gains), 1.0)

    study = study_of([1.0])
    rule = scrimp.LittleLeft(0.5, patience=2).bound_to(Wavering())
    found = []
    for value in (2.0, 3.0, 4.0, 5.0):
        found.append(satisfied(rule, study))
        study.tell(study.ask(), value)
    assert found == [False, False, False, True]


@pytest.mark.parametrize("per_cost", [False, True])
def test_readers_of_a_study_see_what_was_left_to_gain(per_cost: bool, tmp_path: Path) -> None:
    """The line in `scrimp show` and in the dashboard has the number that the rule was judged by."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("seen", BOWL, metric="loss", storage=url, seed=0)
    rule = scrimp.LittleLeft(0.02, per_cost=per_cost, patience=2)
    study.optimize(bowl, n_trials=40, stop=rule)
    count = len(study.trials)
    assert count < 40
    said = str(study.user_attrs["left to gain"])
    left = rule.left(History.of(study.history.events[:-1]))
    number = left.per_cost if per_cost else left.expected
    assert said.startswith(f"{number:.3g} ") and number < 0.02
    assert said.endswith(f"; ends below 0.02: ended (after {count} trials)")
    notes = [event for event in study.history.events if isinstance(event, Annotated)]
    assert len(notes) <= 1 + 25 * math.log10(count)
    shown = CliRunner().invoke(app, ["show", "seen", "--storage", url]).stdout
    assert f"left to gain: {said}" in shown
    client = TestClient(create_app(open_storage(url)), base_url="http://127.0.0.1")
    assert said in html.unescape(client.get("/study?name=seen").text)
