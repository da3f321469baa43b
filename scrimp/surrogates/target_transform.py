"""Models of transformed targets: y -> z by increasing steps, and any surrogate on z.

    model = Transformed(ExactGP.over(columns), (Winsorise(), Standardise()))
    fitted = model.fit(Data(x, y), rng)                  # data, posterior and samples in units of z
    fitted.condition(fitted.model_units(new))            # observations from outside
    fitted.target_units(fitted.posterior(x).mean)        # numbers for display

**Units of acquisitions.** The fitted model stays in transformed units. Steps are increasing, so the
best configuration is the same; the incumbent, a posterior mean or the best of ``data.y``, is in the
units of the posterior; an exploration margin means standard deviations of the targets; fantasies
drawn from the posterior go back into `condition` as they are. A limit on a constraint is converted
by `model_units` like an observation, P(y <= limit) = P(z <= z(limit)). Converting the posterior
back instead would lose its Gaussian shape for every step that is not linear.

Learned steps are part of the ``state``: restoring it and growing a fitted model give the same
numbers.

**Choosing a transform.** Losses that fall by orders of magnitude need a power or a logarithm, losses
with noise or plateaus do not, and neither is known beforehand. `ChosenTransform` fits every option
and takes the one under which the data are most probable, in the units of the targets:

    log p(y | option) = log p(z | x, fitted hyperparameters) + sum_i log dz_i / dy_i

Diverged targets are capped first, the same for all options, so that the Jacobians can be compared.
The choice is part of the state and repeated when the data have grown by a third; between choices
one option is fitted, at the cost of a plain model. The first choice for many observations is made
on a part of them.

    options = {"plain": (Standardise(),), "power": (YeoJohnson(), Standardise())}
    model = ChosenTransform(ExactGP.over(columns), options)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

import numpy as np

from scrimp.errors import StudyError
from scrimp.gp.marginal_likelihood import first_part, spread_rows
from scrimp.json_values import Json, JsonObject
from scrimp.surrogates.exact_gp import PART_KEY, ExactGP, FittedGP
from scrimp.surrogates.surrogate import (
    Array,
    Data,
    FittedSurrogate,
    Surrogate,
    SurrogateView,
    object_at,
    value_at,
)
from scrimp.surrogates.target_steps import LearnedStep, TargetStep, Winsorise


@dataclass(frozen=True, eq=False)
class Transformed(Surrogate):
    """Any surrogate, fitted to targets transformed by ``steps`` in order."""

    inner: Surrogate
    steps: Sequence[TargetStep]

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> "FittedTransformed":
        learned: list[LearnedStep] = []
        for step in self.steps:
            known = step.learn(data.y.reshape(-1))
            data = applied(known, data)
            learned.append(known)
        begin = object_at(start, "inner") if start is not None and "inner" in start else None
        return FittedTransformed(self.inner.fit(data, rng, begin), tuple(learned))

    def restore(self, data: Data, state: JsonObject) -> "FittedTransformed":
        recorded = value_at(state, "steps", list[JsonObject], ())
        if len(recorded) != len(self.steps):
            raise StudyError(
                f"the recorded fit has {len(recorded)} target steps where this model has"
                f" {len(self.steps)}: fit again"
            )
        learned: list[LearnedStep] = []
        for step, known in zip(self.steps, recorded, strict=True):
            learned.append(step.recall(known))
            data = applied(learned[-1], data)
        inner = self.inner.restore(data, object_at(state, "inner"))
        return FittedTransformed(inner, tuple(learned))


def applied(step: LearnedStep, data: Data) -> Data:
    """Apply one step to observations; noise is scaled by the slope at the target."""
    noise = data.noise
    if noise is not None:
        slope = step.slope(data.y)
        noise = noise * (slope if slope.ndim == 1 else slope.mean(1)) ** 2
    return Data(data.x, step.forward(data.y), noise)


@dataclass(frozen=True, eq=False)
class FittedTransformed(SurrogateView):
    """A fitted model of transformed targets, in transformed units, with the conversions."""

    inner: FittedSurrogate
    steps: tuple[LearnedStep, ...]

    def model_units(self, data: Data) -> Data:
        for step in self.steps:
            data = applied(step, data)
        return self.inner.model_units(data)

    def target_units(self, values: Array) -> Array:
        values = self.inner.target_units(values)
        for step in reversed(self.steps):
            values = step.backward(values)
        return values

    def target_slope(self, values: Array) -> Array:
        slope = self.inner.target_slope(values)
        values = self.inner.target_units(values)
        for step in reversed(self.steps):
            values = step.backward(values)
            slope = slope / step.slope(values)
        return slope

    def condition(self, data: Data) -> "FittedTransformed":
        return FittedTransformed(self.inner.condition(data), self.steps)

    @property
    def members(self) -> tuple[FittedSurrogate, ...]:
        members = self.inner.members
        if members[0] is self.inner:
            return (self,)
        return tuple(FittedTransformed(member, self.steps) for member in members)

    @property
    def state(self) -> Mapping[str, Json]:
        steps = list(map(attrgetter("state"), self.steps))
        return {"steps": steps, "inner": self.inner.state}


def process_of(model: FittedSurrogate) -> FittedGP:
    """Return the Gaussian process of a model, without the transform of its targets."""
    gp = model.inner if isinstance(model, FittedTransformed) else model
    assert isinstance(gp, FittedGP)
    return gp


_COMPARE_GROWTH = 4 / 3
"""The options are compared again when the data have grown by this factor (convention)."""


@dataclass(frozen=True, eq=False)
class ChosenTransform(Surrogate):
    """A Gaussian process on targets transformed by ``first`` and then by one of ``options``."""

    inner: ExactGP
    options: Mapping[str, Sequence[TargetStep]]
    first: TargetStep = field(default_factory=Winsorise)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> FittedTransformed:
        chosen = None if start is None or start.get("choice") not in self.options else start
        if chosen is not None and len(data) < _COMPARE_GROWTH * value_at(chosen, "compared", int):
            compared, model = value_at(chosen, "compared", int), object_at(chosen, "model")
            return self._fitted(str(chosen["choice"]), compared, data, rng, model)
        size = first_part(len(data))
        if chosen is None and size is not None:
            return self._chosen_in_part(data, size, rng)
        return self._compared(data, rng, chosen)

    def _chosen_in_part(self, data: Data, size: int, rng: np.random.Generator) -> "_Chosen":
        """Choose on ``size`` of the observations, and fit only that option to all of them."""
        roughly = replace(self, inner=self.inner.roughly())
        found = roughly._compared(data.select(spread_rows(len(data), size)), rng, None)
        begin = {**object_at(found.state, "model"), "inner": {**found.inner.state, PART_KEY: size}}
        return self._fitted(found.choice, len(data), data, rng, begin)

    def _compared(
        self, data: Data, rng: np.random.Generator, chosen: JsonObject | None
    ) -> "_Chosen":
        begin = {} if chosen is None else {chosen["choice"]: object_at(chosen, "model")}
        fits = [self._fitted(name, len(data), data, rng, begin.get(name)) for name in self.options]
        return max(fits, key=lambda fitted: _evidence(fitted, data))

    def restore(self, data: Data, state: JsonObject) -> FittedTransformed:
        choice = state.get("choice")
        if not isinstance(choice, str) or choice not in self.options:
            raise StudyError(
                f"the recorded fit chose {choice!r}, which is not an option here: fit again"
            )
        model = Transformed(self.inner, (self.first, *self.options[choice]))
        restored = model.restore(data, object_at(state, "model"))
        return _Chosen(restored.inner, restored.steps, choice, value_at(state, "compared", int))

    def _fitted(
        self,
        name: str,
        compared: int,
        data: Data,
        rng: np.random.Generator,
        start: JsonObject | None,
    ) -> "_Chosen":
        model = Transformed(self.inner, (self.first, *self.options[name]))
        fitted = model.fit(data, rng, start)
        return _Chosen(fitted.inner, fitted.steps, name, compared)


@dataclass(frozen=True, eq=False)
class _Chosen(FittedTransformed):
    """The fitted option, with its name and the size of the data at the last comparison."""

    choice: str
    compared: int

    def condition(self, data: Data) -> "_Chosen":
        return _Chosen(self.inner.condition(data), self.steps, self.choice, self.compared)

    @property
    def state(self) -> JsonObject:
        return {"choice": self.choice, "compared": self.compared, "model": super().state}


def _evidence(fitted: FittedTransformed, data: Data) -> float:
    """log p(y) in the units of the capped targets."""
    assert isinstance(fitted.inner, FittedGP)
    y = fitted.steps[0].forward(data.y)
    total = fitted.inner.log_marginal_likelihood
    for step in fitted.steps[1:]:
        total += float(np.log(step.slope(y)).sum())
        y = step.forward(y)
    return total
