"""Key pairs: made, read, and refused where somebody else may have read them."""

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError, StudyError
from scrimp.executors.command_line import Command
from scrimp.storage.memory import MemoryStorage
from scrimp.study.owners_plan import OwnersPlan
from scrimp.study.signing import (
    MAX_FILE_BYTES,
    PRIVATE,
    PUBLIC,
    PrivateKey,
    SignedOnly,
    is_signed,
    new_pair,
    private_key,
    public_keys,
    sign,
    signing_key,
    trusted_keys,
)
from scrimp.study.study import Study
from scrimp.study.workers import described
from scrimp.study_log.events import Enqueued, StudyChanged
from scrimp.study_log.limits import Placement, Totals

pytest.importorskip("cryptography", reason="signing needs it: pip install 'scrimp[signing]'")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa


@pytest.fixture(autouse=True)
def _nobody_named_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRIVATE, raising=False)
    monkeypatch.delenv(PUBLIC, raising=False)


def test_a_pair_signs_and_checks(tmp_path: Path) -> None:
    made = new_pair(tmp_path / "ann.key")
    key, (public,) = private_key(tmp_path / "ann.key"), public_keys(tmp_path / "ann.key.pub")
    assert made == key.public == public and public.fingerprint in repr(key)
    signature = key.sign(b"what is said")
    assert public.accepts(signature, b"what is said")
    assert not public.accepts(signature, b"what is sayd")
    assert not public.accepts("", b"what is said")
    raw = ed25519.Ed25519PublicKey.from_public_bytes(public.raw)  # the library itself agrees
    raw.verify(bytes.fromhex(signature), b"what is said")


def test_only_the_owner_may_read_the_private_key(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        new_pair(tmp_path / "k")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(StudyError, match=r"other users can read.*\(mode 640\).*chmod 600"):
        private_key(tmp_path / "k")


@pytest.mark.parametrize("taken", ["k", "k.pub"])
def test_no_key_is_overwritten(taken: str, tmp_path: Path) -> None:
    (tmp_path / taken).symlink_to("/nowhere")
    with pytest.raises(StudyError, match="exists already"):
        new_pair(tmp_path / "k")


@pytest.mark.parametrize("taken", ["k", "k.pub"])
def test_a_key_that_appears_in_the_meantime_stays(
    taken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / taken).write_text("a key")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    with pytest.raises(FileExistsError):
        new_pair(tmp_path / "k")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(taken, "a key")]


def test_a_file_may_hold_the_keys_of_several_people(tmp_path: Path) -> None:
    made = [new_pair(tmp_path / name) for name in ("ann", "bob")]
    both = tmp_path / "team.pub"
    both.write_text(
        "# the team\n" + "".join((tmp_path / f"{name}.pub").read_text() for name in ("ann", "bob"))
    )
    assert list(public_keys(both)) == made


@pytest.mark.parametrize(
    "text", ["", "secret", "-----BEGIN PUBLIC KEY-----\nxx\n-----END PUBLIC KEY-----\n", "\xff"]
)
def test_files_that_hold_no_key_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "k").write_text(text)
    (tmp_path / "k").chmod(0o600)
    for read in (private_key, public_keys):
        with pytest.raises(StudyError, match="scrimp key new"):
            read(tmp_path / "k")  # type: ignore[operator]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices are those of Unix")
def test_pipes_and_endless_files_are_no_keys(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"-" * (MAX_FILE_BYTES + 1))
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "large"):
        with pytest.raises(StudyError, match=r"not a plain file|more than 1000000 bytes"):
            public_keys(path)


@pytest.mark.skipif(sys.platform == "win32", reason="sizes of files are limited as on Unix")
def test_a_pair_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    import resource
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50, hard))
        with pytest.raises(OSError):
            new_pair(tmp_path / "ann.key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert list(tmp_path.iterdir()) == []


def test_keys_of_another_kind_are_refused(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    pem = serialization.Encoding.PEM
    (tmp_path / "k").touch(0o600)
    (tmp_path / "k").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "k.pub").write_bytes(
        key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    with pytest.raises(StudyError, match="Ed25519"):
        private_key(tmp_path / "k")
    with pytest.raises(StudyError, match="Ed25519"):
        public_keys(tmp_path / "k.pub")


def test_options_come_before_variables_and_empty_ones_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trusted_keys() == () and signing_key() is None
    ann, bob = (new_pair(tmp_path / name) for name in ("ann", "bob"))
    monkeypatch.setenv(PRIVATE, str(tmp_path / "ann"))
    assert trusted_keys() == (ann,) == (signing_key().public,)  # type: ignore[union-attr]
    monkeypatch.setenv(PUBLIC, str(tmp_path / "bob.pub"))
    assert trusted_keys() == (bob,) and trusted_keys(str(tmp_path / "ann.pub")) == (ann,)
    for name in (PRIVATE, PUBLIC):
        monkeypatch.setenv(name, " ")
    with pytest.raises(StudyError, match=f"empty.*{PUBLIC}"):
        trusted_keys()
    with pytest.raises(StudyError, match=f"empty.*{PRIVATE}"):
        signing_key("")
    monkeypatch.delenv(PRIVATE)
    with pytest.raises(StudyError, match="cannot read public keys"):
        trusted_keys(str(tmp_path / "nowhere.pub"))


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
    sign(made._ledger, place.identity(), key, plan_of(made))
    return made


def plan_of(study: Study, **changes: Any) -> OwnersPlan:
    """What the owner of the study wants."""
    assert study.plan is not None
    return replace(study.plan, objective=TRAIN, **changes)


@pytest.fixture
def check(place: MemoryStorage, key: PrivateKey) -> Callable[[Study], None]:
    """What a worker that has just started does."""
    return lambda study: SignedOnly(place.identity(), [key.public]).check(study.history)


def test_what_was_signed_is_run_and_signed_once(
    study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    check(study)
    length = study.history.length
    sign(study._ledger, place.identity(), key, plan_of(study))
    assert study.history.length == length and is_signed(study.history)


WIDER = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Categorical(["--evil", "b"]))
CHANGES = {
    "objective": StudyChanged(objective=described("os:abort")),
    "command": StudyChanged(objective=described(Command("rm -rf /"))),
    "space": StudyChanged(problem=scrimp.study_log.problem.Problem(WIDER).to_json()),
    "method": StudyChanged(method={"name": "gp", "settings": {}}),
    "no method": StudyChanged(method={}),
    "no objective": StudyChanged(objective={}),
    "plugins": StudyChanged(plugins=("antigravity",)),
    "checkpoints": StudyChanged(placement=Placement(checkpoints="s3://elsewhere/x")),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changes_after_the_signature_are_refused_and_cannot_be_signed(
    what: str, study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    study._ledger.append([CHANGES[what]])
    with pytest.raises(
        ObjectiveError, match=r"changed after it was signed \(revision 1\).*scrimp run"
    ):
        check(study)
    named = {"command": "objective", "no method": "method", "no objective": "objective"}
    length = study.history.length
    with pytest.raises(StudyError, match=rf"differs from your plan: {named.get(what, what)} is "):
        sign(study._ledger, place.identity(), key, plan_of(study))
    assert study.history.length == length
    changed = replace(OwnersPlan.recorded(study.history), seeded=True)
    sign(study._ledger, place.identity(), key, changed)
    check(study)


def test_a_checkpoint_url_that_is_taken_away_after_the_signature_is_a_change(
    study: Study, place: Any, key: PrivateKey, check: Any
) -> None:
    study._ledger.append([CHANGES["checkpoints"]])
    owners = replace(OwnersPlan.recorded(study.history), seeded=True)
    sign(study._ledger, place.identity(), key, owners)
    check(study)
    study._ledger.append([StudyChanged(lifted=("checkpoints",))])
    with pytest.raises(ObjectiveError, match=r"changed after it was signed \(revision 2\)"):
        check(study)


def test_every_difference_between_log_and_plan_is_named(
    study: Study, place: Any, key: PrivateKey
) -> None:
    study._ledger.append([CHANGES["objective"], CHANGES["plugins"], CHANGES["checkpoints"]])
    with pytest.raises(StudyError) as refused:
        sign(study._ledger, place.identity(), key, plan_of(study))
    for words in ("os:abort", "train:objective", "antigravity", "s3://elsewhere/x", "who changed"):
        assert words in str(refused.value)


def test_what_is_appended_while_the_owner_signs_is_not_covered(
    study: Study, place: Any, key: PrivateKey, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attacker appends his command between the comparison and the signature."""
    study._ledger.append([StudyChanged(objective=described("train:fixed"))])
    attacker = scrimp.load_study("s", storage=place)
    signs = PrivateKey.sign

    def raced(own: PrivateKey, statement: bytes) -> bytes:
        attacker._ledger.append([CHANGES["command"]])
        return signs(own, statement)

    monkeypatch.setattr(PrivateKey, "sign", raced)
    plan = replace(plan_of(study), objective=described("train:fixed"))
    sign(study._ledger, place.identity(), key, plan)
    with pytest.raises(ObjectiveError, match=r"changed after it was signed \(revision 2\)"):
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
    study._ledger.append([StudyChanged(objective=described("train:fixed"))])
    plan = replace(plan_of(study), objective=described("train:fixed"))
    sign(study._ledger, place.identity(), key, plan)
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
    with pytest.raises(ObjectiveError, match="has no signature"):
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
    from scrimp.study.run import Run
    from scrimp.study.workers import work

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
    with pytest.raises(ObjectiveError, match="has no signature"):
        study.best_checkpoint


def test_optimize_signs_a_plan_or_what_was_signed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_pair(tmp_path / "k")
    monkeypatch.setenv(PRIVATE, str(tmp_path / "k"))
    storage = f"sqlite:///{tmp_path}/s.db"

    def opened() -> Study:
        return scrimp.create_study(
            "s", SPACE, method="random", storage=storage, seed=0, load_if_exists=True
        )

    opened()
    with pytest.raises(StudyError, match=r"cannot be signed.*create_study"):
        scrimp.load_study("s", storage=storage).optimize(
            lambda trial: 0.5, n_trials=1, durable="log"
        )
    opened().optimize(lambda trial: 0.5, n_trials=1, durable="log")
    study = scrimp.load_study("s", storage=storage)
    assert is_signed(study.history)
    study.optimize(lambda trial: 0.5, n_trials=2, durable="all")
    study._ledger.append([CHANGES["checkpoints"]])
    for tampered in (opened, lambda: scrimp.load_study("s", storage=storage)):
        with pytest.raises(StudyError, match=r"s3://elsewhere|cannot be signed"):
            tampered().optimize(lambda trial: 0.5, n_trials=3, durable="log")
    assert len(study.history.trials) == 2


def test_a_key_that_is_withdrawn_counts_no_longer(
    study: Study, place: Any, key: PrivateKey
) -> None:
    keys = [key.public]
    signed = SignedOnly(place.identity(), lambda: tuple(keys))
    signed.check(study.history)
    keys.clear()
    with pytest.raises(ObjectiveError, match="signed with another key"):
        signed.check(study.history)
