"""Reading score tables from CSV."""

import pytest

from scrimp.checkpoints.score_files import read_scores
from scrimp.errors import TableError


def write(tmp_path, text: str):
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_are_steps_and_sorted(tmp_path):
    path = write(tmp_path, "task,checkpoint,score,stderr\nb,200,0.5,0.01\na,50,0.4,\nb,50,,\na,200,nan,\n")
    table = read_scores(path)
    assert table.checkpoints == (50, 200)
    assert table.tasks == ("b", "a")
    assert table.steps.tolist() == [50.0, 200.0]
    assert table.scores[1, 0] == 0.5
    assert table.errors[1, 0] == 0.01
    assert table.seen.sum() == 2
    assert table.failed.tolist() == [[False, False], [False, True]]


def test_names_keep_their_order(tmp_path):
    table = read_scores(write(tmp_path, "checkpoint,task,score\nlate,a,0.5\nearly,a,0.4\n"))
    assert table.checkpoints == ("late", "early")
    assert table.steps.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column 'checkpoint'"),
        ("checkpoint,task\n1,a\n", "no column 'score'"),
        ("checkpoint,task,score\n", "has no rows"),
        ("checkpoint,task,score\n1,a,good\n", "line 2: the score 'good' is no number"),
        ("checkpoint,task,score\n1,,0.5\n", "line 2: a row must name its checkpoint and its task"),
        ("checkpoint,task,score\n1,a,0.5\n1.0,a,0.6\n", "has the score 0.5 already and is now given as 0.6"),
        ("checkpoint,task,score\n1,a,inf\n", "beyond"),
        ("checkpoint,task,score\n-1,a,0.5\n", "not negative"),
    ],
)
def test_bad_files_are_refused_with_their_name(tmp_path, text, message):
    with pytest.raises(TableError, match=message):
        read_scores(write(tmp_path, text))


def test_equal_duplicates_are_one_cell(tmp_path):
    assert read_scores(write(tmp_path, "checkpoint,task,score\n1,a,0.5\n1,a,0.5\n")).seen.sum() == 1


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(TableError, match=r"nowhere\.csv cannot be read"):
        read_scores(tmp_path / "nowhere.csv")
