"""The live display on a terminal and in a notebook, plain lines in a pipe, and silence."""

import io

import pytest

import scrimp
from scrimp.tuning.progress import Progress


def study_with(values: list[float]) -> scrimp.Study:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        method="random",
        storage="memory://",
    )
    study.optimize(lambda trial: values[trial.id], n_trials=len(values))
    return study


def test_it_is_silent_unless_enabled(capfd: pytest.CaptureFixture[str]) -> None:
    study = study_with([1.0])
    with Progress(lambda: 0.0) as display:
        display.update(study.history)
    assert capfd.readouterr() == ("", "")


def test_in_a_pipe_it_is_plain_lines_when_the_best_changes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="a[red]\x1b[2J",
        method="random",
        storage="memory://",
    )
    with Progress(lambda: 0.0, enabled=True) as display:
        for value in (0.5, 0.7, 0.2):
            study.tell(study.ask(), value)
            display.update(study.history)
    shown = capfd.readouterr()
    lines = shown.err.splitlines()
    assert shown.out == "" and len(lines) == 2 and "\x1b" not in shown.err
    assert "best a[red]�[2J 0.5 (trial 0)" in lines[0] and "0.2 (trial 2)" in lines[1]


def test_plain_lines_come_every_minute_and_name_the_first_failures(
    capfd: pytest.CaptureFixture[str],
) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    now = [0.0]
    with Progress(lambda: now[0], enabled=True) as display:
        for number in range(5):
            study.tell(
                study.ask(), state="failed", message=f"code 1\nTraceback\nError: number {number}"
            )
            display.update(study.history)
        now[0] = 61.0
        display.update(study.history)
    lines = capfd.readouterr().err.splitlines()
    assert lines[:3] == [
        f"failed: trial {number}: code 1: Error: number {number}" for number in range(3)
    ]
    assert len(lines) == 4 and "5 failed" in lines[3] and "1 min 1 s" in lines[3]


def test_a_notebook_gets_one_card_that_ends_with_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Card:
        def show(self, html: str) -> None:
            shown.append(html)

    monkeypatch.setattr("scrimp.tuning.progress.notebook_card", Card)
    monkeypatch.setattr("scrimp.tuning.progress.CARD_EVERY", 0.0)
    study = study_with([0.5, 0.25])
    assert len(shown) >= 2 and "2 of 2 trials" in shown[-1] and "0.25" in shown[-1]
    count = len(shown)
    study.optimize(lambda trial: 1.0, n_trials=3, progress=False)
    assert len(shown) == count


def test_the_terminal_is_drawn_in_place_and_a_finished_study_has_nothing_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stderr", terminal)
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage="memory://",
        seed=0,
    )

    def objective(trial: scrimp.RunContext) -> None:
        for step in trial.steps():
            trial.report(error=trial.params["x"] + 1 / step)

    study.optimize(objective, n_trials=6)
    last = terminal.getvalue().rpartition("minimize error")[2]
    assert "6 of 6 configurations begun" in last and "% saved" in last
    assert f"{study.history.counts['paused']} paused" in last and "waiting" not in last
