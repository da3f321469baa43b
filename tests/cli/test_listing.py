"""Tables and long lines: as wide as the terminal, tab-separated in a pipe."""

import pytest

import scrimp
from scrimp.cli.listing import print_rows, print_trials, say, width
from scrimp.showing.trial_columns import TableQuery

NAMES = {f"parameter_{number}": scrimp.Float(0, 1) for number in range(9)}


def wide(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """As on a terminal of so many columns."""
    monkeypatch.setattr("os.isatty", lambda descriptor: True)
    monkeypatch.setenv("COLUMNS", str(columns))


@pytest.fixture
def study() -> scrimp.Study:
    made = scrimp.create_study(
        "s", scrimp.Space(NAMES), metric="error", method="random", storage="memory://", seed=0
    )
    return made.optimize(lambda trial: 0.1 * trial.id, n_trials=25)


def test_a_pipe_gets_tabs_and_everything(
    study: scrimp.Study, capsys: pytest.CaptureFixture[str]
) -> None:
    assert width() is None
    print_trials(study.history, TableQuery())
    print_rows(["a"], [[1.5], [None]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("\t") == ["trial", "status", "best", *NAMES] and len(lines) == 29
    assert lines[-3:] == ["a", "1.5", "-"]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_terminal_gets_one_line_per_trial(
    study: scrimp.Study,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
) -> None:
    wide(monkeypatch, columns)
    print_trials(study.history, TableQuery())
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines).startswith("the best 20 of 25 trials (--top 25 shows")
    table = [line for line in lines if "completed" in line]
    assert len(table) == 20 and all(len(line) <= columns for line in lines)
    assert ("no room for" in " ".join(lines)) == (columns < 200)


def test_long_lines_go_on_between_words(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide(monkeypatch, 30)
    words = "learning_rate=0.001  activation=tanh  weight_decay=1e-07"
    say(words, 6)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines] == [[word] for word in words.split()]
    assert all(line.startswith("      ") for line in lines)
