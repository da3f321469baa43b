"""Configurations compared by their finished runs: the noise of one run, and their joint posterior.

*Noise*, the standard deviation of one run, comes from repeated configurations (pooled within
configurations), else from reported standard errors. Without either, a Gaussian process of all results
gives an upper bound: the largest noise under which they are hardly less probable than at best.

*Posterior*. Runs y of configuration x with seed s are modelled as

    y = f(x) + seed effect + rest,      f a Gaussian process

Conditioning on all runs corrects for the luck of the lowest one: values of neighbours and of other
runs pull it back. The best configuration has the lowest posterior mean. With d the expected difference
to another configuration and v its variance, the probability that the best is better is T(d / sqrt(v)),
T Student's distribution with the degrees of freedom of the noise.

*Gain*. The expected gain from a rival j is E max(0, f(best) - f(j)); near copies of the best gain
nothing. r further runs of both leave the variance v_r = 1 / (1 / v + r / (2 noise^2)), so their gain is
that of a difference with variance v - v_r, and r = 2 noise^2 (t_p^2 / d^2 - 1 / v) of them are expected
to settle the comparison at level p.

Chick, Inoue, New two-stage and sequential procedures for selecting the best simulated system, 2001.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, stdtr, stdtrit

from scrimp.encoding.encoding import Encoding, encoding_of
from scrimp.errors import StudyError
from scrimp.gp.cholesky import cholesky, solve
from scrimp.json_values import Config
from scrimp.study_log.history import History
from scrimp.study_log.trial import Observation, Trial
from scrimp.suggesters.model_settings import ModelSettings, loss_model
from scrimp.surrogates.exact_gp import FittedGP
from scrimp.surrogates.surrogate import Data
from scrimp.surrogates.target_transform import FittedTransformed
from scrimp.threads import one_thread

Array = NDArray[np.float64]

UNMEASURED = "a model of all results, since no configuration was run twice"
"""The source of a noise that is only bounded."""

SEED = "seed"
"""The attribute of a trial that says with which seed it ran."""


@dataclass(frozen=True)
class ContestNumbers:
    """Numbers of verdicts, with where they come from."""

    max_runs: int = 600
    """Runs that the posterior is computed from, the best ones: bounds its time."""
    told_freedom: float = 30.0
    """Degrees of freedom of reported standard errors and of the bound of a model (convention)."""
    min_freedom: float = 4.0
    """Degrees of freedom of repeated runs below which nothing is settled, and with which the bound of
    a model counts beside them: two runs that happen to agree would prove anything (notebook, False
    winners)."""
    min_freedom_of_seeds: int = 3
    """Residual degrees of freedom from which on effects of seeds are estimated (convention)."""
    max_rest: float = 0.8
    """Share of the noise that seeds must leave unexplained at most to be used (convention)."""
    min_noise: float = 1e-6
    """Noise variance of standardised values at least: keeps factors stable."""
    noise_steps: tuple[float, ...] = (1e-6, 1e-4, 1e-3, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8)
    """Noise variances of standardised values that a model is tried with (convention)."""
    max_less_probable: float = 1.92
    """Log likelihood below the best up to which a noise is possible: 95 % of a profile likelihood."""
    highest_probability: float = 0.999
    """Bound of stated probabilities, since the model may be wrong; 0.001 on the other side."""
    most_runs: int = 1000
    """More runs of a configuration than this are not counted (convention)."""
    hopeless_factor: float = 4.0
    """Confirming ends if this many times the runs left are expected to be needed (convention)."""
    min_runs_to_give_up: int = 8
    """Runs before that: four pairs show whether effects of seeds cancel."""


NUMBERS = ContestNumbers()


# --- runs and noise -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Runs:
    """n finished runs of k configurations, lowest loss first: the number of the trial, the place of
    its configuration, its seed (-1 without one), its loss after ``budget`` and its standard error (NaN
    without one)."""

    trial: NDArray[np.int64]
    place: NDArray[np.int64]
    seed: NDArray[np.int64]
    loss: Array
    stderr: Array
    configs: tuple[Config, ...]
    budget: float

    @staticmethod
    def of(history: History) -> "Runs":
        """Collect the finished runs at the highest budget that two configurations reached."""
        problem = history.problem
        if problem.several:
            raise StudyError(
                f"a verdict compares one metric, and study {history.created.name!r} has"
                f" {', '.join(problem.names)}; look at study.front"
            )
        usable = [
            trial
            for trial in history.trials
            if trial.last is not None and trial.last.loss is not None and trial.last.feasible
            if trial.status != "failed" and problem.space.contains(trial.config)
        ]
        reached = dict[object, float]()
        for trial in usable:
            key = problem.space.key(trial.config)
            reached[key] = max(trial.budget, reached.get(key, 0.0))
        level = min(sorted(reached.values(), reverse=True)[:2], default=0.0)
        points = {trial.id: _report_at(trial, level) for trial in usable if trial.budget >= level}
        found = [trial for trial in usable if trial.id in points]
        found = sorted(found, key=lambda trial: points[trial.id].loss or 0.0)[: NUMBERS.max_runs]
        places = dict[object, int]()
        rows, configs = [], list[Config]()
        for trial in found:
            place = places.setdefault(problem.space.key(trial.config), len(places))
            configs += [trial.config] if place == len(configs) else []
            seed = trial.user_attrs.get(SEED)
            known = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
            rows.append((trial.id, place, seed if known else -1))
        if len(configs) < 2:
            feasible = " that satisfies the constraints" if problem.constraints else ""
            raise StudyError(
                f"a verdict compares configurations, and study {history.created.name!r} has"
                f" {len(configs)} with a finished run{feasible}; run more trials first"
            )
        trials, places_of, seeds = np.array(rows, dtype=np.int64).T
        counted = [points[trial.id] for trial in found]
        losses = np.array([point.loss for point in counted], dtype=float)
        errors = np.array([point.stderr.get(problem.metric, math.nan) for point in counted])
        return Runs(trials, places_of, seeds, losses, errors, tuple(configs), level)


def _report_at(trial: Trial, level: float) -> Observation:
    """The last report of a trial up to a budget that has a value."""
    known = [point for point in trial.curve if point.loss is not None]
    return next((point for point in reversed(known) if point.step <= level), known[0])


@dataclass(frozen=True)
class Noise:
    """The variation of one run: standard deviation ``std``, of which ``shared`` is common to all runs
    with the same seed; where it comes from, in words; its degrees of freedom."""

    std: float
    source: str
    freedom: float
    shared: float = 0.0

    def raised(self, bound: float) -> "Noise":
        """Return the noise with a larger ``bound`` counted beside the runs that measured it."""
        own, other = self.freedom, NUMBERS.min_freedom
        if bound <= self.std:
            return self
        variance = (own * self.std**2 + other * bound**2) / (own + other)
        source = f"{self.source} and, since these are few, a model of all results"
        return replace(self, std=math.sqrt(variance), source=source)


def noise_of(runs: Runs) -> Noise | None:
    """Estimate the noise from repeated configurations or standard errors; None without either."""
    counts = np.bincount(runs.place)
    repeated = counts[runs.place] > 1
    if repeated.any():
        means = np.bincount(runs.place, runs.loss) / np.maximum(counts, 1)
        residual = (runs.loss - means[runs.place])[repeated]
        configurations = int((counts > 1).sum())
        freedom = len(residual) - configurations
        variance = float(residual @ residual) / freedom
        rest = _without_seeds(runs)
        shared = 0.0
        if rest is not None and rest < NUMBERS.max_rest * variance:
            shared = variance - rest
        source = f"{len(residual)} runs of {configurations} repeated configuration{'s' * (configurations != 1)}"
        return Noise(math.sqrt(variance), source, float(freedom), math.sqrt(shared))
    told = runs.stderr[np.isfinite(runs.stderr)]
    if len(told):
        std = math.sqrt(float(np.mean(told**2)))
        return Noise(std, "reported standard errors", NUMBERS.told_freedom)
    return None


def _without_seeds(runs: Runs) -> float | None:
    """The variance of runs beyond effects of configurations and seeds; None with too few runs."""
    seeded = np.flatnonzero(runs.seed >= 0)
    columns = [np.unique(part[seeded], return_inverse=True)[1] for part in (runs.place, runs.seed)]
    if not len(seeded):
        return None
    design = np.concatenate([np.eye(column.max() + 1)[column] for column in columns], axis=1)
    solution, _, rank, _ = np.linalg.lstsq(design, runs.loss[seeded], rcond=None)
    freedom = len(seeded) - int(rank)
    if freedom < NUMBERS.min_freedom_of_seeds:
        return None
    residual = runs.loss[seeded] - design @ solution
    return float(residual @ residual) / freedom


# --- the posterior --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Contest:
    """The joint posterior of k configurations in units of the model: means (k,), covariance (k, k);
    the variance of one run around its configuration, without what runs of a seed share; the size of a
    unit of the model at the best, in units of the loss."""

    mean: Array
    covariance: Array
    variance: float
    unit: float
    noise: Noise

    @cached_property
    def best(self) -> int:
        """The configuration with the lowest mean."""
        return int(np.argmin(self.mean))

    def apart(self, other: int) -> tuple[float, float]:
        """The expected difference of a configuration from the best, and its variance."""
        best, c = self.best, self.covariance
        variance = float(c[best, best] + c[other, other] - 2.0 * c[best, other])
        return float(self.mean[other] - self.mean[best]), max(variance, 1e-12)

    def probability(self, other: int) -> float:
        """The probability that the best is better than another configuration."""
        difference, variance = self.apart(other)
        found = float(stdtr(self.noise.freedom, difference / math.sqrt(variance)))
        return min(max(found, 1.0 - NUMBERS.highest_probability), NUMBERS.highest_probability)

    def gain(self, other: int, runs: float = math.inf) -> float:
        """The expected improvement on the best if ``runs`` more runs of both decided."""
        difference, variance = self.apart(other)
        left = 1.0 / (1.0 / variance + runs / (2.0 * self.variance))
        return expected_gain(difference, math.sqrt(max(variance - left, 0.0)))

    @cached_property
    def runner_up(self) -> int:
        """The configuration from which most could be gained."""
        rivals = [place for place in range(len(self.mean)) if place != self.best]
        return max(rivals, key=self.gain)

    def runs_needed(self, other: int, level: float) -> int:
        """The number of further runs of both that are expected to settle the comparison at ``level``."""
        if self.probability(other) >= level:
            return 0
        difference, variance = self.apart(other)
        quantile = float(stdtrit(self.noise.freedom, level))
        wanted = quantile**2 / max(difference**2, 1e-18) - 1.0 / variance
        return int(min(max(math.ceil(2.0 * self.variance * wanted), 1), NUMBERS.most_runs))


def expected_gain(difference: float, deviation: float) -> float:
    """E max(0, -d) of a difference d ~ N(difference, deviation^2).

    >>> round(expected_gain(0.0, 1.0), 4)
    0.3989
    """
    if deviation <= 0.0:
        return max(-difference, 0.0)
    ratio = difference / deviation
    density = math.exp(-0.5 * ratio**2) / math.sqrt(2.0 * math.pi)
    return deviation * (density - ratio * float(ndtr(-ratio)))


def contest_of(history: History, runs: Runs) -> Contest:
    """Fit a Gaussian process to all configurations, and condition it on every run."""
    encoding, noise = encoding_of(history.problem.space), noise_of(runs)
    x, row = encoding.encode(runs.configs), runs.place
    counts = np.bincount(row)
    data = Data(x, np.bincount(row, runs.loss) / counts)
    if noise is None or noise.freedom < 3.0 * NUMBERS.min_freedom:
        fitted, process, share = _largest_noise(encoding, data)
        bound = math.sqrt(share / float(_squared_slopes(fitted, runs.loss)[0]))
        bounded = Noise(bound, UNMEASURED, NUMBERS.told_freedom)
        noise = bounded if noise is None else noise.raised(bound)
    if noise.source != UNMEASURED:
        known = Data(x, data.y, noise.std**2 / counts)
        fitted, process = _fitted(encoding, known, NUMBERS.min_noise)
    slopes = np.sqrt(_squared_slopes(fitted, runs.loss))
    rest = noise.std**2 - noise.shared**2
    prior = process.prior
    z = np.asarray(fitted.model_units(Data(x[row], runs.loss)).y)
    together = (runs.seed[:, None] == runs.seed) & (runs.seed[:, None] >= 0)
    np.fill_diagonal(together, True)
    covariance = prior.covariance(x[row], x[row])
    covariance += noise.shared**2 * together * np.outer(slopes, slopes)
    covariance.flat[:: len(z) + 1] += rest * slopes**2 + NUMBERS.min_noise
    factor = cholesky(covariance)
    cross = prior.covariance(x, x[row])
    mean = prior.mean(x) + cross @ solve(factor, z - prior.mean(x[row]))
    left = prior.covariance(x, x) - cross @ solve(factor, cross.T)
    variance = max(rest * float(slopes[0]) ** 2, NUMBERS.min_noise)
    return Contest(mean, left, variance, 1.0 / float(slopes[0]), noise)


def _fitted(encoding: Encoding, data: Data, noise: float) -> tuple[FittedTransformed, FittedGP]:
    """Fit the model with a fixed noise variance of standardised values; return its process, too."""
    settings = ModelSettings(transform="standardise", noise=noise)
    with one_thread():
        found = loss_model(encoding.columns, settings).fit(data, np.random.default_rng(len(data)))
    assert isinstance(found, FittedTransformed) and isinstance(found.inner, FittedGP)
    return found, found.inner


def _largest_noise(encoding: Encoding, data: Data) -> tuple[FittedTransformed, FittedGP, float]:
    """Return the model with the largest possible noise (`max_less_probable`), and that noise."""
    found = [(*_fitted(encoding, data, noise), noise) for noise in NUMBERS.noise_steps]
    likelihoods = []
    for _, process, _ in found:
        size = np.log(np.diagonal(process.factor)).sum()
        likelihoods.append(float(-0.5 * (process.whitened**2).sum() - size))
    least = max(likelihoods) - NUMBERS.max_less_probable
    return found[max(np.flatnonzero(np.array(likelihoods) >= least))]


def _squared_slopes(fitted: FittedTransformed, losses: Array) -> Array:
    """The noise variance of each loss (n,) in units of the model, for a variance of 1."""
    rows = np.zeros((len(losses), fitted.inner.data.x.shape[1]))
    noise = fitted.model_units(Data(rows, losses, np.ones(len(losses)))).noise
    assert noise is not None
    return noise
