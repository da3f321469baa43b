"""Integrations without the library they serve."""

import importlib
import sys

import pytest


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("sklearn", "joblib"),
        ("optuna", "optuna"),
        ("hydra", "hydra"),
        ("xgboost", "xgboost"),
        ("lightgbm", "lightgbm"),
        ("lightning", "lightning"),
        ("keras", "keras"),
        ("transformers", "torch"),
        ("configspace", "ConfigSpace"),
        ("ray_tune", "ray"),
    ],
)
def test_the_error_names_the_extra(name: str, needs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [needs, *(one for one in sys.modules if one.startswith(f"{needs}."))]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, f"scrimp.integrations.{name}", raising=False)
    extra = name.replace("_", "-")
    words = rf"needs {needs}\S*, .* pip install 'scrimp\[{extra}\]'"
    with pytest.raises(ImportError, match=words):
        importlib.import_module(f"scrimp.integrations.{name}")
