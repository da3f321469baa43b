"""Signed studies: a worker with a public key runs only what the owner of the private key signed.

    scrimp key new ann.key           writes ann.key (only its owner can read it) and ann.key.pub

Keys are Ed25519 pairs in files. An option or a variable names the file; variables hold paths, never
keys. A file of public keys may hold several, and a signature by any of them counts. Signing needs
``pip install 'scrimp[signing]'``.

A signature covers everything that a worker takes from the log to run code: how the study began, its
problem with the current space, its method, its plugins, its objective, and the URL of its
checkpoints. It names the identity of the storage and of the study and a revision, so that it counts
nowhere else and a later one replaces it for good:

    statement = [purpose, storage, study, name, revision, digest of what is covered]

The owner signs a plan, never what the log happens to say: `sign` compares the log with the
`OwnersPlan` that this process was started with, and refuses with every difference. What is appended
between the comparison and the signature is not covered, so workers refuse it.

A worker checks before each trial (`SignedOnly.check`). Of the signatures that its keys accept, the
one with the highest revision counts, and what it covers must be what the log says now. Any change
after signing, or a return to an earlier revision, ends the worker before it runs anything.
"""

import binascii
import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import msgspec

from scrimp.errors import ObjectiveError, StudyError
from scrimp.executors.clock import wall_clock
from scrimp.json_values import Json
from scrimp.storage.durable_files import BINARY
from scrimp.study.ledger import Ledger
from scrimp.study.owners_plan import OwnersPlan
from scrimp.study_log.events import Event, Signature, StudyChanged
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.study_log.trial import Trial

if TYPE_CHECKING:  # loading these takes time
    from cryptography.hazmat.primitives.asymmetric import ed25519


PRIVATE = "SCRIMP_PRIVATE_KEY"
"""The variable that names the file of the private key, with which `scrimp run` signs."""

PUBLIC = "SCRIMP_PUBLIC_KEY"
"""The variable that names the file of the public keys, with which workers check signatures."""

END_OF_KEY = "-----END PUBLIC KEY-----"


@dataclass(frozen=True)
class PublicKey:
    """The public key, which checks signatures; ``raw`` is 32 bytes."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """A short name of the key, safe to show."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    def accepts(self, signature: str, statement: bytes) -> bool:
        """True if the owner of the private key signed ``statement``; the signature is hexadecimal."""
        ed25519, _ = _library()
        from cryptography.exceptions import InvalidSignature

        key = ed25519.Ed25519PublicKey.from_public_bytes(self.raw)
        try:
            key.verify(binascii.unhexlify(signature), statement)
        except (InvalidSignature, ValueError):
            return False
        return True


@dataclass(frozen=True)
class PrivateKey:
    """The private key, which signs; never shown, never stored in a study."""

    _key: "ed25519.Ed25519PrivateKey"

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    @property
    def public(self) -> PublicKey:
        """The matching public key."""
        return PublicKey(self._key.public_key().public_bytes_raw())

    def sign(self, statement: bytes) -> str:
        """Return a signature of 64 bytes, for `PublicKey.accepts`."""
        return self._key.sign(statement).hex()


MAX_FILE_BYTES = 1_000_000
"""Bytes of a file of keys; each has about a hundred."""


def new_pair(path: Path) -> PublicKey:
    """Write a new pair: the private key to ``path``, readable by its owner alone, the public key to
    ``path.pub``. Refuse to overwrite a file."""
    ed25519, serialization = _library()
    public_path = path.with_name(path.name + ".pub")
    for taken in (path, public_path):
        if os.path.lexists(taken):
            raise StudyError(
                f"{str(taken)!r} exists already; choose another name, so that no key is lost"
            )
    key = ed25519.Ed25519PrivateKey.generate()
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    flags, made = os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, list[Path]()
    try:
        for place, text, mode in ((path, secret, 0o600), (public_path, public, 0o644)):
            with open(os.open(place, flags, mode), "wb") as file:
                made.append(place)
                file.write(text)
    except OSError:
        # Never a file that someone else made in the meantime.
        for half in made:
            half.unlink()
        raise
    return PrivateKey(key).public


def private_key(path: str | Path) -> PrivateKey:
    """Read a private key from a file that no other user can read."""
    ed25519, serialization = _library()
    text = _read(path, "private key")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if os.name == "posix" and mode & 0o077:
        raise StudyError(
            f"other users can read the private key {str(path)!r} (mode {mode:o}) and may know it;"
            " make a new pair with `scrimp key new`, or, if no one has read it, chmod 600"
            f" {path}"
        )
    try:
        key = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError) as error:
        # A key with a password raises a TypeError.
        raise _unusable(path, f"no usable private key: {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _unusable(path, OTHER_KIND)
    return PrivateKey(key)


def public_keys(path: str | Path) -> tuple[PublicKey, ...]:
    """Read one or several public keys from a file."""
    ed25519, serialization = _library()
    text = _read(path, "public keys")
    found = []
    for block in text.decode("ascii", "replace").split(END_OF_KEY)[:-1]:
        try:
            key = serialization.load_pem_public_key((block.strip() + "\n" + END_OF_KEY).encode())
        except ValueError as error:
            raise _unusable(path, f"a public key that cannot be read: {error}") from None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise _unusable(path, OTHER_KIND)
        found.append(PublicKey(key.public_bytes_raw()))
    if not found:
        raise _unusable(path, "no public key")
    return tuple(found)


def configured(variable: str, given: str | Path | None = None) -> str | None:
    """Return the key file that an option (``given``) or else the variable names; None for neither.
    `StudyError` for an empty name."""
    chosen = os.environ.get(variable) if given is None else str(given)
    if chosen is not None and not chosen.strip():
        raise StudyError(
            f"the name of the key file is empty (the option or {variable}); name a file, or leave"
            " it out"
        )
    return chosen


def trusted_keys(given: str | None = None, private: str | None = None) -> tuple[PublicKey, ...]:
    """Return the public keys that are named, else that of the user's ``private`` key, if named."""
    named, own = configured(PUBLIC, given), configured(PRIVATE, private)
    if named is not None:
        return public_keys(named)
    return () if own is None else (private_key(own).public,)


def signing_key(given: str | None = None) -> PrivateKey | None:
    """Return the private key that an option or the variable names; None for neither."""
    named = configured(PRIVATE, given)
    return None if named is None else private_key(named)


REMEDY = "`scrimp key new FILE` makes a pair: FILE for those who submit, FILE.pub for the workers"
OTHER_KIND = "a key of another kind, and scrimp signs with Ed25519"


def _unusable(path: str | Path, what: str) -> StudyError:
    return StudyError(f"{str(path)!r} contains {what}; {REMEDY}")


def _read(path: str | Path, what: str) -> bytes:
    try:
        # A pipe may never end.
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise _unusable(path, f"no {what}: it is not a plain file")
        with open(path, "rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise StudyError(
            f"cannot read {what} from {str(path)!r}: {error.strerror}; {REMEDY}"
        ) from None
    if len(text) > MAX_FILE_BYTES:
        raise _unusable(path, f"no {what}: it has more than {MAX_FILE_BYTES} bytes")
    return text


def _library() -> tuple[ModuleType, ModuleType]:
    """Import the modules of the library that are needed."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise StudyError(
            f"signing needs the package cryptography ({error}): pip install 'scrimp[signing]'"
        ) from None
    return ed25519, serialization


PURPOSE = "scrimp study, 1"
"""First part of every signed statement, so that it means nothing elsewhere."""


@dataclass
class _Claims:
    """The newest value in the log of all that must be signed, and all signatures, valid or not."""

    problem: Mapping[str, Json] | None = None
    method: Mapping[str, Json] | None = None
    objective: Mapping[str, Json] | None = None
    plugins: tuple[str, ...] | None = None
    checkpoints: str | None = None
    signatures: list[Signature] = field(default_factory=list)
    changes: int = 0


@dataclass(frozen=True)
class _Claimed(Fold[_Claims]):
    kinds = (StudyChanged,)

    def begin(self, problem: Problem) -> _Claims:
        return _Claims()

    def step(self, state: _Claims, event: Event, before: Trial | None, trial: Trial | None) -> None:
        assert isinstance(event, StudyChanged)
        state.changes += 1
        for name in ("problem", "method", "objective", "plugins"):
            if getattr(event, name) is not None:
                setattr(state, name, getattr(event, name))
        if event.placement is not None and event.placement.checkpoints is not None:
            state.checkpoints = event.placement.checkpoints
        elif "checkpoints" in event.lifted:
            state.checkpoints = None
        if event.signature is not None:
            state.signatures.append(event.signature)


CLAIMED = _Claimed()


@dataclass
class SignedOnly:
    """Checks studies of one storage (its identity) against ``keys``; checks again only after a
    change of the study or of the keys.

    ``keys`` may be a function that reads them again, so that a withdrawn key no longer counts.
    """

    storage: str
    keys: Sequence[PublicKey] | Callable[[], Sequence[PublicKey]]
    _checked: tuple[_Claims | None, int, Sequence[PublicKey]] = (None, -1, ())

    def check(self, history: History) -> None:
        """Refuse a study that was not signed, or that was changed after signing."""
        claims = history.derive(CLAIMED)
        keys = self.keys() if callable(self.keys) else self.keys
        seen, changes, trusted = self._checked
        if claims is seen and claims.changes == changes and keys == trusted:
            return
        name = history.created.name
        good = _good(history, self.storage, keys)
        if not good:
            raise ObjectiveError(
                f"study {name!r} {_objection(claims, keys)}, so this worker does not run it; {SIGN}"
            )
        newest = max(signature.revision for signature in good)
        if signed_digest(history) not in {
            signature.digest for signature in good if signature.revision == newest
        }:
            raise ObjectiveError(
                f"study {name!r} was changed after it was signed (revision {newest}): its"
                " objective, space, method or checkpoint URL is not what its owner signed, so this"
                f" worker does not run it. Find out who changed it; {SIGN}"
            )
        self._checked = claims, claims.changes, keys


SIGN = "sign it with `scrimp run` and the private key"


def sign(ledger: Ledger, storage: str, key: PrivateKey, plan: OwnersPlan) -> None:
    """Sign the study, unless it is signed already; `StudyError` if its log differs from ``plan``."""
    history = ledger.refresh()
    differences = plan.differences(history)
    if differences:
        raise StudyError(
            f"study {history.created.name!r} is not signed, because its log differs from your plan:"
            f" {'; '.join(differences)}. Find out who changed it; correct the plan, or use another"
            " name"
        )
    good = _good(history, storage, [key.public])
    newest = max((signature.revision for signature in good), default=0)
    covered = signed_digest(history)
    if any(signature.revision == newest and signature.digest == covered for signature in good):
        return
    signature = Signature(revision=newest + 1, key=key.public.fingerprint, digest=covered)
    value = key.sign(_statement(history, storage, signature))
    signed = msgspec.structs.replace(signature, value=value)
    ledger.append([StudyChanged(signature=signed, time=wall_clock())])


def is_signed(history: History) -> bool:
    """True if the log holds a signature."""
    return bool(history.derive(CLAIMED).signatures)


def signed_digest(history: History) -> str:
    """Return a digest of everything that a signature covers."""
    claims = history.derive(CLAIMED)
    newest = claims.problem, claims.method, claims.objective, claims.plugins, claims.checkpoints
    covered = [history.created, *newest]
    return hashlib.sha256(msgspec.json.encode(covered, order="deterministic")).hexdigest()


def _statement(history: History, storage: str, signature: Signature) -> bytes:
    study = history.identity, history.created.name
    return msgspec.json.encode([PURPOSE, storage, *study, signature.revision, signature.digest])


def _good(history: History, storage: str, keys: Sequence[PublicKey]) -> list[Signature]:
    """Return the signatures for this study of this storage that one of the keys accepts."""
    known = {key.fingerprint: key for key in keys}
    return [
        signature
        for signature in history.derive(CLAIMED).signatures
        if (key := known.get(signature.key)) is not None
        and key.accepts(signature.value, _statement(history, storage, signature))
    ]


def _objection(claims: _Claims, keys: Sequence[PublicKey]) -> str:
    ours = {key.fingerprint for key in keys}
    if any(signature.key in ours for signature in claims.signatures):
        return "has a signature that was made for another study or storage, or forged"
    others = sorted({signature.key for signature in claims.signatures})
    if others:
        return (
            f"was signed with another key ({', '.join(others)[:200]}; this worker trusts"
            f" {', '.join(sorted(ours))})"
        )
    return "has no signature"
