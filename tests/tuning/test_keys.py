"""Key pairs: made, read, and refused where somebody else may have read them."""

import os
import stat
from pathlib import Path

import pytest

from scrimp.errors import StudyError

pytest.importorskip("cryptography", reason="signing needs it: pip install 'scrimp[signing]'")

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from scrimp.tuning.keys import PRIVATE, PUBLIC, new_pair, private_key, public_keys, signing, trusted


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
    assert not public.accepts(signature, b"what is sayd") and not public.accepts(
        b"", b"what is said"
    )
    raw = ed25519.Ed25519PublicKey.from_public_bytes(public.raw)  # the library itself agrees
    raw.verify(signature, b"what is said")


def test_only_the_owner_may_read_the_private_key(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        new_pair(tmp_path / "k")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(StudyError, match=r"may be read by others \(mode 640\).*chmod 600"):
        private_key(tmp_path / "k")


@pytest.mark.parametrize("taken", ["k", "k.pub"])
def test_no_key_is_overwritten(taken: str, tmp_path: Path) -> None:
    (tmp_path / taken).symlink_to("/nowhere")
    with pytest.raises(StudyError, match="exists already"):
        new_pair(tmp_path / "k")


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
    assert trusted() == () and signing() is None
    ann, bob = (new_pair(tmp_path / name) for name in ("ann", "bob"))
    monkeypatch.setenv(PRIVATE, str(tmp_path / "ann"))
    assert trusted() == (ann,) == (signing().public,)  # type: ignore[union-attr]
    monkeypatch.setenv(PUBLIC, str(tmp_path / "bob.pub"))
    assert trusted() == (bob,) and trusted(str(tmp_path / "ann.pub")) == (ann,)
    for name in (PRIVATE, PUBLIC):
        monkeypatch.setenv(name, " ")
    with pytest.raises(StudyError, match=f"empty.*{PUBLIC}"):
        trusted()
    with pytest.raises(StudyError, match=f"empty.*{PRIVATE}"):
        signing("")
    monkeypatch.delenv(PRIVATE)
    with pytest.raises(StudyError, match="cannot read public keys"):
        trusted(str(tmp_path / "nowhere.pub"))
