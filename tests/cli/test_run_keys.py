"""scrimp key: a pair in two files, and its name."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography", reason="signing needs it: pip install 'scrimp[signing]'")


def test_a_pair_is_made_and_named(run: Any, tmp_path: Path) -> None:
    made = run("key", "new", str(tmp_path / "ann.key"))
    assert made.exit_code == 0 and f"SCRIMP_PUBLIC_KEY={tmp_path}/ann.key.pub" in made.stdout
    fingerprint = made.stdout.split()[1]
    assert run("key", "show", str(tmp_path / "ann.key.pub")).stdout.split() == [fingerprint]
    assert "PRIVATE KEY" not in made.stdout and (tmp_path / "ann.key").stat().st_mode & 0o077 == 0
