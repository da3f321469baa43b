"""What is imported by name, and what a record in a storage cannot get imported."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scrimp.errors import PluginError
from scrimp.plugins import plugins
from scrimp.plugins.plugins import (
    VARIABLE,
    installed_plugins,
    load_available,
    load_recorded,
    loading,
    name_plugins,
    named_plugins,
)


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing named stays named, and nothing imported stays imported."""
    monkeypatch.setattr(plugins, "_named", {})
    monkeypatch.delenv(VARIABLE, raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("toy_"):
            del sys.modules[name]


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


def announced(folder: Path, name: str, value: str) -> None:
    """What installing a package leaves: its metadata with an entry point."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[scrimp.plugins]\n{name} = {value}\n")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_named_modules_are_imported_and_handed_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(folder, "toy_named", "from scrimp.plugins.plugins import loading\nWHO = loading()\n")
    assert name_plugins(["toy_named", "toy_named"]) == ("toy_named",)
    assert sys.modules["toy_named"].WHO == "toy_named" and loading() is None
    monkeypatch.setenv(VARIABLE, "toy_other, toy_named,")
    assert named_plugins() == ("toy_named", "toy_other")


def test_modules_of_the_current_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(tmp_path, "toy_here", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    name_plugins(["toy_here"])
    assert "toy_here" in sys.modules


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be found: install it, start in its folder"),
        ("import toy_missing", "imports 'toy_missing', which is not installed"),
        ("1 / 0", r"fails on import \(ZeroDivisionError: division by zero\): fix it"),
        ("def", "fails on import .SyntaxError"),
    ],
)
def test_a_plugin_that_does_not_load_is_an_error(
    folder: Path, text: str | None, words: str
) -> None:
    if text is not None:
        module(folder, "toy_broken", text)
    with pytest.raises(PluginError, match=f"plugin 'toy_broken'.*{words}"):
        name_plugins(["toy_broken"])
    assert named_plugins() == ()


@pytest.mark.parametrize("name", ["", "a b", "os; import sys", "../evil", "a..b", ".a", "a:b", 7])
def test_only_names_of_modules_are_names(name: str) -> None:
    for load in (lambda: name_plugins([name]), lambda: load_recorded([name], "s")):
        with pytest.raises(PluginError, match="not a module name"):
            load()


def test_a_text_is_no_list() -> None:
    with pytest.raises(PluginError, match=r"such as \['toy'\]"):
        name_plugins("toy")


def test_a_record_alone_gets_nothing_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module(folder, "toy_recorded", "raise SystemExit('was run')")
    with pytest.raises(
        PluginError, match=r"study 's' needs the plugin 'toy_recorded'.*--plugin toy_recorded"
    ):
        load_recorded(["toy_recorded"], "s")
    module(folder, "toy_recorded", "")
    monkeypatch.setenv(VARIABLE, "toy_recorded")
    load_recorded(["toy_recorded"], "s")
    assert "toy_recorded" in sys.modules
    monkeypatch.delenv(VARIABLE)
    load_recorded(["toy_recorded"], "s")  # what runs already


def test_an_installed_package_is_loaded_by_its_entry_point(folder: Path) -> None:
    module(folder, "toy_installed", "CALLED = []\ndef setup():\n    CALLED.append(1)\n")
    announced(folder, "toy", "toy_installed:setup")
    load_recorded(["toy_installed"], "s")
    load_available()
    load_available()
    assert sys.modules["toy_installed"].CALLED == [1]


def test_an_installed_plugin_that_fails_is_said_and_no_more(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    module(folder, "toy_failing", "1 / 0")
    announced(folder, "toy", "toy_failing")
    load_available()
    assert "plugin 'toy_failing' fails on import" in caplog.text
    assert [(name, error is None) for name, error in installed_plugins()] == [
        ("toy_failing", False)
    ]
    with pytest.raises(PluginError, match="toy_failing"):
        load_recorded(["toy_failing"], "s")


def test_what_the_variable_names_must_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "toy_nowhere")
    with pytest.raises(PluginError, match="toy_nowhere"):
        load_available()


@pytest.mark.parametrize("given", [5, None, "own_parts"])
def test_plugins_that_are_no_list_are_refused(given):
    with pytest.raises(PluginError, match="give a list of module names"):
        name_plugins(given)
