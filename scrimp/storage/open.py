"""Storages by URL.

memory://                 private to this process, gone when it ends
sqlite:///scrimp.db       a file, relative to the current folder; sqlite:////tmp/scrimp.db is absolute
journal:///studies        a folder on a network file system, for clusters without a server
postgresql://ann@db/hpo   a database; password, port and options as PostgreSQL writes them
https://host/team         a server (`scrimp serve`); the token is in SCRIMP_TOKEN; http:// without TLS
"""

import re
import sys
from collections.abc import Callable

from scrimp.checks import nearest_name
from scrimp.errors import AddressError, StorageError
from scrimp.plugins.catalog import Catalog
from scrimp.storage.durable_files import fill_standard_streams
from scrimp.storage.memory import MemoryStorage
from scrimp.storage.sqlite import SqliteStorage
from scrimp.storage.store import Storage

Opener = Callable[[str, str, str], Storage]
"""A function (the URL, the part after ``scheme://``, the URL without secrets) -> the storage. It
connects to nothing."""


def open_storage(url: str) -> Storage:
    """Return the storage at ``url``. It connects at its first use and creates nothing before the
    first study.

        >>> open_storage("memory://").url
        'memory://'
    """
    fill_standard_streams()
    shown = without_secrets(str(url))
    if not isinstance(url, str) or "://" not in url:
        name = shown.removeprefix("sqlite:").strip("/") if isinstance(url, str) else ""
        example = name or "scrimp.db"
        raise AddressError(f"storage is {shown!r}, which is not a URL; write sqlite:///{example}")
    scheme, _, rest = url.partition("://")
    opener = SCHEMES.find(scheme)
    if opener is None:
        near = nearest_name(scheme, SCHEMES)
        hint = f"; did you mean {near}://?" if near else ""
        raise AddressError(
            f"storage {shown!r} has scheme {scheme!r}; the valid ones are"
            f" {', '.join(SCHEMES)}{hint}"
        )
    return opener(url, rest, shown)


def register_storage(scheme: str, opener: Opener) -> None:
    """Register a storage for URLs ``scheme://...``; `AddressError` when the scheme is taken."""
    SCHEMES.add(scheme, opener)


def without_secrets(url: str) -> str:
    """Return ``url`` without password and options, so that it can be shown.

    >>> without_secrets("postgresql://ann:secret@db.example/hpo?sslpassword=x")
    'postgresql://ann@db.example/hpo'
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        # The options of libpq, which some take for a URL.
        scheme, rest = "", re.sub("(?i)password *=.*", "password=…", url, flags=re.DOTALL)
    # The last @ separates them: a password may contain others.
    user, at, place = rest.rpartition("@")
    if user and scheme.lower() in ("http", "https"):
        # A token; or one in an option, in which case the rest is a part of it.
        user, place = "…", "…" if "?" in user or "#" in user else place
    if "?" in user:
        # The @ belongs to an option, or the ? to a password: only the first word is safe to show.
        return scheme + separator + re.split("[:@/?]", user)[0] + "@…"
    return scheme + separator + user.partition(":")[0] + at + place.partition("?")[0]


def _memory(url: str, rest: str, shown: str) -> Storage:
    if rest:
        raise AddressError(
            f"storage {shown!r} has a name; write memory:// alone, since it is private to this"
            " process"
        )
    return MemoryStorage()


def _sqlite(url: str, rest: str, shown: str) -> Storage:
    path = rest.removeprefix("/")
    if path == rest or not path or path == ":memory:":
        name = shown.removeprefix("sqlite://").strip("/")
        example = name if name and name != ":memory:" else "scrimp.db"
        raise AddressError(
            f"storage {shown!r} names no file; write sqlite:///{example} (relative),"
            " sqlite:////data/scrimp.db (absolute), or memory:// for a study that need not last"
        )
    return SqliteStorage(path)


def _journal(url: str, rest: str, shown: str) -> Storage:
    path = rest.removeprefix("/")
    if path == rest or not path:
        raise AddressError(
            f"storage {shown!r} names no folder; write journal:///studies or"
            " journal:////shared/studies"
        )
    if sys.platform == "win32":
        raise AddressError(
            f"storage {shown!r}: journal folders need Linux or macOS; on Windows use"
            " sqlite:///scrimp.db, or postgresql:// for several machines"
        )
    from scrimp.storage.journal import JournalStorage

    return JournalStorage(path)


def _postgres(url: str, rest: str, shown: str) -> Storage:
    try:
        from scrimp.storage.postgres import PostgresStorage
    except ImportError as error:
        raise StorageError(
            f"storage {shown!r} needs psycopg ({error}): pip install 'scrimp[postgres]'"
        ) from error
    return PostgresStorage(url, shown)


def _http(url: str, rest: str, shown: str) -> Storage:
    from scrimp.storage.http import HttpStorage

    return HttpStorage(url)


SCHEMES: Catalog[Opener] = Catalog(
    "scheme of storages",
    {
        "memory": _memory,
        "sqlite": _sqlite,
        "postgresql": _postgres,
        "journal": _journal,
        "http": _http,
        "https": _http,
    },
    AddressError,
)
