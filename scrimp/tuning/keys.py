"""Key pairs (Ed25519) for signing what a study evaluates: the private key with those who submit,
the public key with the workers.

    scrimp key new ann.key           writes ann.key (only its owner may read it) and ann.key.pub

Keys are files, named by an option or by a variable; the variables hold paths, never keys. A file of
public keys may hold several: whatever one of their owners signed counts. Needs ``pip install
'scrimp[signing]'``.
"""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from scrimp.errors import StudyError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import ed25519

__all__ = [
    "PRIVATE",
    "PUBLIC",
    "PrivateKey",
    "PublicKey",
    "new_pair",
    "private_key",
    "public_keys",
    "signing",
    "trusted",
]

PRIVATE = "SCRIMP_PRIVATE_KEY"
"""The variable that names the file of the private key: what `scrimp run` records is signed with
it."""

PUBLIC = "SCRIMP_PUBLIC_KEY"
"""The variable that names the file of the public keys: workers then run only what one of their
owners signed."""

END = "-----END PUBLIC KEY-----"


@dataclass(frozen=True)
class PublicKey:
    """What checks a signature; ``raw`` is 32 bytes."""

    raw: bytes

    @property
    def fingerprint(self) -> str:
        """A short name of the key, safe to show."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    def accepts(self, signature: bytes, statement: bytes) -> bool:
        """Whether the owner of the private key signed ``statement``."""
        ed25519, _ = _library()
        from cryptography.exceptions import InvalidSignature

        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, statement)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class PrivateKey:
    """What makes a signature; never shown, never stored in a study."""

    _key: "ed25519.Ed25519PrivateKey"

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.fingerprint})"

    @property
    def public(self) -> PublicKey:
        """Its other half."""
        _, serialization = _library()
        raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
        return PublicKey(bytes(self._key.public_key().public_bytes(*raw)))

    def sign(self, statement: bytes) -> bytes:
        """64 bytes that `PublicKey.accepts` accepts."""
        return bytes(self._key.sign(statement))


def new_pair(path: Path) -> PublicKey:
    """Write a new pair: ``path`` for the private key, readable by its owner alone, and
    ``path.pub``. Nothing is overwritten."""
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
    for place, text, mode in ((path, secret, 0o600), (public_path, public, 0o644)):
        with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(text)
    return PrivateKey(key).public


def private_key(path: str | Path) -> PrivateKey:
    """The key in a file that nobody else may read."""
    ed25519, serialization = _library()
    text = _read(path, "a private key")
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if os.name == "posix" and mode & 0o077:
        raise StudyError(
            f"the private key {str(path)!r} may be read by others (mode {mode:o}), so it may be"
            " known to them; make a new pair with `scrimp key new`, or, if nobody looked, chmod"
            f" 600 {path}"
        )
    try:
        key = serialization.load_pem_private_key(text, None)
    except (ValueError, TypeError) as error:  # with a password it is a TypeError
        raise StudyError(
            f"{str(path)!r} holds no private key that can be used: {error}; {REMEDY}"
        ) from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise StudyError(
            f"{str(path)!r} holds a key of another kind; scrimp signs with Ed25519: {REMEDY}"
        )
    return PrivateKey(key)


def public_keys(path: str | Path) -> tuple[PublicKey, ...]:
    """The keys in a file, one or several."""
    ed25519, serialization = _library()
    text = _read(path, "public keys")
    found = []
    for block in text.decode("ascii", "replace").split(END)[:-1]:
        try:
            key = serialization.load_pem_public_key((block.strip() + "\n" + END).encode())
        except ValueError as error:
            raise StudyError(
                f"{str(path)!r} holds a public key that cannot be read: {error}; {REMEDY}"
            ) from None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise StudyError(
                f"{str(path)!r} holds a key of another kind; scrimp signs with Ed25519: {REMEDY}"
            )
        found.append(
            PublicKey(
                bytes(key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))
            )
        )
    if not found:
        raise StudyError(f"{str(path)!r} holds no public key; {REMEDY}")
    return tuple(found)


def configured(variable: str, given: str | Path | None = None) -> str | None:
    """The file that an option (``given``) or else the variable names; None for neither. One that is
    empty is refused."""
    chosen = os.environ.get(variable) if given is None else str(given)
    if chosen is not None and not chosen.strip():
        raise StudyError(
            f"the key file is named by an empty text (the option or {variable}); name a file, or"
            " leave it out"
        )
    return chosen


def trusted(given: str | None = None) -> tuple[PublicKey, ...]:
    """The public keys that an option or the variable names; else that of the own private key; none
    where nobody named one."""
    named, own = configured(PUBLIC, given), configured(PRIVATE)
    if named is not None:
        return public_keys(named)
    return () if own is None else (private_key(own).public,)


def signing(given: str | None = None) -> PrivateKey | None:
    """The private key that an option or the variable names; None where nobody named one."""
    named = configured(PRIVATE, given)
    return None if named is None else private_key(named)


REMEDY = "`scrimp key new FILE` makes a pair: FILE for those who submit, FILE.pub for the workers"


def _read(path: str | Path, what: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StudyError(
            f"cannot read {what} from {str(path)!r}: {error.strerror}; {REMEDY}"
        ) from None


def _library() -> tuple[ModuleType, ModuleType]:
    """The modules of the library that are needed, loaded where they are."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise StudyError(
            f"signing needs the package cryptography ({error}): pip install 'scrimp[signing]'"
        ) from None
    return ed25519, serialization
