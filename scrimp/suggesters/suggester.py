"""The contract of suggesters: the configuration to try next, as a function of the history.

A suggester is a frozen value that holds settings only. Asked twice with the same history, request
and generator it gives the same answer, so a crash, a resume, many workers and a replay need no
code. What it learned (fitted hyperparameters, reasons, degraded flags) goes into ``record``, which
the loop writes to the log; the next suggestion may start from there.

`PastKnowledge` is what a suggester or a policy may ask of past studies, without knowing how it was
learned: the program hands it to every part (`informed_by`), and each takes what it can use.

    suggestion = BayesianSuggester(...).suggest(history, request, count=1, rng=history.rng("suggest"))
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from scrimp.acquisition.gain_left import GainLeft
from scrimp.errors import MethodError
from scrimp.json_values import Config, Json
from scrimp.study_log.decision_record import EMPTY_RECORD, DecisionRecord
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.surrogates.forecast import ForecastColumn

Array = NDArray[np.float64]


class PastKnowledge(ABC):
    """Past studies, seen from the space of the study that learns from them; `scrimp.transfer.past`
    has the implementation."""

    @abstractmethod
    def length_scales(self) -> tuple[float, ...]:
        """The expected length-scale along each column of an encoded configuration (d,), if any."""

    @abstractmethod
    def curves(self) -> Sequence[tuple[float, ...]]:
        """Hyperparameters of a model of learning curves, a vector per past study that has any."""

    @abstractmethod
    def expected(self, x: Array) -> Array:
        """The average prediction (n,) of the models of past studies for encoded configurations x
        (n, d), in their standard deviations; empty without any."""

    @abstractmethod
    def expected_pullback(self, x: Array, d_expected: Array) -> Array:
        """The gradient of x (n, d) from that of `expected` (n,)."""


@dataclass(frozen=True)
class Request:
    """The use of the suggested configuration: the first budget it gets, its bracket, and the tag
    its trial will carry.

    ``levels``: the budgets at which trials are compared, the full budget last; none without a
    scheduler that compares.
    """

    budget: float
    bracket: int = 0
    tag: Mapping[str, Json] = field(default_factory=dict)
    levels: tuple[float, ...] = ()


@dataclass(frozen=True)
class ForecastPoints:
    """The configurations to predict, each after its budget (k,); ``levels`` as in `Request`."""

    configs: Sequence[Config]
    budgets: Array
    levels: tuple[float, ...] = ()

    def check_full(self, problem: Problem) -> None:
        """Raise `MethodError` for budgets other than the full one, if the model has none."""
        for budget in self.budgets.tolist():
            if problem.budget is not None and budget != problem.full_budget:
                raise MethodError(
                    f"at={budget:g}: the model of this method learns from the last report of each"
                    " trial, whatever its budget; leave `at` out, or use a method with a model of"
                    " learning curves, such as 'freeze-thaw' or 'mobster-joint'"
                )


@dataclass(frozen=True)
class Suggestion:
    """Configurations to try, best first, and the record of them. Fewer than asked for mean that the
    space is exhausted."""

    configs: tuple[Config, ...]
    record: DecisionRecord = EMPTY_RECORD


class Suggester(ABC):
    """Decides what to try."""

    learns: ClassVar[bool] = False
    """True for suggesters that are made to learn from past studies and start in their own way."""

    guided: ClassVar[bool] = True
    """False for suggesters that take no notice of the user's guesses, the priors of parameters."""

    def informed_by(self, past: PastKnowledge) -> "Suggester":
        """Return a copy informed by past studies; by default, self."""
        return self

    @abstractmethod
    def suggest(
        self, history: History, request: Request, count: int, rng: np.random.Generator
    ) -> Suggestion:
        """Return ``count`` configurations for ``request``, given all that happened. Pending trials
        are in the history."""

    def gain_left(
        self, history: History, trials: float, rng: np.random.Generator
    ) -> GainLeft | None:
        """Return the improvement that ``trials`` further trials are expected to bring; None without
        a model of it, the default."""
        return None

    def forecast(
        self, history: History, points: ForecastPoints, rng: np.random.Generator
    ) -> "Sequence[ForecastColumn]":
        """Predict every metric, constraint and cost that the suggester has a model of, with the
        hyperparameters that its last decision recorded; empty without a model, the default."""
        return ()
