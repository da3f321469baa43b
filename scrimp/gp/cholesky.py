"""Factors of covariance matrices: L L^T = K, with as little added to the diagonal as possible.

LAPACK is called directly and in place, because at n = 50 the usual wrappers cost more than the
arithmetic. Factors are lower triangular, Fortran ordered, and zero above the diagonal.

    factor = cholesky(covariance)              # NumericalError if no jitter is enough
    solve(factor, y), log_determinant(factor), grow(factor, cross, corner)
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from scrimp.errors import NumericalError

Array = NDArray[np.float64]

RELATIVE_JITTERS = (1e-12, 1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
"""Jitters tried after 0, relative to the mean of the diagonal; convention of GP libraries."""

_MAX_SIZE_TO_COPY = 128
"""Up to this size a copy of the matrix costs less than clearing a triangle from Python (measured)."""


def cholesky(matrix: Array, scale: float | None = None) -> Array:
    """Return the lower factor (n, n) of a symmetric matrix, which is left as it is. Jitter is
    relative to ``scale``, by default the mean of the diagonal.

    >>> float(cholesky(np.array([[4.0, 2.0], [2.0, 3.0]]))[1, 0])
    1.0
    """
    return cholesky_in_place(np.array(matrix, order="F", copy=True), scale)


def cholesky_in_place(matrix: Array, scale: float | None = None) -> Array:
    """Return `cholesky` of a Fortran-ordered symmetric matrix, whose memory is reused.

    The upper triangle still holds the matrix after a failure without jitter, so no copy is kept.
    """
    if len(matrix) <= _MAX_SIZE_TO_COPY:
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=0)
        if info == 0 and np.isfinite(factor.diagonal().sum()):
            return np.asarray(factor)
    diagonal = matrix.diagonal().copy()
    factor, info = lapack.dpotrf(matrix, lower=1, clean=0, overwrite_a=1)
    # LAPACK does not report NaN or infinity; both reach the diagonal of their row.
    if info != 0 or not np.isfinite(factor.diagonal().sum()):
        factor = _with_jitter(factor, diagonal, float(diagonal.mean()) if scale is None else scale)
    # In blocks, so that small matrices cost one call.
    for start in range(0, len(factor), 64):
        block = slice(start, start + 64)
        factor[:start, block] = 0.0
        factor[block, block] = np.tril(factor[block, block])
    return np.asarray(factor)


def _with_jitter(matrix: Array, diagonal: Array, scale: float) -> Array:
    """Factorise with the first of `RELATIVE_JITTERS` that works. The matrix is in the upper triangle."""
    if not (np.isfinite(diagonal).all() and np.isfinite(np.triu(matrix, 1)).all()):
        raise NumericalError(
            "the covariance matrix has NaN or infinite entries; check inputs, targets and"
            " hyperparameters for values that are not finite"
        )
    for jitter in RELATIVE_JITTERS:
        trial = np.array(np.triu(matrix, 1).T, order="F")
        np.fill_diagonal(trial, diagonal + jitter * scale)
        factor, info = lapack.dpotrf(trial, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return np.asarray(factor)
    raise NumericalError(
        f"a {len(diagonal)} x {len(diagonal)} covariance matrix is not positive definite even with"
        f" {RELATIVE_JITTERS[-1]:g} x its scale ({scale:.3g}) added to the diagonal; the kernel is not a valid"
        " covariance, or its scale overflowed: check the kernel's formula and bounds"
    )


def log_determinant(factor: Array) -> float:
    """log |K| = 2 sum log L_ii."""
    return 2.0 * float(np.log(factor.diagonal()).sum())


def solve(factor: Array, right: Array) -> Array:
    """K^-1 b for b (n, F)."""
    solution, _ = lapack.dpotrs(factor, right, lower=1)
    return np.asarray(solution)


def solve_lower(factor: Array, right: Array, *, transposed: bool = False) -> Array:
    """L^-1 b or L^-T b for b (n, F)."""
    return np.asarray(blas.dtrsm(1.0, factor, right, lower=1, trans_a=transposed))


def multiply_lower(
    lower: Array, right: Array, *, transposed: bool = False, overwrite: bool = False
) -> Array:
    """L b or L^T b for b (n, F) and L lower triangular, at half the cost of a full product. With
    ``overwrite`` the memory of b may be reused."""
    return np.asarray(
        blas.dtrmm(1.0, lower, right, lower=1, trans_a=transposed, overwrite_b=overwrite)
    )


def inverse_lower(factor: Array) -> Array:
    """The lower triangle of K^-1, zero above the diagonal, Fortran ordered; the factor is kept."""
    inverse, _ = lapack.dpotri(factor, lower=1)
    return np.asarray(inverse)


def inverse_factor(factor: Array) -> Array:
    """L^-1, lower triangular, Fortran ordered."""
    inverse, _ = lapack.dtrtri(factor, lower=1)
    return np.asarray(inverse)


def grow(factor: Array, cross: Array, corner: Array) -> Array:
    """Return the factor of [[K, B], [B^T, C]] from that of K, with B (n, k) and C (k, k): O(n^2 k)
    instead of O((n + k)^3)."""
    old, added = cross.shape
    grown = np.zeros((old + added, old + added), order="F")
    grown[:old, :old] = factor
    below = solve_lower(factor, cross)
    grown[old:, :old] = below.T
    grown[old:, old:] = cholesky(corner - below.T @ below, float(corner.diagonal().mean()))
    return grown


def grow_inverse(inverse: Array, grown: Array) -> Array:
    """Return the inverse of a grown factor from that of the old one:
    [[L, 0], [B, C]]^-1 = [[L^-1, 0], [-C^-1 B L^-1, C^-1]]."""
    old = len(inverse)
    whole = np.zeros_like(grown, order="F")
    whole[:old, :old] = inverse
    whole[old:, old:] = inverse_factor(np.asfortranarray(grown[old:, old:]))
    whole[old:, :old] = -whole[old:, old:] @ (grown[old:, :old] @ inverse)
    return whole
