"""A selection as TOML: paths relative to its folder, patterns, and one command around the
user's."""

import sys
from pathlib import Path

import pytest

from scrimp.errors import StudyError
from scrimp.formats.selection_file import read_selection_file

HEAD = f"""
name = "s"
tasks = ["a", "b"]
command = "{sys.executable} run.py --model {{checkpoint}} --task {{task}}"
"""


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> None:
    """The script that the command names."""
    (tmp_path / "run.py").touch()


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "select.toml"
    path.write_text(
        'checkpoints = [3, 1.5, "final"]\nresults = "out/{task}/{checkpoint}.json"\nmetric ='
        ' "acc"\nscores = "known.csv"\n'
        + HEAD
        + "weights = {a = 2}\nseed = 3\n[run]\nshare = 0.2\nretries = 4\nworkers = 3\n"
    )
    plan = read_selection_file(path)
    assert plan.name == "s" and plan.storage is None and plan.scores == tmp_path / "known.csv"
    assert plan.question["checkpoints"] == [3, 1.5, "final"] and plan.question["weights"] == {
        "a": 2.0
    }
    assert plan.run["share"] == 0.2 and plan.run["workers"] == 3 and "retries" not in plan.run
    words = plan.command.arguments({"checkpoint": 1.5, "task": "b"}, {"python": "PY"})
    assert words == [
        *(
            "PY",
            "-m",
            "scrimp.selection.cell_command",
            "--checkpoint=1.5",
            "--task=b",
            "--retries=4",
        ),
        *("--results=out/b/1.5.json", "--metric=acc", "--"),
        *(sys.executable, "run.py", "--model", "1.5", "--task", "b"),
    ]
    assert plan.command.folder == tmp_path


def test_a_pattern_is_sorted_by_the_numbers_in_names(tmp_path: Path) -> None:
    for step in (900, 1000, 80):
        (tmp_path / "ckpt" / f"step-{step}").mkdir(parents=True)
    path = tmp_path / "select.toml"
    path.write_text('checkpoints = "ckpt/step-*"\n' + HEAD)
    assert read_selection_file(path).question["checkpoints"] == [
        "ckpt/step-80",
        "ckpt/step-900",
        "ckpt/step-1000",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "is no TOML"),
        ("name = 3", "name"),
        (HEAD, "checkpoints"),
        ("checkpoints = []\n" + HEAD, "checkpoints"),
        ("checkpoints = [1]\nsteps = 3\n" + HEAD, "line 2, steps: there is no such key"),
        ("chekpoints = [1]\n" + HEAD, "line 1, chekpoints: .*did you mean 'checkpoints'"),
        (
            "checkpoints = [1]\n" + HEAD + "[run]\nworkers = 0\n",
            "line 7, run.workers: is 0; it must be",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "select.toml"
    path.write_text(text)
    with pytest.raises(StudyError, match=words):
        read_selection_file(path)
    with pytest.raises(StudyError, match="cannot read"):
        read_selection_file(tmp_path / "none.toml")


def test_every_mistake_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "select.toml"
    path.write_text(
        'checkpoints = "nowhere/*"\nname = "s"\ntasks = ["a"]\ncommand = "true {task}"\n'
    )
    with pytest.raises(StudyError, match="has 2 mistakes") as refused:
        read_selection_file(path)
    assert "line 1, checkpoints: no file" in str(refused.value)
    assert "line 4, command: " in str(refused.value) and "{checkpoint}" in str(refused.value)
