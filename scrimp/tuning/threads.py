"""One thread of linear algebra while a decision is made; the user's number before it and after it.

The matrices of a decision are small: a second thread of BLAS gains nothing, waits for the first by
spinning, and on a busy machine costs ten times the CPU time. A training may well want them all, so
nothing is set at import, and nothing stays set:

    with one_thread():
        decision = policy.decide(history, rng)

In most libraries the number belongs to the process. Of decisions that overlap in several threads,
whichever lowered it brings it back when it ends, so the others may finish with the user's number:
slower, and with the same result.
"""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:  # loaded at the first decision
    from threadpoolctl import ThreadpoolController

__all__ = ["loaded_libraries", "one_thread"]


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for every BLAS library that is loaded by now; may be nested, and may overlap in
    several threads."""
    with _LOADED.lock:  # nobody may take the one thread of a decision for the user's number
        controller = _LOADED.controller()
        several = [
            library.filepath
            for library in controller.lib_controllers
            if (library.num_threads or 1) > 1
        ]
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
    """What is known of each BLAS library in this process, such as ``internal_api``, ``version`` and
    ``num_threads``."""
    with _LOADED.lock:
        return list(_LOADED.controller().info())


class _Loaded:
    """The BLAS libraries of this process. Looking for them takes a millisecond, so it is done again
    only after imports."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._modules = 0
        self._controller: ThreadpoolController | None = None

    def controller(self) -> "ThreadpoolController":
        """All of them; to be called under the lock."""
        if self._controller is None or len(sys.modules) != self._modules:
            from threadpoolctl import ThreadpoolController

            with (
                warnings.catch_warnings()
            ):  # about OpenMP libraries that do not agree: not of our making
                warnings.simplefilter("ignore", RuntimeWarning)
                self._controller = ThreadpoolController().select(user_api="blas")
            self._modules = len(sys.modules)
        return self._controller


_LOADED = _Loaded()
