"""Lessons of past studies for the model (step 4): a centre for its prior, and on request a further
input.

*Shapes*. The curve model is fitted once to the curves of each past study
(`scrimp.freeze_thaw.study_model.fit_past_curves`): how much similar configurations share, how smooth
and noisy curves are, and the length scales of parameters that both studies have. The prior of a new
study is centred half-way between the usual centre and the mean of these vectors. Its widths stay as
they are, so a study that differs from the past is believed.

*Hint*. With m(x) the average of the predictions of past models, in their standard deviations, scaled
to [0, 1] over the space, the curve model sees (x, m(x)) instead of x. Configurations of which past
studies expect the same then belong together, however far apart they lie. The length scale along the
hint is fitted like any other, so a past that says nothing is soon ignored, and it makes no
difference whether a low m is good or bad.

    theta = curve_parameters(fitted, past_space, space)     # () where there are no curves
    PastLessons(prior_centre([theta]), Hint.over(encoding, past))
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scrimp.encoding.encoding import Encoding
from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS, prior_mode
from scrimp.freeze_thaw.freeze_thaw_numbers import NUMBERS
from scrimp.gp.columns import Features
from scrimp.json_values import JsonObject
from scrimp.space.space import Space
from scrimp.suggesters.suggester import PastKnowledge
from scrimp.surrogates.surrogate import object_at, value_at

Array = NDArray[np.float64]


def curve_parameters(fitted: JsonObject, past: Space, space: Space) -> tuple[float, ...]:
    """Return the vector theta (d + 9,) of a past study for the d searched parameters of ``space``;
    empty where nothing was fitted.

    A parameter that the past study lacks, or has with other bounds, gets the usual length scale.
    """
    if not fitted:
        return ()
    usual, known = prior_mode(len(space.searched)), object_at(fitted, "lengths")
    lengths = [
        value_at(known, name, float) if past.get(name) == space[name] else usual[place]
        for place, name in enumerate(space.searched)
    ]
    return (*lengths, *value_at(fitted, "shared", tuple[float, ...], ()))


def prior_centre(found: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """Return the point half-way between the usual centre and the mean of the vectors of past
    studies; empty without any."""
    vectors = [vector for vector in found if vector]
    if not vectors:
        return ()
    usual = prior_mode(len(vectors[0]) - SHARED_PARAMETERS)
    return tuple(np.mean([usual, np.mean(vectors, axis=0)], axis=0).tolist())


@dataclass(frozen=True, eq=False)
class Hint:
    """The further input (m(x) - ``low``) / ``width``."""

    past: PastKnowledge
    low: float
    width: float

    @staticmethod
    def over(encoding: Encoding, past: PastKnowledge) -> "Hint | None":
        """Scale the hint by a list, or by a sample of the space; None where past studies expect
        the same everywhere."""
        domain = encoding.domain
        rows = domain.pool
        if rows is None:
            rows = domain.sample(NUMBERS.hint_samples, np.random.default_rng(0))
        found = past.expected(rows)
        if not len(found) or float(np.ptp(found)) <= 1e-9:
            return None
        return Hint(past, float(found.min()), float(np.ptp(found)))

    def __call__(self, x: Array) -> Array:
        """Return the hint (n, 1) of configurations x (n, d)."""
        return np.asarray((self.past.expected(x) - self.low) / self.width)[:, None]

    def pull(self, x: Array, d_hint: Array) -> Array:
        """Return the gradient of x (n, d) from that of the hint (n,)."""
        return self.past.expected_pullback(x, d_hint / self.width)


def featured(features: Features, hint: Hint | None, x: Array) -> Array:
    """Return features (n, f) of configurations x (n, d), with the hint last if there is one."""
    return features(x) if hint is None else np.hstack([features(x), hint(x)])


@dataclass(frozen=True)
class PastLessons:
    """The ``centre`` of the prior without a hint, empty for the usual one, and a ``hint``."""

    centre: tuple[float, ...] = ()
    hint: Hint | None = None

    @property
    def mode(self) -> tuple[float, ...]:
        """The centre of the prior, with a length scale for the hint; empty for the usual one."""
        if self.hint is None or not self.centre:
            return self.centre
        lengths, shared = self.centre[:-SHARED_PARAMETERS], self.centre[-SHARED_PARAMETERS:]
        return (*lengths, math.log(NUMBERS.hint_length_scale), *shared)


NO_LESSONS = PastLessons()
