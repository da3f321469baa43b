"""What a study and a selection have in common: a name, a log that grows, and the method that
decides."""

from scrimp.history.history import History
from scrimp.tuning.ledger import Ledger

__all__ = ["Logged"]


class Logged:
    """Something that is kept in a storage as a log of events."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    @property
    def name(self) -> str:
        """Its name in the storage."""
        return self._ledger.store.name

    @property
    def history(self) -> History:
        """All that happened, as far as anybody appended it."""
        return self._ledger.refresh()

    @property
    def method(self) -> str:
        """The name of the method that decides."""
        return str(self._ledger.history.method.get("name", "unknown"))
