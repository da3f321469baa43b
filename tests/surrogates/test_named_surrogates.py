"""Surrogates by name."""

import pytest

from scrimp.errors import MethodError
from scrimp.gp.columns import Column
from scrimp.surrogates import named_surrogates as catalog
from scrimp.surrogates.exact_gp import ExactGP
from scrimp.surrogates.named_surrogates import OWN_MODEL, register_surrogate, surrogate_by_name


def test_the_models_of_scrimp_and_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    handed = []

    def make(columns):
        handed.append(tuple(columns))
        return ExactGP.over(columns, "rbf-ard")

    register_surrogate("mine", make)
    assert isinstance(surrogate_by_name(OWN_MODEL, (Column(),)), ExactGP)
    assert (
        isinstance(surrogate_by_name("mine", (Column(), Column())), ExactGP) and len(handed[0]) == 2
    )
    with pytest.raises(MethodError, match="surrogate 'gp' is already registered"):
        register_surrogate("gp", make)
