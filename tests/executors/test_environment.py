"""Scripts inherit everything but our secrets."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.executors.environment import PASS, SECRETS, inherited

SECRET = "hunter2secret"


def test_secrets_stay_here() -> None:
    given = {
        **dict.fromkeys(SECRETS, SECRET),
        "PATH": "/bin",
        "SCRIMP_PUBLIC_KEY": "k.pub",
        "PGHOST": "db",
    }
    assert inherited(given) == {"PATH": "/bin", "SCRIMP_PUBLIC_KEY": "k.pub", "PGHOST": "db"}
    passed = inherited({**given, PASS: "PGPASSWORD, OTHER"})
    assert passed["PGPASSWORD"] == SECRET and "SCRIMP_PRIVATE_KEY" not in passed


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("sqlite:///s.db", True),
        ("postgresql://ann@db/hpo?sslmode=require", True),
        (f"postgresql://ann:{SECRET}@db/hpo", False),
        (f"postgresql://ann@db/hpo?password={SECRET}", False),
    ],
)
def test_a_storage_with_a_password_is_a_secret(url: str, kept: bool) -> None:
    assert ("SCRIMP_STORAGE" in inherited({"SCRIMP_STORAGE": url})) is kept


def seen(trial: Any) -> float:
    import os

    assert not [name for name, value in os.environ.items() if "hunter2secret" in value]
    return 1.0


@pytest.mark.parametrize("kind", ["script", "function"])
def test_neither_scripts_nor_worker_processes_see_them(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS - {"SCRIMP_PRIVATE_KEY", "SCRIMP_TOKEN"}:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("SCRIMP_STORAGE", f"postgresql://ann:{SECRET}@db/hpo")
    monkeypatch.setenv("THEIRS", "is passed on")
    script = tmp_path / "look.sh"
    script.write_text(f"env > {tmp_path}/seen; echo 'scrimp: {{\"value\": 1}}'")
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "s", space, method="random", storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    if kind == "script":
        study.optimize(scrimp.Command(["sh", str(script)]), n_trials=1)
        text = (tmp_path / "seen").read_text()
        assert SECRET not in text and "THEIRS=is passed on" in text
    else:
        study.optimize(seen, n_trials=1, workers=2)
    assert study.best_value == 1.0
