"""The battery for storages that outlive a process: `StorageBattery` and what only they can promise."""

import multiprocessing
import pickle

import pytest

from scrimp.errors import Conflict
from scrimp.storage.store import EventStore, Lease, Storage
from scrimp.testing.every_event import EVERY_KIND
from scrimp.testing.storages import StorageBattery, check_race, decide, report_of

__all__ = ["DurableStorageBattery"]


class DurableStorageBattery(StorageBattery):
    """What a storage does that outlives its process."""

    def test_reopened_storage_has_everything(self, storage: Storage, store: EventStore) -> None:
        store.append(EVERY_KIND, decision=0)
        store.lease(Lease(0, 1, "w", "h", 1, 60.0))
        known = storage.identity()
        again = pickle.loads(pickle.dumps(storage))
        storage.close()
        assert again.identity() == known
        reopened = again.open("digits")
        assert again.names() == ["digits"] and reopened.read(1) == EVERY_KIND
        assert len(reopened.leases()) == 1
        with pytest.raises(Conflict):
            reopened.append([report_of(0)], decision=0)
        again.close()

    def test_a_pickled_store_reaches_the_same_study(self, store: EventStore) -> None:
        copy = pickle.loads(pickle.dumps(store))
        copy.append([report_of(0)])
        assert store.read(1) == [report_of(0)] and copy.name == store.name

    @pytest.mark.filterwarnings(
        "ignore:.*fork:DeprecationWarning"
    )  # newer Pythons warn when other threads exist
    @pytest.mark.parametrize("method", ["spawn", "fork"])
    def test_processes_race_for_decisions(
        self, storage: Storage, store: EventStore, method: str
    ) -> None:
        store.append([])  # a connection is open while the processes start
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            won = pool.starmap(
                _decide_in_process, [(store, taker, 12) for taker in range(3)], chunksize=1
            )
        check_race(store.read(), won, 12)


def _decide_in_process(store: EventStore, taker: int, rounds: int) -> list[int]:
    return decide(store, taker, rounds)
