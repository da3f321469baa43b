"""What pages show is what scrimp show prints."""

from pathlib import Path

import scrimp
from scrimp.dashboard.views import (
    current_record,
    field_of,
    held_trials,
    latest_activity,
    rank_words,
    start_words,
    workers_of,
)
from scrimp.storage.leases import Lease
from scrimp.study_log.record import StudyRecord


def test_the_summary_agrees_with_the_command_line(url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    summary = current_record(study)
    record = StudyRecord.of(study.history).to_json()
    assert (summary.name, summary.metric, summary.method) == (
        record["name"],
        record["metric"],
        record["method"],
    )
    assert (
        summary.best == record["best"]
        and summary.counts == record["counts"]
        and summary.spent == record["spent"]
    )
    assert summary.saved == 1 - (study.history.spent + study.history.repeated) / (
        9 * sum(1 for trial in study.trials if trial.curve)
    )
    assert summary.state == "finished" and summary.unit == "epochs" and summary.total == 60


def test_states() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    study.ask()
    assert current_record(study).state == "running" and current_record(study).saved is None
    study.pause()
    assert (
        current_record(study).state == "paused"
        and current_record(study).limits.totals.budget is None
    )
    study.resume()
    assert current_record(study).state == "running" and current_record(study).unit == "evaluations"
    assert [trial.id for trial in held_trials(study.history)] == [0]


def test_fields_of_forms(url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    assert field_of(study, "lr") == {
        "name": "lr",
        "kind": "float",
        "conditional": False,
        "low": 1e-5,
        "high": 0.1,
        "step": "any",
    }
    assert field_of(study, "kind")["choices"] == ("a", "<b>bold</b>")
    assert field_of(study, "depth")["conditional"] and field_of(study, "depth")["step"] == 1
    stepped = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1, step=0.1), n=scrimp.Int(8, 64, step=8)),
        storage="memory://",
    )
    assert (field_of(stepped, "x")["step"], field_of(stepped, "n")["step"]) == (0.1, 8)


def test_what_happened_lately_is_told_newest_first(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "l",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    first, second, third, fourth = study.ask(count=4)
    for trial, value in ((first, 0.5), (second, 0.25), (third, 0.75)):
        study.report(trial, step=1, error=value)
    study.tell(fourth, state="failed", message="out of memory\nTraceback\nOops")
    assert study.ask().id == second.id
    fresh = study.ask()
    told = [(trial, words) for _, trial, words in latest_activity(study.history)]
    assert told.pop(0) == (fresh.id, "started")
    assert told[:2] == [(1, "promoted to 3 epochs"), (3, "failed: out of memory: Oops")]
    assert told[2:4] == [
        (2, "paused after 1 epoch, error 0.75"),
        (0, "paused after 1 epoch, error 0.5"),
    ]
    assert told[4:] == [(1, "started")] and len(latest_activity(study.history, 2)) == 2


def test_rules_say_in_how_many_trials_they_held() -> None:
    study = scrimp.create_study(
        "c",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        constraints={"gb": scrimp.AtMost(16), "heads": scrimp.Equals(8, 0.5)},
        method="random",
        storage="memory://",
        seed=0,
    )
    for gb, error in ((10.0, 0.5), (20.0, 0.1), (16.0, 0.3)):
        study.tell(study.ask(), {"error": error, "gb": gb, "heads": 8})
    study.ask()
    gb, heads = current_record(study).rules
    assert (gb.words, gb.held, gb.reported, gb.broken) == ("gb at most 16", 2, 3, 1)
    assert (heads.words, heads.held, heads.broken) == ("heads equals 8 ± 0.5", 3, 0)
    assert gb.violated(16.5) and not gb.violated(16.0) and not gb.violated(None)
    assert rank_words(current_record(study), study.trials[0]) == "rank 2 of 2 by its best value"
    assert rank_words(current_record(study), study.trials[3]) == ""


def test_workers_are_those_with_leases_and_those_before(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    study.optimize(lambda trial: 1.0, n_trials=3)
    store = study._ledger.store
    (before,) = workers_of(study.history, study.leases)
    assert (before.trials, before.failed, before.heartbeat, before.running) == (3, 0, None, ())
    store.lease(Lease(7, 1, "away:1", "away", 1, 60.0))
    store.lease(Lease(8, 1, "gone:2", "gone", 2, -5.0))
    away, gone, own = sorted(
        workers_of(study.history, study.leases), key=lambda worker: worker.name != "away:1"
    )
    assert (away.running, away.silent, own.heartbeat) == ((7,), False, None)
    assert away.heartbeat is not None and 0.0 <= away.heartbeat < 30.0
    assert gone.name == "gone:2" and gone.silent


def test_the_command_that_starts_a_worker(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "a b", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    named = "scrimp worker 'a b' --storage sqlite:///x.db --objective module:function"
    assert start_words(study, "sqlite:///x.db") == named
