"""Commands are imported when they are called."""

import importlib
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from scrimp.cli.lazy import lazy_group
from scrimp.cli.main import COMMANDS


def test_a_listing_imports_nothing() -> None:
    app = typer.Typer(
        cls=lazy_group({"ghost": ("no.such.module:command", "Haunt."), "one": ("x:y", "Be first.")})
    )

    @app.callback()
    def options() -> None:
        """A group."""

    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0 and "Haunt." in result.stdout and "Be first." in result.stdout
    assert isinstance(CliRunner().invoke(app, ["ghost"]).exception, ModuleNotFoundError)
    assert CliRunner().invoke(app, ["gost"]).exit_code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_where_the_list_says_and_has_an_example(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    target = getattr(importlib.import_module(module), attribute)
    if isinstance(target, typer.Typer):
        assert all(
            "Example: scrimp" in (item.callback.__doc__ or "")
            for item in target.registered_commands
        )  # type: ignore[union-attr]
    else:
        assert f"Example: scrimp {name}" in target.__doc__


def test_help_loads_neither_numpy_nor_the_library() -> None:
    script = (
        "import sys; sys.argv = ['scrimp', '--help']\nfrom scrimp.cli.main import app\ntry:"
        " app()\nexcept SystemExit: pass\nassert not {'numpy', 'scipy', 'plotly',"
        " 'scrimp.tuning.study'} & set(sys.modules), 'too much was loaded'"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
