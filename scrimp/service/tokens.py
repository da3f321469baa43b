"""Tokens: who may do what on a server, in a file that only its owner may read.

    tokens = TokenFile(Path("tokens.json"))
    text, token = tokens.make("work", study="team/", name="cluster")
    tokens.grant(text)                     # the Token; None for any other text

A token reads ``scrimp_ID_SECRET``. The file has the scrypt hash of the secret, never the secret. A
verified token is remembered in memory for as long as it stands in the file, so that the slow hash
costs time once. Every request looks at the file's date, so a token is refused from the moment
it is revoked.

    read    see studies
    work    also take part in them: ask, report, tell, leases
    own     also create, change and delete them
"""

import hashlib
import hmac
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, get_args

import msgspec

from scrimp.errors import StudyError
from scrimp.executors.clock import wall_clock
from scrimp.storage.durable_files import flush_folder, open_plain

Role = Literal["read", "work", "own"]
ROLES: tuple[Role, ...] = get_args(Role)
"""From few rights to all; each has those of the ones before."""

VARIABLE = "SCRIMP_TOKENS"
"""The environment variable with the path of the file."""

MAX_FILE_BYTES = 1_000_000
MAX_NAME_CHARACTERS = 200
MAX_WAIT_SECONDS = 5.0

COST = {"n": 2**14, "r": 8, "p": 1}
"""The cost of a hash: 16 MB and about 50 ms, as RFC 7914 recommends for interactive use."""


class Token(msgspec.Struct, frozen=True):
    """The rights of a token: ``role`` in all studies whose names begin with ``study``."""

    id: str
    role: Role
    study: str
    name: str
    created: float
    salt: str
    hash: str

    def may(self, role: Role) -> bool:
        """Return whether the token has the rights of ``role``."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def covers(self, study: str) -> bool:
        """Return whether the token counts for a study."""
        return study.startswith(self.study)


def default_path() -> Path:
    """Return SCRIMP_TOKENS, else the file in this user's folder for settings."""
    given = os.environ.get(VARIABLE)
    settings = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(given or f"{settings}/scrimp/tokens.json").expanduser().absolute()


class TokenFile:
    """The tokens in the file at ``path``, by default that of this user."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_path() if path is None else path.absolute()
        self._date: tuple[int, ...] = ()
        self._tokens: dict[str, Token] = {}
        self._verified: dict[bytes, str] = {}

    def all(self) -> list[Token]:
        """Return all tokens, oldest first."""
        self._refresh()
        return list(self._tokens.values())

    def make(self, role: Role, study: str = "", name: str = "") -> tuple[str, Token]:
        """Make a token; return its text, which is stored nowhere, and its record."""
        if role not in ROLES:
            raise StudyError(f"role is {role!r}; it must be one of {', '.join(ROLES)}")
        if len(name) > MAX_NAME_CHARACTERS or not (name + study).isprintable():
            raise StudyError(
                f"the name {name[:30]!r} or the prefix {study[:30]!r} is not printable, or longer"
                f" than {MAX_NAME_CHARACTERS} characters"
            )
        secret, salt = secrets.token_urlsafe(32), secrets.token_hex(16)
        number = secrets.token_hex(4)
        token = Token(number, role, study, name, wall_clock(), salt, _slow_hash(secret, salt))
        with self._changing() as tokens:
            tokens[token.id] = token
        return f"scrimp_{token.id}_{secret}", token

    def revoke(self, number: str) -> Token:
        """Remove a token; a server refuses it from the next request on."""
        with self._changing() as tokens:
            if number not in tokens:
                known = ", ".join(tokens) or "none"
                raise StudyError(f"there is no token {number!r} in {self.path}; there are {known}")
            return tokens.pop(number)

    def known(self, number: str) -> Token | None:
        """Return the token with this id, unless it was revoked."""
        self._refresh()
        return self._tokens.get(number)

    def remembered(self, text: str) -> Token | None:
        """Return the token of a text that was verified before, without the slow hash."""
        self._refresh()
        number = self._verified.get(hashlib.sha256(text.encode()).digest())
        return None if number is None else self._tokens.get(number)

    def grant(self, text: str) -> Token | None:
        """Return the token of a text, or None. Computes a slow hash."""
        self._refresh()
        word, _, rest = text.partition("_")
        number, _, secret = rest.partition("_")
        token = self._tokens.get(number)
        if token is None or word != "scrimp" or not secret.isascii() or len(secret) > 100:
            return None
        if not hmac.compare_digest(_slow_hash(secret, token.salt), token.hash):
            return None
        self._verified[hashlib.sha256(text.encode()).digest()] = number
        return token

    def _refresh(self) -> None:
        """Read the file again if it has changed."""
        try:
            status = os.stat(self.path)
            date: tuple[int, ...] = (status.st_mtime_ns, status.st_ino, status.st_size)
        except FileNotFoundError:
            date = ()
        if date != self._date:
            before, self._tokens = self._tokens, self._read()
            kept = {number for number, token in self._tokens.items() if before.get(number) == token}
            self._verified = {text: one for text, one in self._verified.items() if one in kept}
            self._date = date

    def _read(self) -> dict[str, Token]:
        try:
            with open_plain(self.path) as file:
                found = msgspec.json.decode(file.read(MAX_FILE_BYTES), type=list[Token])
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError as error:
            raise StudyError(
                f"{self.path} is not a token file ({error}); move it away and make new tokens"
            ) from None
        return {token.id: token for token in found}

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """Yield the tokens for a change, which replaces the file; one process at a time."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".new")
        file = _only_mine(draft)
        try:
            with file:
                tokens = self._read()
                yield tokens
                file.write(msgspec.json.format(msgspec.json.encode(list(tokens.values()))))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        flush_folder(self.path.parent)


def _only_mine(path: Path) -> BinaryIO:
    """Create a file that only its owner may read; wait for another process that has created it."""
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while True:
        try:
            return open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600))
        except FileExistsError:
            if time.monotonic() > deadline:
                raise StudyError(
                    f"{path} has been there for {MAX_WAIT_SECONDS:g} s: another process is changing"
                    " tokens, or was killed while doing so; in that case, remove the file"
                ) from None
            time.sleep(0.05)


def _slow_hash(secret: str, salt: str) -> str:
    """Return the scrypt hash of a secret."""
    return hashlib.scrypt(secret.encode(), salt=bytes.fromhex(salt), **COST).hex()
