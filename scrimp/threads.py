"""One BLAS thread during a decision; the user's number before and after it.

The matrices of a decision are small: a second thread of BLAS gains nothing, waits for the first by
spinning, and on a busy machine costs ten times the CPU time. A training may need all threads, so
nothing is set at import, and nothing stays set:

    with one_thread():
        decision = policy.decide(history, rng)

In most libraries the number is that of the process. If decisions overlap in several threads, the
one that lowered it restores it when it ends, so the others may finish with the user's number: slower,
with the same result.
"""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread in every loaded BLAS library; calls may be nested and overlap in threads."""
    # The lock keeps another decision from taking this one thread for the user's number.
    with _LOADED.lock:
        controller = _LOADED.controller()
        several = []
        for library in controller.lib_controllers:
            if (library.num_threads or 1) > 1:
                several.append(library.filepath)
        limit = controller.select(filepath=several).limit(limits=1) if several else nullcontext()
    with limit:
        yield


class Library(TypedDict):
    """A BLAS library, as threadpoolctl describes it."""

    filepath: str
    internal_api: str
    version: str | None
    num_threads: int | None


def loaded_libraries() -> "list[Library]":
    """Return the description of each BLAS library in this process, with ``internal_api``, ``version``
    and ``num_threads``."""
    with _LOADED.lock:
        return list(_LOADED.controller().info())


class _Loaded:
    """The BLAS libraries of this process. Finding them takes a millisecond, so it is repeated only
    after imports."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._modules = 0
        self._controller: ThreadpoolController | None = None

    def controller(self) -> "ThreadpoolController":
        """Return the controller of all libraries; the caller holds the lock."""
        if self._controller is None or len(sys.modules) != self._modules:
            from threadpoolctl import ThreadpoolController

            # The warnings are about incompatible OpenMP libraries of other packages.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                self._controller = ThreadpoolController().select(user_api="blas")
            self._modules = len(sys.modules)
        return self._controller


_LOADED = _Loaded()
