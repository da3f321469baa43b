"""Creating, loading, listing and deleting; the questions that are refused."""

import importlib.metadata
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import MethodError, ScrimpError, SpaceError, StorageError, StudyError
from scrimp.storage.backup import copy_study
from scrimp.study.studies import checkpoint_root, storage_at

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"space": {"x": (0, 1)}}, StudyError, "scrimp.Space"),
        ({"direction": "down"}, StudyError, "'down'"),
        ({"metric": ""}, StudyError, "metric is ''"),
        ({"seed": -1}, StudyError, "seed is -1"),
        ({"seed": 1.5}, StudyError, "seed is 1.5"),
        ({"constraints": {"m": 16}}, StudyError, "AtMost"),
        ({"budget": 5}, StudyError, "budget is 5"),
        ({"cost": 5}, StudyError, "cost is 5"),
        ({"noisy": "x"}, StudyError, "noisy is 'x'"),
        ({"constraints": {"m": scrimp.AtMost(float("nan"))}}, StudyError, "nan"),
        ({"method": "gaussian"}, MethodError, "gaussian"),
        ({"method": "gp:krnel=rbf-ard"}, MethodError, "krnel"),
        ({"storage": "scrimp.db"}, StorageError, "sqlite:///scrimp.db"),
        ({"storage": "mongodb://host/db"}, StorageError, "mongodb"),
        ({"storage": "sqlite://"}, StorageError, "names no file"),
        ({"storage": "sqlite:///missing/folder/s.db"}, StorageError, "folder"),
        ({"name": ""}, StudyError, "name"),
        ({"name": "a\x00b"}, StudyError, "name"),
        ({"name": "x" * 500}, StudyError, "name"),
        ({"name": 7}, StudyError, "7"),
    ],
)
def test_what_cannot_be_created_is_refused_with_its_reason(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, Any],
    kind: type[ScrimpError],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments: dict[str, Any] = {
        "name": "s",
        "space": SPACE,
        "storage": "memory://",
        "method": "random",
    } | change
    name, space = arguments.pop("name"), arguments.pop("space")
    with pytest.raises(kind, match=words):
        scrimp.create_study(name, space, **arguments)
    assert list(tmp_path.iterdir()) == []  # nothing was left behind


@pytest.mark.parametrize(
    "budget",
    [("epoch", 10, 1), ("epoch", 0, 5), ("epoch", 1, float("inf")), ("", 1, 5), ("epoch", True, 5)],
)
def test_senseless_budgets_are_refused(budget: tuple[Any, ...]) -> None:
    with pytest.raises(StudyError, match="budget"):
        scrimp.Budget(*budget)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("dear diary " * 500)
    with pytest.raises(StorageError, match=r"notes\.txt"):
        scrimp.create_study("s", SPACE, storage=f"sqlite:///{tmp_path}/notes.txt", method="random")
    assert (tmp_path / "notes.txt").read_text().startswith("dear diary")


def test_an_unknown_study_names_its_neighbours(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("digits", SPACE, storage=url, method="random")
    with pytest.raises(StudyError, match="digits"):
        scrimp.load_study("digit", storage=url)


def test_the_default_storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCRIMP_STORAGE", raising=False)
    scrimp.create_study("here", SPACE, method="random")
    assert (tmp_path / "scrimp.db").exists()
    monkeypatch.setenv("SCRIMP_STORAGE", f"sqlite:///{tmp_path}/other.db")
    scrimp.create_study("there", SPACE, method="random")
    assert scrimp.studies() == ["there"]


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "nul\n", "x" * 190, "ünï"])
def test_checkpoint_folders_cannot_leave_their_parent(tmp_path: Path, name: str) -> None:
    storage = storage_at(f"sqlite:///{tmp_path}/s.db")
    root = checkpoint_root(storage, name)()
    assert root.parent == tmp_path / "s-checkpoints" and len(root.name) < 100


def test_distinct_names_have_distinct_folders(tmp_path: Path) -> None:
    storage = storage_at(f"sqlite:///{tmp_path}/s.db")
    assert len({checkpoint_root(storage, name)() for name in ("a/b", "a-b", "a b")}) == 3


def test_a_bad_space_is_a_space_error() -> None:
    with pytest.raises(SpaceError, match=r"low is 1\.0"):
        scrimp.Space(lr=scrimp.Float(1.0, 0.1))


def test_two_who_create_at_once_share_the_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both look, find nothing, and create: one does, the other joins."""
    url, space = f"sqlite:///{tmp_path}/s.db", scrimp.Space(x=scrimp.Float(0, 1))
    first = scrimp.create_study("s", space, storage=url, seed=0)
    place = storage_at(url)
    answers = [[], ["s"]]
    monkeypatch.setattr(type(place), "names", lambda self: answers.pop(0))
    second = scrimp.create_study("s", space, storage=place, seed=0, load_if_exists=True)
    assert second.name == "s" and second.history.length == first.history.length and answers == []


def saved(name: str, url: str, word: str) -> scrimp.Study:
    """A study with one completed trial whose checkpoint says ``word``."""
    study = scrimp.create_study(
        name, SPACE, method="random", storage=url, seed=0, load_if_exists=True
    )

    def objective(trial: Any) -> float:
        (trial.checkpoint_dir / "model").write_text(word)
        return 1.0

    return study.optimize(objective, n_trials=1)


def test_studies_of_one_name_share_no_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files with the same stem, or a folder of checkpoints that two storages share: each study has
    its own."""
    for chosen in ("", str(tmp_path / "shared")):
        monkeypatch.setenv("SCRIMP_CHECKPOINTS", chosen)
        urls = [f"sqlite:///{tmp_path}/a{len(chosen)}.{ending}" for ending in ("db", "sqlite")]
        first, second = (saved("digits", url, url) for url in urls)
        assert [(study.best_checkpoint / "model").read_text() for study in (first, second)] == urls
        scrimp.delete_study("digits", storage=urls[1])
        assert (first.best_checkpoint / "model").read_text() == urls[
            0
        ] and not second._checkpoints().exists()


def test_a_study_made_again_shares_nothing_with_the_one_before(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    old = saved("s", url, "old")
    folder = old._checkpoints()
    scrimp.delete_study("s", storage=url)
    assert not folder.exists()
    new = saved("s", url, "new")
    assert new._checkpoints() != folder and (new.best_checkpoint / "model").read_text() == "new"


def test_a_copy_without_metadata_makes_studies(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", nothing)
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    assert study.history.created.versions["scrimp"] == "unknown"


def trained(url: str) -> scrimp.Study:
    """A study with two checkpoints, run once."""
    study = scrimp.create_study(
        "digits", SPACE, method="random", storage=url, seed=0, load_if_exists=True
    )
    return study.optimize(saves, n_trials=2, keep="all")


def saves(trial: Any) -> float:
    (trial.checkpoint_dir / "weights").write_text(f"trial {trial.id}")
    return float(trial.params["x"])


def weights(url: str) -> str:
    study = scrimp.load_study("digits", storage=url)
    return (study.best_checkpoint / "weights").read_text()


@pytest.mark.parametrize("copy", ["backup.db", "a.sqlite", "file"])
def test_a_copy_of_a_study_leaves_the_checkpoints_of_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: str
) -> None:
    if copy != "a.sqlite":
        monkeypatch.setenv("SCRIMP_CHECKPOINTS", str(tmp_path / "shared"))
    first, second = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/{copy}"
    trained(first)
    if copy == "file":
        with sqlite3.connect(tmp_path / "a.db") as database:
            database.execute("pragma wal_checkpoint(truncate)")
        shutil.copy(tmp_path / "a.db", tmp_path / "file")
    else:
        copy_study(storage_at(first), storage_at(second), "digits")
    kept = weights(first)
    other = scrimp.load_study("digits", storage=second)
    assert other._checkpoints() != scrimp.load_study("digits", storage=first)._checkpoints()
    other.optimize(lambda trial: saves(trial) - 1.0, n_trials=4)
    assert weights(first) == kept and weights(second) != kept
    scrimp.delete_study("digits", storage=second)
    assert weights(first) == kept


@pytest.mark.parametrize("gone", ["study", "database"])
def test_a_copy_keeps_its_checkpoints_when_the_original_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    monkeypatch.setenv("SCRIMP_CHECKPOINTS", str(tmp_path / "shared"))
    first, second = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    trained(first)
    copy_study(storage_at(first), storage_at(second), "digits")
    other = scrimp.load_study("digits", storage=second)
    other.optimize(lambda trial: saves(trial) - 1.0, n_trials=4)
    kept, folder = weights(second), other._checkpoints()
    if gone == "study":
        scrimp.delete_study("digits", storage=first)
    else:
        (tmp_path / "a.db").unlink()
    assert weights(second) == kept
    assert scrimp.load_study("digits", storage=second)._checkpoints(claim=True) == folder
    scrimp.delete_study("digits", storage=second)
    assert not folder.exists()


def test_a_database_that_was_moved_keeps_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIMP_CHECKPOINTS", str(tmp_path / "shared"))
    trained(f"sqlite:///{tmp_path}/a.db")
    kept = weights(f"sqlite:///{tmp_path}/a.db")
    for path in tmp_path.glob("a.db*"):
        path.rename(tmp_path / path.name.replace("a.db", "b.db"))
    moved = f"sqlite:///{tmp_path}/b.db"
    assert weights(moved) == kept
    trained(moved)
    scrimp.delete_study("digits", storage=moved)
    assert not any((tmp_path / "shared").iterdir())
