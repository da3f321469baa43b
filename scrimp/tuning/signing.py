"""Signed studies: a worker with a public key runs only what the owner of the private key vouched
for.

A signature covers everything that a worker takes from the log to run code: how the study began, its
problem with the space as it is now, its method, its plugins, its objective, and the URL of its
checkpoints. It names the identity of the storage and of the study and a revision, so that it counts
nowhere else, and a later one takes its place for good:

    statement = [purpose, storage, study, name, revision, digest of what is covered]

A worker asks before each trial (`SignedOnly.check`). Of the signatures that its keys accept, the
highest revision counts, and what it covers must be what the log says now. Whatever was changed
afterwards, by whomever, or put back to an earlier revision, ends the worker before anything of it
is run.
"""

import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from scrimp.errors import ObjectiveError
from scrimp.executors.clock import wall_clock
from scrimp.history.events import Event, Signature, StudyChanged
from scrimp.history.history import Fold, History
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.json_values import Json
from scrimp.tuning.keys import PrivateKey, PublicKey
from scrimp.tuning.ledger import Ledger

__all__ = ["SignedOnly", "is_signed", "sign"]

PURPOSE = "scrimp study, 1"


@dataclass
class _Claims:
    """What the log says now of the things that must be signed, as it stands there, and all
    signatures, valid or not."""

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
            if getattr(event, name) is not None:  # an empty one counts as well
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
    """Checks the study of one storage (its identity) against ``keys``; looks anew only after
    something was changed."""

    storage: str
    keys: Sequence[PublicKey]
    _checked: tuple[_Claims | None, int] = (None, -1)

    def check(self, history: History) -> None:
        """Refuse a study that says something nobody signed, or something that was signed once and
        replaced."""
        claims = history.derive(CLAIMED)
        seen, changes = self._checked
        if claims is seen and claims.changes == changes:
            return
        name = history.created.name
        good = _good(history, self.storage, self.keys)
        if not good:
            raise ObjectiveError(
                f"study {name!r} {_reproach(claims, self.keys)}, so this worker does not run it;"
                f" {SIGN}"
            )
        newest = max(signature.revision for signature in good)
        if signed_digest(history) not in {
            signature.digest for signature in good if signature.revision == newest
        }:
            raise ObjectiveError(
                f"study {name!r} was changed after it was signed (revision {newest}): its"
                " objective, space, method or checkpoint URL is not what its owner vouched for, so"
                f" this worker does not run it. Look who did that; {SIGN}"
            )
        self._checked = claims, claims.changes


SIGN = "record it with `scrimp run` and the private key, or name what to run with --objective"


def sign(ledger: Ledger, storage: str, key: PrivateKey) -> None:
    """Vouch for the study as it is now, unless that was done already."""
    history = ledger.refresh()
    good = _good(history, storage, [key.public])
    newest = max((signature.revision for signature in good), default=0)
    covered = signed_digest(history)
    if any(signature.revision == newest and signature.digest == covered for signature in good):
        return
    signature = Signature(revision=newest + 1, key=key.public.fingerprint, digest=covered)
    value = key.sign(_statement(history, storage, signature)).hex()
    ledger.append(
        [StudyChanged(signature=msgspec.structs.replace(signature, value=value), time=wall_clock())]
    )


def is_signed(history: History) -> bool:
    """Whether anybody ever signed it, under this scheme."""
    return bool(history.derive(CLAIMED).signatures)


def signed_digest(history: History) -> str:
    """A fingerprint of all that a signature covers."""
    claims = history.derive(CLAIMED)
    covered = [
        history.created,
        claims.problem,
        claims.method,
        claims.objective,
        claims.plugins,
        claims.checkpoints,
    ]
    return hashlib.sha256(msgspec.json.encode(covered, order="deterministic")).hexdigest()


def _statement(history: History, storage: str, signature: Signature) -> bytes:
    told = [
        PURPOSE,
        storage,
        history.identity,
        history.created.name,
        signature.revision,
        signature.digest,
    ]
    return msgspec.json.encode(told)


def _good(history: History, storage: str, keys: Sequence[PublicKey]) -> list[Signature]:
    """The signatures for this study of this storage that one of the keys accepts."""
    found = []
    for signature in history.derive(CLAIMED).signatures:
        for key in keys:
            if key.fingerprint == signature.key and key.accepts(
                _bytes(signature.value), _statement(history, storage, signature)
            ):
                found.append(signature)
    return found


def _bytes(text: str) -> bytes:
    try:
        return binascii.unhexlify(text)
    except ValueError:
        return b""


def _reproach(claims: _Claims, keys: Sequence[PublicKey]) -> str:
    ours = {key.fingerprint for key in keys}
    if any(signature.key in ours for signature in claims.signatures):
        return "carries a signature that was made for another study or storage, or forged"
    others = sorted({signature.key for signature in claims.signatures})
    if others:
        return (
            f"was signed with another key ({', '.join(others)[:200]}; this worker trusts"
            f" {', '.join(sorted(ours))})"
        )
    if claims.objective is not None and "signature" in claims.objective:
        return "was signed with a token, a scheme that is no longer trusted"
    return "carries no signature"
