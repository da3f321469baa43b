"""Environments of peers: complete ones are left alone, unknown names are refused."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "environments.py"
    specification = importlib.util.spec_from_file_location("environments", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def test_a_complete_environment_is_left_alone(
    environments: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments.venv, "create", lambda *_, **__: pytest.fail("built again"))
    folder = environments.ROOT / "optuna"
    folder.mkdir()
    assert not environments.is_complete("optuna")
    (folder / "installed.txt").write_text(environments.stamp_text("optuna"))
    assert environments.main(["optuna"]) == 0
    (folder / "installed.txt").write_text("optuna>=4\n")
    assert not environments.is_complete("optuna")  # other requirements: to be built again


def test_unknown_names_are_refused(
    environments: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert environments.main(["optunna"]) == 2
    assert (
        "unknown peer 'optunna'; known: optuna, botorch, syne-tune, smac, training, neps"
        in capsys.readouterr().out
    )
