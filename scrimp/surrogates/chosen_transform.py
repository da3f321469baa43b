"""Which transform of the targets a model believes in: the one under which the data are most
probable.

Losses that fall by orders of magnitude want a power or a logarithm, losses with noise or plateaus
do not; nobody can say beforehand. Every option is fitted, and the evidence decides, brought back to
the units of the targets by the Jacobian:

    log p(y | option) = log p(z | x, fitted hyperparameters) + sum_i log dz_i / dy_i

Diverged targets are capped first, the same for all options, so that the Jacobians compare. The
choice is part of the state and is made anew when the data have grown by a third; between choices
one option is fitted, at the cost of a plain model. Of many data that nothing is recorded of, a part
makes the first choice.

    model = ChosenTransform(ExactGP.over(columns), {"plain": (Standardise(),), "power": (YeoJohnson(), Standardise())})
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from scrimp.errors import StudyError
from scrimp.gp.marginal_likelihood import first_part
from scrimp.json_values import JsonObject
from scrimp.surrogates.exact_gp import ExactGP, FittedGP, part_of
from scrimp.surrogates.record_reading import object_at, text_at, whole_at
from scrimp.surrogates.recorded_fit import found_in_part
from scrimp.surrogates.surrogate import Data, Surrogate
from scrimp.surrogates.target_transform import FittedTransformed, TargetStep, Transformed, Winsorise

__all__ = ["ChosenTransform"]

GROWTH = 4 / 3  # of the data, before the options are compared again


@dataclass(frozen=True, eq=False)
class ChosenTransform(Surrogate):
    """A Gaussian process on targets that went through ``first`` and then one of ``options``."""

    inner: ExactGP
    options: Mapping[str, Sequence[TargetStep]]
    first: TargetStep = field(default_factory=Winsorise)

    def fit(
        self, data: Data, rng: np.random.Generator, start: JsonObject | None = None
    ) -> FittedTransformed:
        chosen = None if start is None or start.get("choice") not in self.options else start
        if chosen is not None and len(data) < GROWTH * whole_at(chosen, "compared"):
            return self._fitted(
                text_at(chosen, "choice"),
                whole_at(chosen, "compared"),
                data,
                rng,
                object_at(chosen, "model"),
            )
        size = first_part(len(data))
        if chosen is None and size is not None:
            return self._chosen_in_part(data, size, rng)
        return self._compared(data, rng, chosen)

    def _chosen_in_part(self, data: Data, size: int, rng: np.random.Generator) -> "_Chosen":
        """The choice that ``size`` of the many data make, and only that option fitted to all of
        them."""
        roughly = replace(self, inner=self.inner.roughly())
        found = roughly._compared(part_of(data, size), rng, None)
        steps = [dict(step.state) for step in found.steps]
        begin: JsonObject = {"steps": steps, "inner": found_in_part(found.inner.state, size)}
        return self._fitted(found.choice, len(data), data, rng, begin)

    def _compared(
        self, data: Data, rng: np.random.Generator, chosen: JsonObject | None
    ) -> "_Chosen":
        """Every option fitted, and the one under which the data are most probable."""
        best: tuple[float, _Chosen] | None = None
        for name in self.options:
            begin = None
            if chosen is not None and chosen["choice"] == name:
                begin = object_at(chosen, "model")
            fitted = self._fitted(name, len(data), data, rng, begin)
            evidence = _evidence(fitted, data)
            if best is None or evidence > best[0]:
                best = evidence, fitted
        assert best is not None
        return best[1]

    def restore(self, data: Data, state: JsonObject) -> FittedTransformed:
        if state.get("choice") not in self.options:
            raise StudyError(
                f"the recorded fit chose {state.get('choice')!r}, which is no option here: fit anew"
            )
        choice = text_at(state, "choice")
        restored = self._model(choice).restore(data, object_at(state, "model"))
        return _Chosen(restored.inner, restored.steps, choice, whole_at(state, "compared"))

    def _model(self, name: str) -> Transformed:
        return Transformed(self.inner, (self.first, *self.options[name]))

    def _fitted(
        self,
        name: str,
        compared: int,
        data: Data,
        rng: np.random.Generator,
        start: JsonObject | None,
    ) -> "_Chosen":
        fitted = self._model(name).fit(data, rng, start)
        return _Chosen(fitted.inner, fitted.steps, name, compared)


@dataclass(frozen=True, eq=False)
class _Chosen(FittedTransformed):
    """The fitted option, which remembers its name and when it was compared with the others."""

    choice: str
    compared: int

    def condition(self, data: Data) -> "_Chosen":
        return _Chosen(self.inner.condition(data), self.steps, self.choice, self.compared)

    @property
    def state(self) -> JsonObject:
        model: JsonObject = {
            "steps": [dict(step.state) for step in self.steps],
            "inner": self.inner.state,
        }
        return {"choice": self.choice, "compared": self.compared, "model": model}


def _evidence(fitted: FittedTransformed, data: Data) -> float:
    """log p(y) in the units of the capped targets."""
    assert isinstance(fitted.inner, FittedGP)
    y = fitted.steps[0].forward(data.y)
    total = fitted.inner.log_marginal_likelihood
    for step in fitted.steps[1:]:
        total += float(np.log(step.slope(y)).sum())
        y = step.forward(y)
    return total
