"""Scores from files that evaluations write."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import TableError
from scrimp.selection.results import harness_scores, read_result

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
        ("r.json", '{"score": "high"}', "no number"),
        ("r.csv", "task,score\narc,1\n", "no score of mmlu"),
        ("other.txt", "", "cannot be read"),
    ],
)
def test_files_without_the_score(tmp_path: Path, name: str, text: str, words: str) -> None:
    (tmp_path / name).write_text(text)
    path = tmp_path / ("r.json" if name == "other.txt" else name)
    with pytest.raises(TableError, match=words):
        read_result(path, 7, "mmlu")
