"""Names of acquisitions."""

from dataclasses import dataclass

import pytest

from scrimp.acquisition import named_acquisitions as catalog
from scrimp.acquisition.improvement import (
    ExpectedImprovement,
    LogExpectedImprovement,
    LowerConfidenceBound,
    ProbabilityOfImprovement,
)
from scrimp.acquisition.named_acquisitions import (
    create_acquisition,
    register_acquisition,
)
from scrimp.acquisition.several_models import ThompsonSampling
from scrimp.errors import MethodError


@dataclass(frozen=True)
class Mine(LowerConfidenceBound):
    kappa: float = 9.0


def test_names_stand_for_their_classes():
    assert create_acquisition("log-ei") == LogExpectedImprovement()
    assert create_acquisition("ei", margin=0.1) == ExpectedImprovement(margin=0.1)
    assert create_acquisition("pi") == ProbabilityOfImprovement()
    assert create_acquisition("ucb", kappa=3.0) == LowerConfidenceBound(kappa=3.0)
    assert create_acquisition("thompson") == ThompsonSampling()


def test_an_outside_acquisition_is_selectable_by_name(monkeypatch):
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    register_acquisition("mine", Mine)
    register_acquisition("mine", Mine)  # importing a module twice is no mistake
    assert "mine" in catalog._FACTORIES
    assert create_acquisition("mine", kappa=1.0) == Mine(kappa=1.0)
    with pytest.raises(MethodError, match="already registered"):
        register_acquisition("mine", LowerConfidenceBound)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("logei", {}, "did you mean 'log-ei'"),
        ("nonsense", {}, "name the plugin that registers it"),
        ("ucb", {"beta": 1.0}, "no setting 'beta'; it has kappa"),
        ("thompson", {"kappa": 1.0}, "it has none"),
    ],
)
def test_unknown_names_and_settings_are_refused(name, settings, message):
    with pytest.raises(MethodError, match=message):
        create_acquisition(name, **settings)
