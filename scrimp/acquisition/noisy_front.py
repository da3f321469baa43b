"""What a front may be where observations are noisy: joint draws of the losses behind them.

With noise, the best of what was observed is in part luck, and a front of posterior means forgets
how uncertain it is. Noisy expected hypervolume improvement averages over it: draw the noise-free
losses at the uncertain inputs, and at those under evaluation, jointly from each posterior;
condition on each draw exactly; every draw has a front and open boxes of its own
(`hypervolume_improvement`), and log EHVI is averaged over the draws.

The draws are quasi-random: normal quantiles of a scrambled Sobol sequence, through a factor of the
joint covariance.

    rows = uncertain_rows(models, evaluated, rng)
    model = drawn_exactly(model, np.concatenate([rows, pending]), count=8, rng=rng)

Daulton, Balandat, Bakshy, "Parallel Bayesian optimization of multiple noisy objectives with
expected hypervolume improvement", 2021.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from scrimp.fronts.dominance import non_dominated
from scrimp.gp.cholesky import cholesky
from scrimp.sobol import sobol_points
from scrimp.surrogates.surrogate import Array, Data, FittedSurrogate

__all__ = ["drawn_exactly", "uncertain_rows"]

MOST_UNCERTAIN = 24
"""Inputs whose losses are drawn: those that are on most fronts of marginal draws."""

MARGINAL_DRAWS = 48

EXACT = 1e-6
"""The noise variance, in units of the variance of all losses, with which a model is told a draw:
none but for rounding."""


def uncertain_rows(
    models: Sequence[FittedSurrogate], evaluated: Array, rng: np.random.Generator
) -> Array:
    """The inputs (k, d) among those evaluated (n, d) that may be on the front, at most
    `MOST_UNCERTAIN`, each once."""
    rows = np.unique(evaluated, axis=0)
    losses = []
    for model in models:
        posterior = model.posterior(rows)
        variance = np.zeros(len(rows)) if posterior.variance is None else posterior.variance
        noise = rng.standard_normal((MARGINAL_DRAWS, len(rows)))
        losses.append(posterior.mean[:, 0] + np.sqrt(variance) * noise)
    drawn = np.stack(losses, axis=-1)  # (draws, n, m)
    often = np.sum([non_dominated(each) for each in drawn], axis=0)
    order = np.argsort(-often, kind="stable")[:MOST_UNCERTAIN]
    found: Array = rows[np.sort(order[often[order] > 0])]
    return found


def drawn_exactly(
    model: FittedSurrogate, rows: Array, count: int, rng: np.random.Generator
) -> FittedSurrogate:
    """``model`` with ``count`` joint quasi-random draws of the noise-free function at rows (k, d),
    each once, as exact further targets (k, count)."""
    posterior = model.posterior(rows, joint=True)
    assert posterior.covariance is not None and posterior.variance is not None
    scale = float(posterior.variance.mean()) or 1.0
    root = cholesky(posterior.covariance, scale=scale)
    places = sobol_points(len(rows), count, rng)
    draws = posterior.mean[:, 0] + ndtri(np.clip(places, 1e-9, 1.0 - 1e-9)) @ root.T
    # a model adds its own noise to whatever it is told
    noise = np.full(len(rows), EXACT - model.noise_variance)
    return model.condition(Data(rows, draws.T, noise))
