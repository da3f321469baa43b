"""The user's guesses of good values, ``prior=(value, confidence)``, as a density over encoded rows.

    log belief(x) = sum over guessed columns j that exist in x of
        -(x_j - guess_j)^2 / (2 width^2),  width = 0.1 / confidence        ordered columns: a normal bump
        log(0.95 c + (1 - 0.95 c) / k)  at the guess,
        log((1 - 0.95 c) / k)           elsewhere                          categorical columns of k choices

up to a constant. Medium confidence (0.5) is a width of a fifth of the range; not even full
confidence rules a choice out.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scrimp.acquisition.domain import SAME
from scrimp.encoding.encoding import Encoding
from scrimp.surrogates.surrogate import Array

__all__ = ["UserBelief", "user_belief"]

NARROWEST = 0.1
"""The standard deviation of a bump of full confidence, as a share of the range."""

CERTAINTY = 0.95
"""What full confidence in a choice gives to it; the rest is shared out evenly."""


@dataclass(frozen=True)
class UserBelief:
    """The density of one space; call it with rows (m, d) for its logarithm (m,) and the gradient
    (m, d)."""

    encoding: Encoding
    guesses: tuple[tuple[int, float, float], ...]
    """(column, encoded guess, confidence)"""

    def __call__(self, x: Array) -> tuple[Array, Array]:
        value, gradient = np.zeros(len(x)), np.zeros_like(x)
        active = self.encoding.domain.active(x)
        for column, guess, confidence in self.guesses:
            here = active[:, column]
            gap = x[:, column] - guess
            if column in self._choices:
                even = (1.0 - CERTAINTY * confidence) / self._choices[column]
                value += here * np.log(
                    np.where(np.abs(gap) <= SAME, CERTAINTY * confidence + even, even)
                )
            else:
                precision = (confidence / NARROWEST) ** 2
                value -= here * 0.5 * precision * gap**2
                gradient[:, column] = here * -precision * gap
        return value, gradient

    @cached_property
    def _choices(self) -> dict[int, int]:
        """The number of choices of each categorical column."""
        columns = enumerate(self.encoding.columns)
        return {place: len(column.values or ()) for place, column in columns if not column.ordered}


def user_belief(encoding: Encoding) -> UserBelief | None:
    """The belief that the parameters of the space carry; None where no parameter has a guess."""
    space, guesses = encoding.space, []
    for column, name in enumerate(space.searched):
        prior = space[name].prior
        if prior is not None:
            guesses.append(
                (column, space[name].to_unit(prior[0]), float(prior[1]))
            )  # no longer a word
    return UserBelief(encoding, tuple(guesses)) if guesses else None
