"""``scrimp import`` at the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import StudyError


def test_results_become_a_study(run: Callable[..., Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    (tmp_path / "old.csv").write_text("lr,val_error\n0.1,0.5\n0.2,0.25\n")
    said = run(
        "import", str(tmp_path / "old.csv"), "--metric", "val_error", "--storage", url
    ).stdout
    assert said == "imported 2 trials as study 'old'\n"
    assert scrimp.load_study("old", storage=url).best_params == {"lr": 0.2}
    run(
        "import",
        str(tmp_path / "old.csv"),
        "--study",
        "again",
        "--metric",
        "val_error",
        "--direction",
        "maximize",
        "--storage",
        url,
    )
    assert scrimp.load_study("again", storage=url).best_params == {"lr": 0.1}


def test_exports_come_back(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    run("export", "small", "--out", str(tmp_path / "s.json"), "--storage", small)
    run("import", str(tmp_path / "s.json"), "--study", "copy", "--storage", small)
    one, two = (scrimp.load_study(name, storage=small) for name in ("small", "copy"))
    assert two.best_value == one.best_value and two.history.problem == one.history.problem


def test_what_is_wrong_is_told(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no file"):
        run("import", str(tmp_path / "none.csv"), "--storage", f"sqlite:///{tmp_path / 's.db'}")
