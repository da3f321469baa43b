"""Objectives by name: there and back, and what is refused."""

from pathlib import Path

import pytest

import scrimp
from scrimp.errors import ObjectiveError
from scrimp.executors.command_line import Command
from scrimp.history.events import StudyChanged
from scrimp.history.limits import Totals
from scrimp.tuning.objectives import described, imported, refuse_token_scheme, resolved


def test_there_and_back() -> None:
    assert (
        resolved(described("os.path:join"))
        is imported("os.path:join")
        is __import__("os").path.join
    )
    command = resolved(described(Command("python train.py --lr {lr}", "/data")))
    assert isinstance(command, Command)
    assert command.words == ("python", "train.py", "--lr", "{lr}") and command.folder == "/data"


def test_a_study_records_what_it_evaluates() -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    assert study.history.objective is None
    study._ledger.append([StudyChanged(objective=described("train:objective"))])
    study._ledger.append([StudyChanged(totals=Totals(n_trials=3))])
    assert study.history.objective == {"function": "train:objective"}


def test_modules_of_the_current_folder_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_this_folder.py").write_text(
        "class Task:\n    @staticmethod\n    def run(trial): return 7\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    assert imported("module_of_this_folder:Task.run")(None) == 7


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("train", "module:function"),
        ("train:", "module:function"),
        ("os; import x:y", "module:function"),
        ("../train:objective", "module:function"),
        ("no_such_module:objective", "PYTHONPATH"),
        ("os.path:joyn", "did you mean 'join'"),
        ("os:sep", "function of a trial"),
    ],
)
def test_what_is_refused(path: str, words: str) -> None:
    with pytest.raises(ObjectiveError, match=words.replace("(", r"\(")):
        imported(path)


@pytest.mark.parametrize(
    "record",
    [{}, {"pickle": "gASV"}, {"function": 3}, {"command": "rm"}, {"command": ["rm"], "folder": 3}],
)
def test_other_records_are_refused(record: dict[str, object]) -> None:
    with pytest.raises(ObjectiveError, match="no function and no command"):
        resolved(record)


def test_what_was_signed_with_a_token_must_be_recorded_again() -> None:
    refuse_token_scheme(described("train:objective"), "s")
    with pytest.raises(ObjectiveError, match=r"study 's' was signed with a token.*scrimp key new"):
        refuse_token_scheme({**described("train:objective"), "signature": "ab" * 32}, "s")
