"""What a signature covers, where it counts, and what comes after it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError
from scrimp.executors.command_line import Command
from scrimp.history.events import Enqueued, StudyChanged
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning.objectives import described
from scrimp.tuning.study import Study

pytest.importorskip("cryptography", reason="signing needs it: pip install 'scrimp[signing]'")

from scrimp.history.limits import Placement, Totals
from scrimp.tuning.keys import PrivateKey, new_pair, private_key
from scrimp.tuning.signing import SignedOnly, is_signed, sign

SPACE = scrimp.Space(x=scrimp.Float(0, 1))
TRAIN = described("train:objective")


@pytest.fixture
def key(tmp_path: Path) -> PrivateKey:
    new_pair(tmp_path / "own.key")
    return private_key(tmp_path / "own.key")


@pytest.fixture
def place() -> MemoryStorage:
    return MemoryStorage()


@pytest.fixture
def study(place: MemoryStorage, key: PrivateKey) -> Study:
    """Recorded and signed."""
    made = scrimp.create_study("s", SPACE, method="random", storage=place, seed=0)
    made._ledger.append([StudyChanged(objective=TRAIN)])
    sign(made._ledger, place.identity(), key)
    return made


@pytest.fixture
def check(place: MemoryStorage, key: PrivateKey) -> Callable[[Study], None]:
    """What a worker that has just started does."""
    return lambda study: SignedOnly(place.identity(), [key.public]).check(study.history)


def test_what_was_signed_is_run_and_signed_once(
    study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    check(study)
    length = study.history.length
    sign(study._ledger, place.identity(), key)
    assert study.history.length == length and is_signed(study.history)


WIDER = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Categorical(["--evil", "b"]))
CHANGES = {
    "objective": StudyChanged(objective=described("os:abort")),
    "command": StudyChanged(objective=described(Command("rm -rf /"))),
    "space": StudyChanged(problem=scrimp.history.problem.Problem(WIDER).to_json()),
    "method": StudyChanged(method={"name": "gp", "settings": {}}),
    "no method": StudyChanged(method={}),
    "no objective": StudyChanged(objective={}),
    "plugins": StudyChanged(plugins=("antigravity",)),
    "checkpoints": StudyChanged(placement=Placement(checkpoints="s3://elsewhere/x")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_after_the_signature_are_refused_until_they_are_signed(
    what: str, study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    study._ledger.append([CHANGES[what]])
    with pytest.raises(
        ObjectiveError, match=r"changed after it was signed \(revision 1\).*scrimp run"
    ):
        check(study)
    sign(study._ledger, place.identity(), key)
    check(study)


def test_totals_and_the_queue_need_no_signature(study: Study, check: Any) -> None:
    study._ledger.append(
        [StudyChanged(totals=Totals(n_trials=5), halt="paused"), Enqueued(config={"x": 0.5})]
    )
    check(study)


def test_an_older_revision_cannot_be_put_back(
    study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    old = study.history.events[-1]
    study._ledger.append([StudyChanged(objective=described("train:mended"))])
    sign(study._ledger, place.identity(), key)
    check(study)
    assert isinstance(old, StudyChanged)
    study._ledger.append([StudyChanged(objective=TRAIN, signature=old.signature)])
    with pytest.raises(ObjectiveError, match=r"changed after it was signed \(revision 2\)"):
        check(study)


@pytest.mark.parametrize("elsewhere", ["study", "storage"])
def test_a_signature_counts_for_its_study_in_its_storage(
    elsewhere: str, study: Study, place: MemoryStorage, key: PrivateKey
) -> None:
    """The attacker copies what is signed: into a study made anew, or the whole log into a storage
    of his own."""
    if elsewhere == "study":
        scrimp.delete_study("s", storage=place)
        other: Any = scrimp.create_study("s", SPACE, method="random", storage=place, seed=0)
        other._ledger.append(study._ledger.history.events[1:])
    else:
        place = MemoryStorage()
        other = Study(place.create("s", study._ledger.history.events), Path, place=place)
    with pytest.raises(ObjectiveError, match="another study or storage, or forged"):
        SignedOnly(place.identity(), [key.public]).check(other._ledger.history)


def test_other_keys_forged_and_missing_signatures_are_told_apart(
    study: Study, place: Any, tmp_path: Path
) -> None:
    new_pair(tmp_path / "other.key")
    other = private_key(tmp_path / "other.key").public
    with pytest.raises(ObjectiveError, match=rf"signed with another key .*{other.fingerprint}"):
        SignedOnly(place.identity(), [other]).check(study.history)
    bare = scrimp.create_study("t", SPACE, method="random", storage=place)
    with pytest.raises(ObjectiveError, match="carries no signature"):
        SignedOnly(place.identity(), [other]).check(bare.history)
    bare._ledger.append([StudyChanged(objective={**TRAIN, "signature": "00"})])
    with pytest.raises(ObjectiveError, match="signed with a token"):
        SignedOnly(place.identity(), [other]).check(bare.history)
    event = study.history.events[-1]
    assert isinstance(event, StudyChanged) and event.signature is not None
    for value in ("", "zz", "00" * 64):
        signature = {
            "revision": 9,
            "key": other.fingerprint,
            "digest": event.signature.digest,
            "value": value,
        }
        bare._ledger.append([StudyChanged(signature=type(event.signature)(**signature))])  # type: ignore[arg-type]
    with pytest.raises(ObjectiveError, match="or forged"):
        SignedOnly(place.identity(), [other]).check(bare.history)


def test_a_worker_that_runs_notices_what_is_changed_meanwhile(
    study: Study, place: Any, key: PrivateKey
) -> None:
    from scrimp.tuning.begin_or_join import work
    from scrimp.tuning.run import Run

    seen = []

    def objective(trial: Any) -> float:
        seen.append(trial.params)
        if len(seen) == 2:
            study._ledger.append([CHANGES["space"]])
        return 0.5

    study._ledger.append([StudyChanged(totals=Totals(n_trials=5))])
    with pytest.raises(ObjectiveError, match="changed after it was signed"):
        work(study, Run(objective, signed=SignedOnly(place.identity(), [key.public])))
    assert len(seen) == 2 and not study.history.with_status("running")


def test_the_url_of_checkpoints_is_signed_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    new_pair(tmp_path / "k")
    study = scrimp.create_study(
        "s", SPACE, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    study.tell(study.ask(), 0.5)
    study._change(StudyChanged(placement=Placement(checkpoints=f"file://{tmp_path}/shared")))
    with pytest.raises(scrimp.errors.StudyError, match="left no checkpoint"):
        study.best_checkpoint
    monkeypatch.setenv("SCRIMP_PUBLIC_KEY", str(tmp_path / "k.pub"))
    with pytest.raises(ObjectiveError, match="carries no signature"):
        study.best_checkpoint
