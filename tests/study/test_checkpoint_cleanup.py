"""Which checkpoints stay, which go, and what the log says of it."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.executors.checkpoint_folder import CheckpointFolder, remove_trial
from scrimp.executors.clock import wall_clock
from scrimp.study.checkpoint_cleanup import CheckpointCleanup, needless
from scrimp.study.run import Run
from scrimp.study_log.events import BudgetGranted, CheckpointsRemoved, Lost, StudyChanged

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def objective(trial: Any) -> None:
    """Saves 1000 bytes before each report; the value falls with x and with each step."""
    for step in trial.steps():
        (trial.checkpoint_dir / "model").write_bytes(b"m" * 1000)
        if trial.params["x"] > 0.97:
            raise RuntimeError("diverged")
        trial.report(loss=trial.params["x"] + 1 / step)


def study(tmp_path: Path, method: str, **more: Any) -> scrimp.Study:
    return scrimp.create_study(
        "s",
        SPACE,
        metric="loss",
        budget=scrimp.Budget("epoch", 1, 9),
        method=method,
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=3,
        load_if_exists=True,
        **more,
    )


def kept(done: scrimp.Study) -> set[int]:
    return {int(path.name[6:12]) for path in done._checkpoints().glob("trial-*")}


def test_the_best_and_what_may_go_on_stays(tmp_path: Path) -> None:
    done = study(tmp_path, "asha").optimize(objective, n_trials=30)
    paused = {trial.id for trial in done.trials if trial.status == "paused"}
    ended = [trial for trial in done.trials if trial.finished]
    assert len(ended) > 3 and paused and kept(done) == paused | {done.best_trial.id}
    assert done.best_checkpoint.is_dir() and (done.best_checkpoint / "model").stat().st_size == 1000
    removed = [event for event in done.history.events if isinstance(event, CheckpointsRemoved)]
    assert {event.trial for event in removed} == {trial.id for trial in ended} - {
        done.best_trial.id
    }
    assert done.history.freed == sum(event.size for event in removed) >= 1000 * len(removed) > 0


def test_a_larger_total_lets_paused_trials_go_on_from_their_checkpoints(tmp_path: Path) -> None:
    study(tmp_path, "asha").optimize(objective, n_trials=10)
    seen: list[tuple[int, int, bool]] = []

    def watching(trial: Any) -> None:
        seen.append((trial.id, trial.attempt, trial.resumed))
        objective(trial)

    study(tmp_path, "asha").optimize(watching, n_trials=30)
    assert any(number < 10 for number, _, _ in seen)
    assert all(resumed == (attempt > 1) for _, attempt, resumed in seen)


@pytest.mark.parametrize("method", ["sync-sh", "sync-hyperband", "dehb"])
def test_trials_below_a_decided_rung_are_given_up(tmp_path: Path, method: str) -> None:
    """Every trial that is resumed had its checkpoint, and those left out of the next rung have none
    any more."""
    lost: list[int] = []

    def watching(trial: Any) -> None:
        if trial.attempt > 1 and not trial.resumed:
            lost.append(trial.id)
        objective(trial)

    done = study(tmp_path, method).optimize(watching, n_trials=26)
    policy = done._deciding()
    paused = {trial.id for trial in done.trials if trial.status == "paused"}
    undecided = {number for number in paused if policy.may_resume(done.history, number)}
    assert not lost and len(undecided) < len(paused)
    assert kept(done) <= undecided | {done.best_trial.id, done.best("max")[0].id}
    assert done.best_trial.id in kept(done)


def test_a_trial_whose_resume_failed_keeps_its_checkpoint(tmp_path: Path) -> None:
    """It is paused below a decided rung, but it was resumed, and is resumed again."""
    done = study(tmp_path, "sync-sh").optimize(objective, n_trials=12, keep="all")
    policy, everything = done._deciding(), set(range(12))
    trial = next(
        trial
        for trial in done.trials
        if trial.status == "paused" and not policy.may_resume(done.history, trial.id)
    )
    assert trial.id in needless(done.history, policy, "none", everything)
    attempt = trial.attempt + 1
    history = done._ledger.append(
        [
            BudgetGranted(trial=trial.id, budget=9.0, attempt=attempt),
            Lost(trial=trial.id, attempt=attempt, paused=True),
        ]
    )
    assert trial.id not in needless(history, policy, "none", everything)


@pytest.mark.parametrize(("keep", "expected"), [("all", {0, 1, 2, 3, 4, 5}), ("none", set())])
def test_the_user_decides(tmp_path: Path, keep: str, expected: set[int]) -> None:
    done = study(tmp_path, "random").optimize(objective, n_trials=6, keep=keep)
    assert kept(done) == expected and (done.history.freed > 0) == (keep == "none")


def test_what_an_earlier_run_kept_is_collected_by_the_next(tmp_path: Path) -> None:
    study(tmp_path, "random").optimize(objective, n_trials=4, keep="all")
    done = study(tmp_path, "random").optimize(objective, n_trials=5)
    assert kept(done) == {done.best_trial.id}


def test_infeasible_trials_are_not_the_best(tmp_path: Path) -> None:
    def measured(trial: Any) -> dict[str, float]:
        (trial.checkpoint_dir / "model").write_text("m")
        return {"loss": trial.params["x"], "memory": 1 - trial.params["x"]}

    done = scrimp.create_study(
        "c",
        SPACE,
        metric="loss",
        method="random",
        constraints={"memory": scrimp.AtMost(0.5)},
        storage=f"sqlite:///{tmp_path}/c.db",
        seed=0,
    )
    done.optimize(measured, n_trials=12)
    assert kept(done) == {done.best_trial.id} and done.best_params["x"] >= 0.5


def test_a_word_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="keep is 'some'; it must be one of 'best', 'all', 'none'"):
        study(tmp_path, "random").optimize(objective, n_trials=1, keep="some")
    Run(objective, n_trials=1, keep="best").check(study(tmp_path, "random").history)


def test_checkpoints_at_a_url_are_found_and_removed(tmp_path: Path) -> None:
    """What Ray's actors left at the URL that the study records: the best comes here, the rest
    goes."""
    pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'scrimp[ray]'")
    from scrimp.executors.shared_checkpoints import SharedCheckpoints, shared_trials

    url = f"file://{tmp_path}/shared"
    done = study(tmp_path, "random").optimize(objective, n_trials=4, keep="all")
    root = done._checkpoints()
    for trial in done.trials:
        folder = root / f"trial-{trial.id:06d}"
        SharedCheckpoints.of(url, folder).push(CheckpointFolder(folder))
        remove_trial(folder, 1)
    done._change(StudyChanged(placement=Run(objective, ray={"checkpoints": url}).placement))
    elsewhere = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db")
    assert (elsewhere.best_checkpoint / "model").stat().st_size == 1000
    before = shared_trials(url, root)
    elsewhere.optimize(objective, n_trials=5)
    assert shared_trials(url, root) == before, (
        "a run that was not told of the URL removes nothing at one that the log names"
    )
    CheckpointCleanup(
        elsewhere._ledger, elsewhere._deciding(), root, "best", wall_clock, url
    ).collect()
    assert shared_trials(url, root) <= {elsewhere.best_trial.id, done.best(at="max")[0].id}
    assert elsewhere.history.freed >= 3000 and elsewhere.best_checkpoint.is_dir()
