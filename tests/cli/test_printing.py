"""Nothing that others wrote drives the terminal, and no password is repeated."""

import ast
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.cli.printing import command_to_copy, echo, say

PACKAGE = Path(scrimp.__file__).parent
ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\r\x08\u202e\x00"


def test_lines_and_tabs_stay_and_escapes_go(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"a\tb {ESCAPES}c\nd", err=True)
    said = capsys.readouterr().err
    assert said.startswith("a\tb �[2J�]0;title�") and said.endswith("c\nd\n")
    assert all(letter.isprintable() or letter in "\t\n" for letter in said)


def test_the_command_speaks_through_it_alone() -> None:
    """Every text of a command passes `echo`, or is a table of cells made printable."""
    found = []
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        calls = (
            node.func
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call)
        )
        spoken = {ast.unparse(function) for function in calls} & {
            "typer.echo",
            "print",
            "click.echo",
            "typer.secho",
        }
        found += [f"{path.name}: {name}" for name in spoken]
    assert found == ["printing.py: typer.echo"]


def test_escapes_in_names_and_messages_reach_no_terminal(run: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    name, text = "evil", ESCAPES.strip("\x00")
    space = scrimp.Space({f"p{text}": scrimp.Float(0, 1), "c": scrimp.Categorical([text, "b"])})
    study = scrimp.create_study(
        name, space, metric=f"m{text}", method="random", storage=url, seed=0
    )
    study.tell(study.ask(), 0.5)
    study.tell(study.ask(), state="failed", message=text)
    for words in (
        ["studies"],
        ["show", name],
        ["best", name],
        ["explain", name, "0"],
        ["export", name],
        ["delete", "x"],
    ):
        try:
            done = run(*words, "--storage", url)
        except scrimp.errors.ScrimpError:
            continue  # `main` prints errors, through `echo`
        if words[0] != "export":  # into a pipe it writes what there is
            assert done.exit_code == 0
            assert all(letter.isprintable() or letter in "\t\n" for letter in done.output), words


@pytest.mark.parametrize(
    "word",
    [
        "postgresql://ann:hunter2@db/hpo",
        "--storage=postgresql://ann:hunter2@db/hpo",
        "postgresql://ann:hun@ter2:hunter2@db/hpo",
        "postgresql://ann@db/hpo?password=hunter2",
        "postgresql://ann@db/hpo?sslpassword=hunter2&x=1",
        "s3://key:hunter2@bucket",
    ],
)
def test_passwords_are_left_out_of_commands_to_copy(word: str) -> None:
    shown = command_to_copy(["scrimp", "run", "s.toml", word])
    assert (
        "hunter2" not in shown and "PGPASSWORD" in shown and shown.startswith("scrimp run s.toml ")
    )


def test_other_options_of_a_url_stay() -> None:
    url = "postgresql://ann:hunter2@db/hpo?host=/run&sslpassword=hunter2&sslmode=require"
    assert "'postgresql://ann@db/hpo?host=/run&sslmode=require'" in command_to_copy([url])


@pytest.mark.parametrize(
    "words",
    [
        ["sqlite:///a b.db"],
        ["postgresql://ann@db/hpo?host=/run"],
        ["--lr={lr}"],
        ["--space", "x=float(0,1)"],
    ],
)
def test_other_words_stay_as_they_are(words: list[str]) -> None:
    import shlex

    assert command_to_copy(words) == shlex.join(words)


def test_long_lines_are_wrapped_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setenv("COLUMNS", "30")
    words = "learning_rate=0.001  activation=tanh  weight_decay=1e-07"
    say(words, 6)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [[word] for word in words.split()]
    assert all(line.startswith("      ") for line in lines)
