"""Reading score tables from CSV, JSON and folders of results."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scrimp.checkpoint_selection.score_files import (
    harness_scores,
    read_result,
    read_results_folder,
    read_scores,
    sample_costs,
    write_scores,
)
from scrimp.checkpoint_selection.score_table import ScoreTable
from scrimp.errors import TableError


def write(tmp_path, text: str):
    path = tmp_path / "scores.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_numbers_are_steps_and_sorted(tmp_path):
    path = write(
        tmp_path, "task,checkpoint,score,stderr\nb,200,0.5,0.01\na,50,0.4,\nb,50,,\na,200,nan,\n"
    )
    table = read_scores(path)
    assert table.checkpoints == (50, 200)
    assert table.tasks == ("b", "a")
    assert table.steps.tolist() == [50.0, 200.0]
    assert table.scores[1, 0] == 0.5
    assert table.errors[1, 0] == 0.01
    assert table.seen.sum() == 2
    assert table.failed.tolist() == [[False, False], [False, True]]


def test_a_wide_table_has_a_column_per_task(tmp_path):
    text = "checkpoint,mmlu,arc,mmlu_stderr\n200,0.5,nan,0.01\n50,0.4,,\n"
    table = read_scores(write(tmp_path, text))
    assert table.checkpoints == (50, 200) and table.tasks == ("mmlu", "arc")
    assert table.scores[1, 0] == 0.5 and table.errors[1, 0] == 0.01
    assert table.seen.tolist() == [[True, False], [True, False]]
    assert table.failed.tolist() == [[False, False], [False, True]]
    assert read_scores(write(tmp_path, text.replace("checkpoint", "step"))).tasks == table.tasks
    with pytest.raises(TableError, match="cell 3: the score 'good' is not a number"):
        read_scores(write(tmp_path, "checkpoint,a,b\n1,0.5,0.5\n2,good,0.5\n"))
    with pytest.raises(TableError, match="two columns of one name"):
        read_scores(write(tmp_path, "checkpoint,a,a\n1,0.5,0.5\n"))


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
        ("checkpoint,task,score\n1,a,good\n", "line 2: the score 'good' is not a number"),
        ("checkpoint,task,score\n1,,0.5\n", "line 2: a row must name its checkpoint and its task"),
        (
            "checkpoint,task,score\n1,a,0.5\n1.0,a,0.6\n",
            "has the score 0.5 already and is now given as 0.6",
        ),
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


def test_json_in_both_forms(tmp_path):
    rows = [
        {"checkpoint": 200, "task": "a", "score": 0.5, "stderr": 0.1},
        {"checkpoint": 100, "task": "b", "score": None},
    ]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(rows))
    table = read_scores(path)
    assert (
        table.checkpoints == (100, 200) and table.tasks == ("a", "b") and table.scores[1, 0] == 0.5
    )
    assert table.errors[1, 0] == 0.1 and table.seen.sum() == 1
    path.write_text(
        json.dumps(
            {"200": {"a": 0.5}, "100": {"a": {"score": 0.4, "stderr": 0.2}, "b": float("nan")}}
        )
    )
    table = read_scores(path)
    assert (
        table.scores[:, 0].tolist() == [0.4, 0.5]
        and table.errors[0, 0] == 0.2
        and table.failed[0, 1]
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "cannot be read"),
        ("[1, 2]", "not a table of scores"),
        ('[{"task": "a"}]', "entry 1: a row must name"),
    ],
)
def test_json_that_is_no_table(tmp_path, text, words):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(TableError, match=words):
        read_scores(path)


def test_a_folder_of_harness_results(tmp_path):
    for name, value in (("step1000", 0.6), ("step200", 0.4), ("step1000/again", 0.7)):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        record = {
            "results": {
                "arc": {"acc,none": value, "acc_stderr,none": 0.01},
                "piqa": {"acc,none": 0.5},
            }
        }
        file = folder / "results_2024.json"
        file.write_text(json.dumps(record))
        os.utime(file, (1000 * value, 1000 * value))
    table = read_scores(tmp_path)
    assert table.checkpoints == ("step200", "step1000") and table.tasks == ("arc", "piqa")
    assert table.scores[:, 0].tolist() == [0.4, 0.7] and table.errors[0, 0] == 0.01
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match="no results_"):
        read_scores(tmp_path / "empty")
    (tmp_path / "step1000" / "results_broken.json").write_text('{"config": 1}')
    with pytest.raises(TableError, match="results_broken"):
        read_scores(tmp_path)


def test_what_is_written_is_read_again(tmp_path):
    table = ScoreTable.empty([100, 200], ["a", "b"]).with_scores(
        [(100, "a", 0.1 + 0.2, 0.01), (200, "b", -3.0, None)]
    )
    write_scores(table.with_failures([(200, "a")]), tmp_path / "s.csv")
    again = read_scores(tmp_path / "s.csv")
    assert again.checkpoints == (100, 200) and again.tasks == ("a", "b")
    np.testing.assert_array_equal(again.scores, table.scores)
    np.testing.assert_array_equal(again.errors, table.errors)
    assert again.failed.tolist() == [[False, False], [True, False]]


def test_a_file_of_results_that_was_cut_short_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step, text in ((10, '{"results": {"arc": {"acc,none": 0.5}}}'), (20, '{"results": {"ar')):
        (tmp_path / str(step)).mkdir()
        (tmp_path / str(step) / "results_1.json").write_text(text)
    (tmp_path / "30").mkdir()
    assert list(read_results_folder(tmp_path).checkpoints) == [10]
    assert "results_1.json is left out" in caplog.text


def test_a_group_with_a_score_stands_for_its_members(tmp_path: Path) -> None:
    record = {
        "results": {
            "mmlu": {"acc,none": 0.5},
            "law": {"acc,none": 0.4},
            "piqa": {"acc,none": 0.7},
            "math": {"acc,none": 0.1},
        },
        "group_subtasks": {"mmlu": ["law"], "plain": ["math"]},
        "n-samples": {
            "law": {"original": 90, "effective": 30},
            "piqa": {"original": 10, "effective": 10},
            "math": {"original": 20, "effective": 20},
        },
    }
    (tmp_path / "10").mkdir()
    (tmp_path / "10" / "results_1.json").write_text(json.dumps(record))
    assert list(read_results_folder(tmp_path).tasks) == ["mmlu", "piqa", "math"]
    assert sample_costs(tmp_path, ["mmlu", "piqa"]) == {"mmlu": 3.0, "piqa": 1.0}
    with pytest.raises(TableError, match="how many samples 'gsm8k' has; run it once"):
        sample_costs(tmp_path, ["gsm8k"])


# --- single results -------------------------------------------------------------------------------


HARNESS = {
    "results": {
        "arc_easy": {
            "alias": "arc_easy",
            "acc,none": 0.61,
            "acc_stderr,none": 0.01,
            "acc_norm,none": 0.58,
            "acc_norm_stderr,none": 0.011,
        },
        "gsm8k": {
            "alias": "gsm8k",
            "exact_match,strict-match": 0.2,
            "exact_match_stderr,strict-match": 0.02,
            "exact_match,flexible-extract": 0.3,
            "exact_match_stderr,flexible-extract": "N/A",
        },
        "wikitext": {
            "alias": "wikitext",
            "word_perplexity,none": 12.5,
            "word_perplexity_stderr,none": "N/A",
        },
        "empty": {"alias": "empty"},
    },
    "higher_is_better": {
        "arc_easy": {"acc": True, "acc_norm": True},
        "wikitext": {"word_perplexity": False},
    },
}


def test_harness_results() -> None:
    assert harness_scores(HARNESS) == {
        "arc_easy": (0.61, 0.01),
        "gsm8k": (0.2, 0.02),
        "wikitext": (-12.5, None),
    }
    assert harness_scores(HARNESS, "acc_norm") == {"arc_easy": (0.58, 0.011)}
    assert harness_scores(HARNESS, "exact_match,flexible-extract") == {"gsm8k": (0.3, None)}
    old = {"results": {"arc_easy": {"acc": 0.5, "acc_stderr": 0.02, "acc_norm": 0.4}}}
    assert harness_scores(old) == {"arc_easy": (0.5, 0.02)}
    assert harness_scores({"results": {"wikitext": {"word_perplexity": 12.5}}}) == {
        "wikitext": (-12.5, None)
    }


def test_a_folder_stands_for_its_newest_results(tmp_path: Path) -> None:
    for place, (name, value) in enumerate(
        [("m/results_2024-01-01.json", 0.1), ("m/results_2024-01-02.json", 0.2)]
    ):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"results": {"arc": {"acc,none": value}}}))
        os.utime(file, (1000 + place, 1000 + place))
    assert read_result(tmp_path, 1, "arc") == (0.2, None)
    (tmp_path / "m" / "results_2024-01-03.json").write_text(
        json.dumps({"results": {"other": {"acc,none": 0.9}}})
    )
    assert read_result(tmp_path, 1, "arc") == (0.2, None)  # the newest knows another task only
    with pytest.raises(TableError, match="none of its 3 files of results has a score of mmlu"):
        read_result(tmp_path, 1, "mmlu")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("r.json", '{"score": 0.5, "stderr": 0.1}', (0.5, 0.1)),
        ("r.json", '{"mmlu": 0.5, "arc": 0.4}', (0.5, None)),
        ("r.json", '{"mmlu": {"score": "0.5", "stderr": null}}', (0.5, None)),
        ("r.json", "0.5", (0.5, None)),
        (
            "r.json",
            '[{"checkpoint": 7, "task": "mmlu", "score": 0.5}, {"checkpoint": 8, "score": 1}]',
            (0.5, None),
        ),
        (
            "r.csv",
            "checkpoint,task,score,stderr\n7,arc,0.1,\n7,mmlu,0.5,0.02\n8,mmlu,0.9,\n",
            (0.5, 0.02),
        ),
        ("r.csv", "score\n0.5\n", (0.5, None)),
    ],
)
def test_plain_files(tmp_path: Path, name: str, text: str, expected: Any) -> None:
    (tmp_path / name).write_text(text)
    assert read_result(tmp_path / name, 7, "mmlu") == expected
    assert read_result(tmp_path, 7, "mmlu") == expected


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("r.json", "{", "cannot be read"),
        ("r.json", '{"arc": 1}', "no score of mmlu"),
        ("r.json", '{"score": "high"}', "not a number"),
        ("r.csv", "task,score\narc,1\n", "no score of mmlu"),
        ("other.txt", "", "cannot be read"),
    ],
)
def test_files_without_the_score(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    path = tmp_path / ("r.json" if name == "other.txt" else name)
    with pytest.raises(TableError, match=words):
        read_result(path, 7, "mmlu")
