"""One call that makes repeated work on large matrices cheap.

The C library of Linux hands freed arrays of more than 128 kB back to the system and fetches them
anew, page by page: at n = 500 that costs more than the arithmetic of a kernel matrix. Freeing one
block of nearly 32 MB raises both of its thresholds for the life of the process (mallopt(3),
"dynamic mmap threshold"), so that freed memory is used again. The block is never touched, so this
takes no time and no memory; elsewhere it does nothing.
"""

import numpy as np

__all__ = ["keep_freed_memory"]


def keep_freed_memory() -> None:
    """Let the process keep what it frees, up to about 64 MB. Results do not depend on it."""
    np.empty(31 * 2**20, dtype=np.uint8)
