"""Advice: who is heard, how far, and what is said about it."""

import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.display.study_words import adviser_lines, adviser_words
from scrimp.errors import ConfigError, StudyError
from scrimp.explain.replay import replay
from scrimp.json_values import Config
from scrimp.study.advising import candidates, chances_to_beat_best
from scrimp.study.studies import load_any
from scrimp.study_log.advice import ADVICE, MAX_MISSES, MAX_OPEN_IN_ALL, AdviserRecord
from scrimp.study_log.decision_record import FromAdvice
from scrimp.study_log.events import Advised, Decided
from scrimp.study_log.record import StudyRecord

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))


def loss(config: Config) -> float:
    """A bowl with its best at (0.3, 0.7)."""
    return (float(config["x"]) - 0.3) ** 2 + (float(config["y"]) - 0.7) ** 2  # type: ignore[arg-type]


def made(method: str = "random", **settings: object) -> scrimp.Study:
    given = {"storage": "memory://", "seed": 0} | settings
    return scrimp.create_study("s", SPACE, method=method, **given)  # type: ignore[arg-type]


def run(study: scrimp.Study, trials: int, objective: Callable[[Config], float] = loss) -> None:
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, objective(trial.params))


def advised(study: scrimp.Study) -> dict[int, str]:
    return dict(study.history.derive(ADVICE).tried)


def record(study: scrimp.Study, by: str) -> AdviserRecord:
    return next(one for one in StudyRecord.of(study.history).advisers if one.by == by)


def worse() -> Iterator[Config]:
    """Configurations at the far side, each a little worse than the last."""
    return ({"x": 0.9 + 0.0001 * step, "y": 0.1} for step in count())


def test_bad_advice_costs_five_trials() -> None:
    study, bad = made(), worse()
    run(study, 12)
    study.advise([next(bad) for _ in range(40)], by="bad")
    run(study, 60)
    assert len(advised(study)) == MAX_MISSES
    found = record(study, "bad")
    assert (found.tried, found.progress, found.waiting, found.heard) == (5, 0, 35, False)
    assert "no turn after 5 trials without progress" in adviser_words(found)


def test_an_adviser_gets_another_try_when_the_study_is_stuck() -> None:
    study = made()
    run(study, 3, lambda config: 0.0)
    study.advise([{"x": 0.01 * step, "y": 0.5} for step in range(30)], by="ann")
    run(study, 60, lambda config: 1.0)  # nothing improves
    tries = list(advised(study))
    # Five as far as the share allows, then after 20 and 40 trials of the study's own.
    assert tries[:5] == [3, 5, 8, 11, 14] and len(tries) == 7
    own = [number for number in range(1, 63) if number not in tries]
    assert [sum(number < one for number in own) for one in tries[5:]] == [20, 40]


def test_good_advice_is_heard_up_to_a_third() -> None:
    study = made()
    steps = np.linspace(0.2, 0.0, 20).tolist()
    study.advise([{"x": 0.3 + step, "y": 0.7 - step} for step in steps], by="good")
    run(study, 60)
    shares = [sum(trial <= last for trial in advised(study)) / (last + 1) for last in range(60)]
    assert max(shares) <= 1 / 3
    assert len(advised(study)) == 20
    assert record(study, "good").progress >= 10
    assert study.best_value < 1e-3


def test_the_model_refuses_what_it_knows_to_be_bad() -> None:
    study, bad = made("gp"), worse()
    run(study, 25)
    study.advise([next(bad) for _ in range(5)], by="bad")
    study.advise({"x": 0.301, "y": 0.699}, by="good", why="it is the best")
    run(study, 12)
    assert set(advised(study).values()) <= {"good"}


def test_a_decision_says_whose_idea_it_was_and_what_supported_it() -> None:
    study = made("gp")
    run(study, 6)
    study.advise({"x": 0.32, "y": 0.68}, by="ann", why="a\nhunch")
    run(study, 3)
    (number,) = advised(study)
    reason = next(
        event.record.reason
        for event in study.history.events
        if isinstance(event, Decided) and isinstance(event.record.reason, FromAdvice)
    )
    assert reason.chance is not None and 0.01 < reason.chance < 1
    words = study.explain(number).details
    assert 'with the reason "a hunch". It was this adviser\'s first trial.' in words
    assert f"a {reason.chance:.0%} chance of beating the best value" in words
    study.advise([{"x": 0.31, "y": 0.69}], by="ann")
    run(study, 4)
    told = study.explain(list(advised(study))[1]).details
    own = record(study, "ann")
    assert "of this adviser's 1 trial brought progress" in told and own.tried == 2


@pytest.mark.parametrize("method", ["gp", "random", "tpe"])
def test_advice_survives_a_restart_and_is_replayed(tmp_path: Path, method: str) -> None:
    url = f"sqlite:///{tmp_path}/advice.db"
    study = made(method, storage=url)
    study.advise([{"x": 0.1 * step, "y": 0.6} for step in range(1, 9)], by="ann")
    run(study, 8)
    again = scrimp.load_study("s", storage=url)
    assert advised(again) == advised(study) and record(again, "ann") == record(study, "ann")
    run(again, 8)
    assert len(advised(again)) > len(advised(study)) - 1 >= 0
    assert all(not step.difference for step in replay(again.history.events))


def test_a_prior_is_a_space_to_draw_from() -> None:
    study = made()
    study.advise(scrimp.Space(x=scrimp.Float(0.25, 0.35)), by="paper")
    (event,) = [one for one in study.history.events if isinstance(one, Advised)]
    assert len(event.configs) == 16
    assert all(0.25 <= config["x"] <= 0.35 and 0 <= config["y"] <= 1 for config in event.configs)


def test_budgets_and_several_metrics_take_advice() -> None:
    study = made("auto", budget=scrimp.Budget("epoch", 1, 9))
    study.advise([{"x": 0.3, "y": 0.7 + 0.001 * step} for step in range(9)], by="ann")

    def objective(trial: scrimp.LiveTrial) -> None:
        for epoch in trial.steps():
            trial.report(value=loss(trial.params) + 1 / epoch)

    study.optimize(objective, n_trials=12)
    assert set(advised(study).values()) == {"ann"}
    both = scrimp.create_study(
        "b", SPACE, metrics={"a": "minimize", "b": "minimize"}, storage="memory://", seed=0
    )
    both.advise([{"x": 0.3, "y": 0.7 + 0.001 * step} for step in range(9)], by="ann")
    for _ in range(15):
        trial = both.ask()
        both.tell(trial, {"a": loss(trial.params), "b": float(trial.params["x"])})
    assert advised(both) and record(both, "ann").tried == len(advised(both))


def test_proposals_are_tried_once_and_only_where_they_fit() -> None:
    study = made()
    study.advise([{"x": 0.5, "y": 0.5}] * 3, by="ann")
    run(study, 9)
    assert len(advised(study)) == 1
    log = study._ledger
    log.append([Advised(configs=({"x": 7.0}, {"z": [1]}), by="eve")])  # type: ignore[dict-item]
    run(study, 9)
    assert len(advised(study)) == 1


@pytest.mark.parametrize(
    "wrong",
    [[], "x=1", 3, [1], [{"x": 0.1}] * 101, None],
    ids=["empty", "text", "number", "numbers", "many", "none"],
)
def test_wrong_advice_is_refused(wrong: object) -> None:
    study = made()
    with pytest.raises(StudyError, match="advise takes a configuration, a list of up to"):
        study.advise(wrong, by="ann")  # type: ignore[arg-type]
    assert not StudyRecord.of(study.history).advisers


def test_advice_outside_the_space_and_without_a_name_is_refused() -> None:
    study = made()
    with pytest.raises(ConfigError, match="x"):
        study.advise({"x": 3.0}, by="ann")
    for by in ("", "  ", 3):
        with pytest.raises(StudyError, match="by is"):
            study.advise({"x": 0.3}, by=by)  # type: ignore[arg-type]
    assert not StudyRecord.of(study.history).advisers


def test_advisers_take_turns() -> None:
    study = made()
    study.advise([{"x": 0.3 + 0.04 * step, "y": 0.7} for step in range(15, 0, -1)], by="good")
    study.advise([{"x": 0.3 + 0.04 * step, "y": 0.71} for step in range(15, 0, -1)], by="also")
    run(study, 15)
    assert list(advised(study).values())[:4] == ["also", "good", "also", "good"]


def test_many_names_and_proposals_keep_decisions_small() -> None:
    study = made()
    configs = tuple({"x": 0.5 + 0.001 * step, "y": 0.5} for step in range(100))
    study._ledger.append([Advised(configs=configs, by=f"name {name}") for name in range(50)])
    assert len(study.history.derive(ADVICE).open) == MAX_OPEN_IN_ALL
    assert len(candidates(study.history)) == MAX_OPEN_IN_ALL
    lines = adviser_lines(StudyRecord.of(study.history).advisers)
    assert len(lines) == 21 and lines[-1] == "and 30 more"
    assert record(study, "name 0").waiting == 0 and record(study, "name 49").waiting == 100


def test_names_and_reasons_are_kept_without_control_characters() -> None:
    study = made()
    study.advise({"x": 0.5, "y": 0.5}, by="\x1b[2Jann\ud800", why="a\u202eb\n\x07")
    (event,) = [one for one in study.history.events if isinstance(one, Advised)]
    assert (event.by, event.why) == ("\ufffd[2Jann\ufffd", "a\ufffdb \ufffd")


def test_a_chance_counts_constraints() -> None:
    rules = {"memory": scrimp.AtLeast(1.5), "width": scrimp.Equals(0.5, 0.4)}
    study = made("gp", constraints=rules)
    for x in (0.45, 0.6, 0.8, 0.2):
        for y in (0.05, 0.5, 0.95):
            study.enqueue({"x": x, "y": y})
            study.tell(study.ask(), {"value": x, "memory": 4 * x, "width": y})
    assert study.best_value == 0.45
    configs: list[Config] = [{"x": 0.42, "y": 0.5}, {"x": 0.25, "y": 0.5}, {"x": 0.42, "y": 0.02}]
    chances = chances_to_beat_best(study.policy, study.history, configs)
    assert chances is not None and chances[0] > 0.5
    assert max(chances[1:]) < 0.1


def test_a_model_that_fails_leaves_advice_to_the_record() -> None:
    study = made("gp")
    study.advise([{"x": 0.1 * step, "y": 0.6} for step in range(1, 6)], by="ann")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for value in (1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0):
            study.tell(study.ask(), 1e308 * value)
    first = study.history.degraded[0][0]
    assert any(number > first for number in advised(study))


def test_a_selection_of_checkpoints_takes_no_advice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/selection.db"
    scrimp.create_selection("c", checkpoints=[1, 2], tasks=["a"], storage=url)
    with pytest.raises(StudyError, match="takes no advice"):
        load_any("c", storage=url).advise({"checkpoint": 1, "task": "a"}, by="ann")


def test_show_lists_the_record_of_each_adviser(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/advice.db"
    study = made(storage=url)
    study.advise([{"x": 0.5, "y": 0.5}, {"x": 0.6, "y": 0.5}], by="ann")
    run(study, 4)
    shown = CliRunner().invoke(app, ["show", "s", "--storage", url], catch_exceptions=False)
    assert "adviser ann: " in shown.output
