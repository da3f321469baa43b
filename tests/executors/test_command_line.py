"""From a configuration to the arguments of a script."""

from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import ObjectiveError
from scrimp.executors.command_line import Command

PLACES = {"params": "/tmp/p.json", "python": "/usr/bin/python3", "trial": "7", "budget": "9"}


@pytest.mark.parametrize(
    ("line", "config", "expected"),
    [
        ("train", {"lr": 0.1, "n": 3}, ["train", "--lr", "0.1", "--n", "3"]),
        ("{python} train.py", {"lr": 1e-5}, ["/usr/bin/python3", "train.py", "--lr", "1e-05"]),
        ("train --rate {lr}", {"lr": 0.1, "n": 3}, ["train", "--rate", "0.1"]),
        ("train lr={lr},n={n} -x", {"lr": 0.1, "n": 3}, ["train", "lr=0.1,n=3", "-x"]),
        (
            "train --config {params} --id {trial}",
            {"lr": 0.1},
            ["train", "--config", "/tmp/p.json", "--id", "7"],
        ),
        ("train --id {trial}", {"lr": 0.1}, ["train", "--id", "7", "--lr", "0.1"]),
        ("train --lr {lr} --m {m} -z", {"lr": 0.1}, ["train", "--lr", "0.1", "-z"]),
        ("train --lr {lr} --m={m} -z", {"lr": 0.1}, ["train", "--lr", "0.1", "-z"]),
        ("train {m} --lr {lr}", {"lr": 0.1}, ["train", "--lr", "0.1"]),
        (["train", "a b", "{{x}} {lr}"], {"lr": 0.1}, ["train", "a b", "{x} 0.1"]),
        ("train {opt.lr} '{a b}'", {"opt.lr": 0.5, "a b": 1}, ["train", "0.5", "1"]),
        ("train 'a b' {kind}", {"kind": "c d; rm -rf '*'"}, ["train", "a b", "c d; rm -rf '*'"]),
        (
            "train {a} {b} {c}",
            {"a": True, "b": None, "c": "{lr}"},
            ["train", "true", "null", "{lr}"],
        ),
    ],
)
def test_arguments(line: Any, config: dict[str, Any], expected: list[str]) -> None:
    assert Command(line).arguments(config, PLACES) == expected


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sh {rate}", r"\{rate\}.*no such parameter.*did you mean \{lrate\}\?"),
        ("sh {zzz}", "valid are lrate, budget, params"),
        ("sh {budget}", "both a parameter and a placeholder"),
        ("sh {lrate.real}", r"no such parameter; did you mean \{lrate\}"),
        ("sh {lrate[0]}", "a placeholder is a name in braces"),
        ("sh {learning rate}", "quotes around a placeholder with blanks"),
        ("sh {lrate:.3f}", "a placeholder is a name in braces"),
        ("sh {}", "a placeholder is a name in braces"),
        ("sh {lrate", "cannot read.*double literal braces"),
        ("sh 'open", "cannot be split into words: No closing quotation"),
        ("", "write a program and its arguments"),
        ([], "write a program and its arguments"),
        (["sh", 3], "write a program and its arguments"),
        ("no-such-program-here", "does not exist or is not executable .on the PATH"),
        ("./no-such-script", "does not exist or is not executable .in this folder"),
    ],
)
def test_what_cannot_be_is_refused(line: Any, words: str) -> None:
    with pytest.raises(ObjectiveError, match=words):
        Command(line).check(["lrate", "budget"])


def test_programs_are_looked_up_in_the_folder(tmp_path: Path) -> None:
    program = tmp_path / "train.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    Command("./train.sh", folder=tmp_path).check([])
    Command([str(program)]).check([])
    Command("{python} -m train").check([])


@pytest.mark.parametrize(
    "line", ["python {}", "{{python}} -u {}", "bash {} --lr {{lr}}", "python3 {}"]
)
def test_a_script_must_be_there(tmp_path: Path, line: str) -> None:
    (tmp_path / "train.py").write_text("")
    Command(line.format("train.py"), tmp_path).check(["lr"])
    with pytest.raises(ObjectiveError, match=r"script 'trian\.py' of the command does not exist"):
        Command(line.format("trian.py"), tmp_path).check(["lr"])


@pytest.mark.parametrize(
    "line", ["python -m trian", "python -c pass", "bash -lc trian.py", "python {file}", "python"]
)
def test_what_is_no_script_is_not_looked_for(tmp_path: Path, line: str) -> None:
    Command(line, tmp_path).check(["file"])


def test_python_need_not_be_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    command = Command("python -c pass --lr {lr}")
    command.check(["lr"])
    assert command.arguments({"lr": 1}, {"python": "/p"}) == ["/p", "-c", "pass", "--lr", "1"]
    with pytest.raises(ObjectiveError, match="the program 'ruby' of the command does not exist"):
        Command("ruby train.rb").check(["lr"])


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("train --lr {lr}", ["decay"]),
        ("train --lr {lr} --decay {decay}", []),
        ("train --lr {lr} {params}", []),
        ("train --id {trial}", []),
        ("train", []),
    ],
)
def test_parameters_that_a_command_leaves_out(line: str, missing: list[str]) -> None:
    assert Command(line).unnamed(["lr", "decay"]) == missing
