"""All that a study may learn from: past studies with their models, fitted when first needed and
kept where they last.

past = Past(studies, columns, kept=storage_cache)
past.models("z-score").means(x)
"""

from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from scrimp.errors import ScrimpError
from scrimp.gp.columns import Column
from scrimp.json_values import JsonObject
from scrimp.suggesters.past_knowledge import PastKnowledge
from scrimp.surrogates.surrogate import Array
from scrimp.transfer.normalise import normaliser_named
from scrimp.transfer.source_model import USUAL_KERNEL, SourceFit, SourceModel
from scrimp.transfer.source_models import SourceModels
from scrimp.transfer.source_studies import SourceStudy

__all__ = ["NOTHING", "Past", "Progress"]

Progress = Callable[[Iterable[SourceStudy], int], Iterator[SourceStudy]]
"""Shows how far fitting has come: yields the studies it is given."""


def _silent(studies: Iterable[SourceStudy], count: int) -> Iterator[SourceStudy]:
    del count
    yield from studies


@dataclass(frozen=True, eq=False)
class Past(PastKnowledge):
    """``studies`` in the encoding with these ``columns``; ``left_out`` says which others could not
    be used, and why.

    ``kept`` maps names of fits to their hyperparameters, wherever they last; models are restored
    from there. A ``parent`` has these studies and more, and fits them for all. ``further``: in a
    study of several metrics the same of those after the first, by name; each has those of the past
    studies that know it.
    """

    studies: tuple[SourceStudy, ...] = ()
    columns: tuple[Column, ...] = ()
    left_out: tuple[str, ...] = ()
    kept: MutableMapping[str, JsonObject] = field(default_factory=dict)
    progress: Progress = _silent
    parent: "Past | None" = None
    further: Mapping[str, "Past"] = field(default_factory=dict)
    _models: dict[str, SourceModels] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.studies)

    def length_scales(self) -> tuple[float, ...]:
        """What models of past studies found along each column; empty without any that teaches."""
        return self.teaching.expected_length_scales() if len(self.teaching) else ()

    @cached_property
    def teaching(self) -> SourceModels:
        """The models (z-scores) of those studies that can be predicted at all."""
        if not len(self):
            return SourceModels(())
        models = self.models("z-score")
        return models.only(np.array([model.teaches for model in models.models]))

    def curves(self) -> Sequence[tuple[float, ...]]:
        """Of every study."""
        return [study.curves for study in self.studies]

    def expected(self, x: Array) -> Array:
        """The average of z-scores that past models predict."""
        return self._small.means(x).mean(axis=1) if len(self._small) else np.zeros(0)

    def expected_pullback(self, x: Array, d_expected: Array) -> Array:
        """Through the means of all models."""
        _, back = self._small.means_and_pullback(x)
        count = len(self._small)
        return back(np.repeat(d_expected[:, None] / count, count, axis=1))

    @cached_property
    def _small(self) -> SourceModels:
        return self.teaching.side_by_side(self.columns)

    def without(self, name: str) -> "Past":
        """All studies but one; the models are shared."""
        return self.only({study.name for study in self.studies} - {name})

    def only(self, names: Collection[str]) -> "Past":
        """The studies of these names; the models are shared."""
        return replace(
            self, studies=tuple(s for s in self.studies if s.name in names), parent=self, _models={}
        )

    def models(self, normalise: str, kernel: str = USUAL_KERNEL) -> SourceModels:
        """The models of all studies under this normaliser: fitted, or restored from what was
        kept."""
        # linear ones share a fit
        steps = "z-score" if normaliser_named(normalise).kind != "own" else normalise
        name = f"{steps}{'' if kernel == USUAL_KERNEL else '-' + kernel}"
        if name not in self._models and self.parent is not None:
            mine = {study.name for study in self.studies}
            shared = self.parent.models(steps, kernel)
            self._models[name] = shared.only(np.array([name in mine for name in shared.names]))
        if name not in self._models:
            missing = sum(f"{study.digest}-{name}" not in self.kept for study in self.studies)
            studies = self.progress(self.studies, missing) if missing else self.studies
            fit = SourceFit(self.columns, kernel=kernel)
            self._models[name] = SourceModels(
                tuple(self._model(study, fit, steps, name) for study in studies)
            )
        return self._models[name]

    def _model(self, study: SourceStudy, fit: SourceFit, normalise: str, name: str) -> SourceModel:
        steps, key = normaliser_named(normalise).steps, f"{study.digest}-{name}"
        known = self.kept.get(key)
        if known is not None:
            try:
                return fit.restored(study, steps, known)
            except (ScrimpError, KeyError, TypeError, ValueError):
                pass  # made by another version: fit anew
        state = fit.hyperparameters(study, steps)
        self.kept[key] = state
        return fit.restored(study, steps, state)


NOTHING = Past()
