"""Environments of peers: complete ones are left alone, unknown names are refused."""

from pathlib import Path

import pytest

from benchmarks import environments


@pytest.fixture(autouse=True)
def folder_of_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ROOT", tmp_path)


def test_a_complete_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments.venv, "create", lambda *_, **__: pytest.fail("built again"))
    folder = environments.ROOT / "optuna"
    folder.mkdir()
    assert not environments.is_complete("optuna")
    (folder / "installed.txt").write_text(environments.stamp_text("optuna"))
    assert environments.main(["optuna"]) == 0
    (folder / "installed.txt").write_text("optuna>=4\n")
    assert not environments.is_complete("optuna")  # other requirements: to be built again


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert environments.main(["optunna"]) == 2
    assert (
        "unknown peer 'optunna'; known: optuna, botorch, syne-tune, smac, hebo, training, neps"
        in capsys.readouterr().out
    )
