"""Solving with a product of a matrix over configurations and a few directions of time, plus a block for each configuration.

The prior of the directions z (n, q) is Kx for each of the q. Configuration i has seen y~_i = B_i^T z_i + N(0, I), B_i (q, q). The
posterior mean of z is

    e = K w,    w = B S^-1 y~,    S = I + B^T K B,    K = Kx x I_q

S is positive definite with eigenvalues of at least 1, and of size n q: the covariance of all observations is never formed. Up to
`DIRECT` rows S is factorised; beyond that systems are solved together by conjugate gradients, each product with S being one
product with Kx, preconditioned by the same expression for a pivoted Cholesky factor of Kx.

Lin, Ament, Balandat, Bakshy, Scaling Gaussian Processes for Learning Curve Prediction via Latent Kronecker Structure, 2024, work
with all m times instead of q directions. Preconditioner: Gardner et al., GPyTorch, 2018.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from scrimp.errors import NumericalError
from scrimp.gp.cholesky import cholesky_in_place, log_determinant, solve

__all__ = ["DIRECT", "BlockSystem", "pivoted_cholesky"]

Array = NDArray[np.float64]

DIRECT = 4000
"""Up to this many unknowns the system is factorised."""


@dataclass(frozen=True, eq=False)
class BlockSystem:
    """Kx (n, n) and the roots B of the blocks, (n, q, q).

    ``direct``: unknowns up to which S is factorised. ``rank``: of the preconditioner. ``tolerance``: of conjugate gradients,
    relative to the right side.
    """

    covariance: Array
    roots: Array
    direct: int = DIRECT
    rank: int = 400
    tolerance: float = 1e-8
    iterations: int = 500

    @property
    def size(self) -> int:
        """The number of unknowns n q."""
        return int(self.roots.shape[0] * self.roots.shape[1])

    def product(self, z: Array) -> Array:
        """K z for z (n, q, c)."""
        n, q, count = z.shape
        return np.asarray((self.covariance @ z.reshape(n, q * count)).reshape(n, q, count))

    def weights(self, seen: Array) -> Array:
        """w = B S^-1 y~ for y~ (n, q, c)."""
        return np.asarray(self.roots @ self._solve(seen))

    @cached_property
    def _factor(self) -> Array:
        """The Cholesky factor of S."""
        n, q, _ = self.roots.shape
        whole = np.einsum("iab,ij,jac->ibjc", self.roots, self.covariance, self.roots, optimize=True)
        matrix = np.asfortranarray(whole.reshape(n * q, n * q))
        matrix.flat[:: n * q + 1] += 1.0
        return cholesky_in_place(matrix)

    def _solve(self, right: Array) -> Array:
        """S^-1 b for b (n, q, c)."""
        n, q, count = right.shape
        if self.size <= self.direct:
            return solve(self._factor, np.asfortranarray(right.reshape(n * q, count))).reshape(n, q, count)
        return self._conjugate_gradients(right)

    def _times(self, v: Array) -> Array:
        """S v for v (n, q, c)."""
        return v + self.roots.transpose(0, 2, 1) @ self.product(self.roots @ v)

    def _conjugate_gradients(self, right: Array) -> Array:
        """Every column by itself, all in one product; columns that have converged stand still."""
        x, residual = np.zeros_like(right), right.copy()
        bound = self.tolerance * np.sqrt((right**2).sum((0, 1)))
        direction = z = self._precondition(residual)
        inner = (residual * z).sum((0, 1))
        for _ in range(self.iterations):
            active = np.sqrt((residual**2).sum((0, 1))) > bound
            if not active.any():
                return x
            image = self._times(direction)
            curvature = (direction * image).sum((0, 1))
            step = np.where(active & (curvature > 0.0), inner / np.where(curvature > 0.0, curvature, 1.0), 0.0)
            x += step * direction
            residual -= step * image
            z = self._precondition(residual)
            former, inner = inner, (residual * z).sum((0, 1))
            direction = z + np.where(active, inner / np.where(former > 0.0, former, 1.0), 0.0) * direction
        raise NumericalError(
            f"conjugate gradients did not reach {self.tolerance:g} in {self.iterations} steps for {self.size} unknowns; "
            "the noise may be too small for the data: raise its lower bound, or fit anew"
        )

    @cached_property
    def _low_rank(self) -> tuple[Array, Array]:
        """F (n, k) with Kx close to F F^T, and the factor of I + V^T V, V = B^T (F x I_q)."""
        q = self.roots.shape[1]
        factor = pivoted_cholesky(self.covariance, min(self.rank, len(self.covariance)))
        k = factor.shape[1]
        alike, group = np.unique(self.roots.reshape(len(self.roots), -1), axis=0, return_inverse=True)
        gram = np.zeros((k, q, k, q))
        for number in range(len(alike)):
            rows = np.flatnonzero(group.ravel() == number)
            gram += np.multiply.outer(
                factor[rows].T @ factor[rows], self.roots[rows[0]] @ self.roots[rows[0]].T
            ).transpose(0, 2, 1, 3)
        matrix = np.asfortranarray(gram.reshape(k * q, k * q))
        matrix.flat[:: k * q + 1] += 1.0
        return factor, cholesky_in_place(matrix)

    def _precondition(self, v: Array) -> Array:
        """(I + V V^T)^-1 v = v - V (I + V^T V)^-1 V^T v."""
        factor, inner = self._low_rank
        n, q, count = v.shape
        k = factor.shape[1]
        projected = factor.T @ (self.roots @ v).reshape(n, q * count)
        solved = solve(inner, np.asfortranarray(projected.reshape(k * q, count))).reshape(k, q * count)
        back = (factor @ solved).reshape(n, q, count)
        return np.asarray(v - self.roots.transpose(0, 2, 1) @ back)

    def log_determinant(self, probes: int, rng: np.random.Generator) -> tuple[float, float]:
        """log |S| and its standard error: 0 where S is factorised, else by stochastic Lanczos quadrature.

        Ubaru, Chen, Saad, Fast Estimation of tr(f(A)) via Stochastic Lanczos Quadrature, 2017.
        """
        if self.size <= self.direct:
            return log_determinant(self._factor), 0.0
        n, q, _ = self.roots.shape
        start = rng.choice([-1.0, 1.0], size=(n, q, probes))
        estimates = self.size * self._quadrature(start / np.sqrt(self.size))
        return float(estimates.mean()), float(estimates.std(ddof=1) / np.sqrt(probes))

    def _quadrature(self, v: Array, steps: int = 60) -> Array:
        """v^T log(S) v for unit vectors v (n, q, c), by Gauss quadrature of the Lanczos process; kept orthogonal throughout."""
        basis, diagonal, beside = [v], [], []
        for _ in range(min(steps, self.size)):
            image = self._times(basis[-1])
            diagonal.append((image * basis[-1]).sum((0, 1)))
            for _ in range(2):
                for old in basis:
                    image = image - (image * old).sum((0, 1)) * old
            norm = np.sqrt((image**2).sum((0, 1)))
            beside.append(norm)
            if (norm < 1e-10).all():
                break
            basis.append(image / np.maximum(norm, 1e-300))
        values = []
        for column in range(v.shape[2]):
            d, e = np.array(diagonal)[:, column], np.array(beside)[:-1, column]
            nodes, vectors = np.linalg.eigh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1))
            values.append(float((vectors[0] ** 2) @ np.log(np.maximum(nodes, 1.0))))
        return np.array(values)


def pivoted_cholesky(matrix: Array, rank: int) -> Array:
    """F (n, k) of at most ``rank`` columns with F F^T close to a positive semi-definite matrix: the largest remainder first.

    >>> pivoted_cholesky(np.ones((3, 3)), 2).tolist()
    [[1.0], [1.0], [1.0]]
    """
    rest = matrix.diagonal().copy()
    limit = 1e-12 * float(rest.max())
    columns = np.zeros((len(matrix), rank), order="F")
    for k in range(rank):
        pivot = int(rest.argmax())
        if rest[pivot] <= limit:
            return columns[:, :k]
        column = (matrix[:, pivot] - columns[:, :k] @ columns[pivot, :k]) / np.sqrt(rest[pivot])
        columns[:, k] = column
        rest = np.maximum(rest - column**2, 0.0)
        rest[pivot] = 0.0
    return columns
