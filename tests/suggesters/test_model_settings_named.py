"""Surrogates by name."""

import pytest

from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.suggesters import model_settings
from scrimp.suggesters.model_settings import (
    OWN_MODEL,
    ModelSettings,
    register_surrogate,
    untransformed,
)
from scrimp.surrogates.exact_gp import ExactGP


def test_the_models_of_scrimp_and_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_settings, "_SURROGATES", model_settings._SURROGATES.copy())
    handed = []

    def make(columns):
        handed.append(tuple(columns))
        return ExactGP.over(columns, "rbf-ard")

    register_surrogate("mine", make)
    assert isinstance(model_settings._SURROGATES[OWN_MODEL]((Column(),)), ExactGP)
    both = (Column(), Column())
    assert isinstance(untransformed(both, ModelSettings(surrogate="mine")), ExactGP)
    assert handed[-1] == both
    with pytest.raises(MethodError, match="surrogate 'gp' is already registered"):
        register_surrogate("gp", make)
