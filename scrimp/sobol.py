"""The Sobol sequence, randomly scrambled: points that fill the unit cube evenly.

The k-th point is the exclusive-or of the direction numbers that the Gray code of k selects.
Direction numbers follow from a primitive polynomial and first values m_1 ... m_s per dimension,

    m_k = 2 a_1 m_(k-1) ^ 4 a_2 m_(k-2) ^ ... ^ 2^s m_(k-s) ^ m_(k-s),      v_k = m_k / 2^k,

here those of Joe and Kuo ("Constructing Sobol sequences with better two-dimensional
projections", 2008) for up to 64 dimensions. Further dimensions are Kronecker sequences k sqrt(p) mod
1, each with its own prime p, randomly shifted: even in every single dimension, and in pairs of
dimensions about as good as random. Scrambling multiplies the binary digits of each
dimension by a random lower triangular matrix and shifts them (Matousek, "On the L2-discrepancy for
anchored boxes", 1998): every point is then uniform in the cube, and together they are as even as
before.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

COORDINATE_BITS = 30
"""Binary digits of a coordinate; the sequence has 2^30 points."""

POLYNOMIALS_AND_FIRST_VALUES = """
3 1, 7 1 3, 11 1 3 1, 13 1 1 1, 19 1 1 3 3, 25 1 3 5 13, 37 1 1 5 5 17, 41 1 1 5 5 5, 47 1 1 7 11 19, 55 1 1 5 1 1,
59 1 1 1 3 11, 61 1 3 5 5 31, 67 1 3 3 9 7 49, 91 1 1 1 15 21 21, 97 1 3 1 13 27 49, 103 1 1 1 15 7 5,
109 1 3 1 15 13 25, 115 1 1 5 5 19 61, 131 1 3 7 11 23 15 103, 137 1 3 7 13 13 15 69, 143 1 1 3 13 7 35 63,
145 1 3 5 9 1 25 53, 157 1 3 1 13 9 35 107, 167 1 3 1 5 27 61 31, 171 1 1 5 11 19 41 61, 185 1 3 5 3 3 13 69,
191 1 1 7 13 1 19 1, 193 1 3 7 5 13 19 59, 203 1 1 3 9 25 29 41, 211 1 3 5 13 23 1 55, 213 1 3 7 3 13 59 17,
229 1 3 1 3 5 53 69, 239 1 1 5 5 23 33 13, 241 1 1 7 7 1 61 123, 247 1 1 7 9 13 61 49, 253 1 3 3 5 3 55 33,
285 1 3 1 15 31 13 49 245, 299 1 3 5 15 31 59 63 97, 301 1 3 1 11 11 11 77 249, 333 1 3 1 11 27 43 71 9,
351 1 1 7 15 21 11 81 45, 355 1 3 7 3 25 31 65 79, 357 1 3 1 1 19 11 3 205, 361 1 1 5 9 19 21 29 157,
369 1 3 7 11 1 33 89 185, 391 1 3 3 3 15 9 79 71, 397 1 3 7 11 15 39 119 27, 425 1 1 3 1 11 31 97 225,
451 1 1 1 3 23 43 57 177, 463 1 3 7 7 17 17 37 71, 487 1 3 1 5 27 63 123 213, 501 1 1 3 5 11 43 53 133,
529 1 3 5 5 29 17 47 173 479, 539 1 3 3 11 3 1 109 9 69, 545 1 1 1 5 17 39 23 5 343, 557 1 3 1 5 25 15 31 103 499,
563 1 1 1 11 11 17 63 105 183, 601 1 1 5 11 9 29 97 231 363, 607 1 1 5 15 19 45 41 7 383,
617 1 3 7 7 31 19 83 137 221, 623 1 1 1 3 23 15 111 223 83, 631 1 1 5 13 31 15 55 25 161,
637 1 1 3 13 25 47 39 87 257
"""
"""For each dimension from the second: the primitive polynomial in binary, then m_1 ... m_s."""


def sobol_points(
    dimension: int, count: int, rng: np.random.Generator | None = None, *, start: int = 0
) -> NDArray[np.float64]:
    """Return points ``start`` to ``start + count - 1`` (count, dimension) of the sequence, in [0, 1).

    Scrambled by ``rng``, if given; equal states give the same sequence. The points are most even if
    ``count`` is a power of two.

    >>> sobol_points(2, 4).tolist()
    [[0.0, 0.0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    """
    number = np.arange(start, start + count, dtype=np.int64)
    directions = _table()[:dimension]
    digits, shift = np.zeros(len(directions), dtype=np.int64), np.zeros(dimension - len(directions))
    if rng is not None:
        directions = _scrambled(directions, rng)
        digits, shift = (
            rng.integers(1 << COORDINATE_BITS, size=digits.shape),
            rng.random(shift.shape),
        )
    gray = number ^ (number >> 1)
    points = np.tile(digits, (count, 1))
    for bit in range(int(gray.max(initial=0)).bit_length()):
        points ^= np.where((gray >> bit & 1)[:, None], directions[:, bit], 0)
    kronecker = (number[:, None] * np.sqrt(_primes(len(shift))) + shift) % 1.0
    return np.hstack([points / float(1 << COORDINATE_BITS), kronecker])


@lru_cache(maxsize=1)
def _table() -> NDArray[np.int64]:
    """Direction numbers (64, COORDINATE_BITS) as whole numbers of COORDINATE_BITS binary digits."""
    table = [[1 << (COORDINATE_BITS - 1 - k) for k in range(COORDINATE_BITS)]]
    for row in POLYNOMIALS_AND_FIRST_VALUES.split(","):
        polynomial, *m = map(int, row.split())
        degree = len(m)
        for k in range(degree, COORDINATE_BITS):
            value = m[k - degree]
            for i in range(1, degree + 1):
                if polynomial >> (degree - i) & 1:
                    value ^= m[k - i] << i
            m.append(value)
        table.append([m[k] << (COORDINATE_BITS - 1 - k) for k in range(COORDINATE_BITS)])
    return np.array(table, dtype=np.int64)


def _scrambled(directions: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Multiply directions (d, COORDINATE_BITS) by random lower triangular matrices, modulo 2."""
    places = np.arange(COORDINATE_BITS - 1, -1, -1)
    # (d, digit, direction), the highest digit first.
    digits = directions[:, None, :] >> places[:, None] & 1
    lower = np.tril(
        rng.integers(2, size=(len(directions), COORDINATE_BITS, COORDINATE_BITS)), -1
    ) + np.eye(COORDINATE_BITS, dtype=np.int64)
    mixed = (lower @ digits) % 2
    return np.asarray(np.sum(mixed << places[:, None], axis=1))


def _primes(count: int) -> list[int]:
    found: list[int] = []
    candidate = 2
    while len(found) < count:
        if all(candidate % prime for prime in found):
            found.append(candidate)
        candidate += 1
    return found
