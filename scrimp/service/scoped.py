"""The studies that a token counts for, as a storage: others do not exist in it."""

from collections.abc import Sequence

from scrimp.storage.event_json import Appended
from scrimp.storage.store import EventStore, Storage, unknown_study


class ScopedStorage(Storage):
    """The studies of a storage whose names begin with ``prefix``."""

    def __init__(self, inner: Storage, prefix: str) -> None:
        self.url, self.path = inner.url, inner.path
        self._inner = inner
        self._prefix = prefix

    def create(self, name: str, events: Sequence[Appended]) -> EventStore:
        self._check(name)
        return self._inner.create(name, events)

    def open(self, name: str) -> EventStore:
        self._check(name)
        return self._inner.open(name)

    def names(self) -> list[str]:
        return [name for name in self._inner.names() if name.startswith(self._prefix)]

    def delete(self, name: str) -> None:
        self._check(name)
        self._inner.delete(name)

    def keep(self, key: str, text: str) -> None:
        self._inner.keep(key, text)

    def kept(self, key: str) -> str | None:
        return self._inner.kept(key)

    def identity(self) -> str:
        return self._inner.identity()

    def close(self) -> None:
        self._inner.close()

    def _check(self, name: str) -> None:
        if not name.startswith(self._prefix):
            raise unknown_study(name, self.names(), self.url)
