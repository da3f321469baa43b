"""Gaussian processes: kernels with gradients, priors, linear algebra, marginal likelihood."""

import numpy as np

# Let the process keep up to about 64 MB that it frees. The C library of Linux returns freed arrays of
# more than 128 kB to the system and fetches them again page by page; at n = 500 that costs more than
# the arithmetic of a kernel matrix. Freeing one block of nearly 32 MB raises both of its thresholds
# for the life of the process (mallopt(3), "dynamic mmap threshold"). The block is never touched, so
# this takes no time and no memory; on other systems it has no effect.
np.empty(31 * 2**20, dtype=np.uint8)
