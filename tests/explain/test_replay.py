"""Every decision follows from the log it saw; a decision that does not is found."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import scrimp
from scrimp.explain.replay import other_versions, replay
from scrimp.study_log.events import BudgetGranted, Decided, Event, StudyCreated, TrialAdded

SPACE = scrimp.Space(
    lr=scrimp.Float(1e-4, 1.0, log=True),
    layers=scrimp.Int(1, 6),
    kind=scrimp.Categorical(["a", "b", "c"]),
)


def run(method: str, budget: scrimp.Budget | None = None, trials: int = 12) -> list[Event]:
    study = scrimp.create_study(
        "s", SPACE, metric="loss", method=method, budget=budget, storage="memory://", seed=4
    )
    study.enqueue({"lr": 0.1, "layers": 2, "kind": "b"})

    def objective(trial: Any) -> None:
        for step in trial.steps():
            trial.report(loss=abs(trial.params["lr"] - 0.01) + trial.params["layers"] / step)
            if trial.id == 5:
                raise RuntimeError("diverged")

    study.optimize(objective, n_trials=trials)
    return list(study.history.events)


@pytest.mark.parametrize(
    "method", ["random", "sobol", "tpe", "gp", "gp:mcmc=true", "gp:acquisition=thompson"]
)
def test_single_fidelity_methods_replay(method: str) -> None:
    outcomes = list(replay(run(method, trials=9 if "mcmc" in method else 12)))
    assert [outcome.decision for outcome in outcomes] == list(range(len(outcomes)))
    assert not [outcome for outcome in outcomes if not outcome.same]


@pytest.mark.parametrize(
    "method", ["asha", "asha-stopping", "hyperband", "bohb", "sync-hyperband", "dehb", "median"]
)
def test_multi_fidelity_methods_replay(method: str) -> None:
    outcomes = list(replay(run(method, scrimp.Budget("epoch", 1, 9), trials=20)))
    assert len(outcomes) >= 20 and all(outcome.same for outcome in outcomes)


def test_a_study_of_several_processes_replays(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, method="gp", storage=url, seed=1)
    study.optimize(lambda trial: trial.params["lr"], n_trials=12, workers=2)
    assert all(outcome.same for outcome in replay(study.history.events))


def changed(events: list[Event], place: int, **fields: Any) -> list[Event]:
    return [*events[:place], msgspec.structs.replace(events[place], **fields), *events[place + 1 :]]


def test_forged_decisions_are_found() -> None:
    events = run("gp")
    added = max(place for place, event in enumerate(events) if isinstance(event, TrialAdded))
    config = dict(events[added].config)  # type: ignore[union-attr]
    forged = changed(events, added, config={**config, "layers": 1 + config["layers"] % 6})
    outcome = list(replay(forged))[-1]
    assert not outcome.same and "layers was" in outcome.difference
    moved = changed(events, added, config={**config, "lr": config["lr"] * 1.01})
    assert "lr was" in list(replay(moved))[-1].difference
    rounded = changed(events, added, config={**config, "lr": config["lr"] * (1 + 1e-7)})
    assert list(replay(rounded))[-1].same  # within a millionth of the range


def test_a_forged_budget_is_found() -> None:
    events = run("asha", scrimp.Budget("epoch", 1, 9), trials=10)
    granted = max(place for place, event in enumerate(events) if isinstance(event, BudgetGranted))
    forged = changed(events, granted, budget=7.0)
    assert any("budget was 7" in outcome.difference for outcome in replay(forged))


def test_a_decision_without_action_is_found() -> None:
    events = run("random", trials=3)
    last = max(place for place, event in enumerate(events) if isinstance(event, Decided))
    assert "no action" in list(replay(events[: last + 1]))[-1].difference


def test_other_versions_are_told() -> None:
    events = run("random", trials=1)
    assert other_versions(events) == []
    assert isinstance(events[0], StudyCreated)
    old = changed(events, 0, versions={"scrimp": "0.0.1", "numpy": events[0].versions["numpy"]})
    assert other_versions(old) == [f"scrimp 0.0.1 then, {events[0].versions['scrimp']} now"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tag": {"bracket": 1}}, "the tag was {'bracket': 1} and would be {}"),
        ({"continue_from": 0}, "it continued trial 0 and would continue None"),
    ],
)
def test_a_forged_tag_or_parent_is_found(fields: dict[str, Any], words: str) -> None:
    events = run("random", trials=4)
    added = max(place for place, event in enumerate(events) if isinstance(event, TrialAdded))
    *before, last = replay(changed(events, added, **fields))
    assert all(outcome.same for outcome in before) and last.difference == words
