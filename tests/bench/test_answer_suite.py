"""Selections by question replayed on tables of answers: what is recorded, and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest

from scrimp.bench.answer_suite import METHODS, answer_cells, answer_summary, run_answers
from scrimp.errors import TableError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table of 12 checkpoints and 300 questions of three tasks; the last one is best by far."""
    rng = np.random.default_rng(0)
    ability = np.linspace(0.2, 0.5, 12)
    ability[-1] = 0.9
    correct = (ability[:, None] > rng.random((12, 300))).astype(np.uint8)
    np.savez(
        tmp_path / "answers.npz",
        rows=np.arange(12),
        tasks=np.array(["a", "b", "c"]),
        task_of_item=np.repeat([0, 1, 2], [50, 100, 150]),
        correct=correct,
        meta=json.dumps({"ordered": True}),
    )
    return tmp_path / "answers.npz"


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_a_clear_winner(path: Path, method: str) -> None:
    (cell,) = answer_cells([path], [method], (0.3, 0.6), 1)
    record = run_answers(cell)
    assert record["share"] == [0.3, 0.6]
    assert record["loss"] == [0.0, 0.0] and record["top1"] == [1.0, 1.0]
    stated = method in ("auto", "race", "margins")
    assert (record["probability_best"] != [None, None]) == stated
    assert (record["interval_covers"] != [None, None]) == stated


def test_a_race_spends_no_more_than_its_share(path: Path) -> None:
    from scrimp.bench import answer_suite

    table = answer_suite._table(path)
    book = answer_suite.AnswerBook(answer_suite.Questions(table.sizes), 12, 0)
    race = answer_suite.QuestionRace(book, 100.0, 0)
    while race.round is not None:
        for part in list(race.open_parts()):
            race.record(part.row, part.task, np.zeros(part.end - part.start))
        race.advance()
    assert race.spent <= 100.0


def test_large_unordered_tables_are_drawn_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "many.npz",
        rows=np.arange(300).astype(str),
        tasks=np.array(["a"]),
        task_of_item=np.zeros(20, int),
        correct=rng.integers(0, 2, (300, 20)),
    )
    from scrimp.bench.answer_suite import _table

    table = _table(tmp_path / "many.npz")
    first, again, other = (table.drawn(seed).correct for seed in (0, 0, 1))
    assert first.shape == (60, 20)
    assert (first == again).all() and (first != other).any()


def test_the_summary_has_a_row_per_method(path: Path) -> None:
    cells = answer_cells([path], ["auto", "uniform"], (0.3,), 2)
    head, rows = answer_summary([run_answers(cell) for cell in cells])  # type: ignore[misc]
    assert head == ["loss / top-1", "0.3", "CPU s per run"]
    assert [row[0] for row in rows] == ["auto", "uniform"]
    assert rows[0][1] == "0.0000 ± 0.0000 / 1.00"


def test_what_is_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="there are auto"):
        answer_cells([path], ["best"], (0.1,), 1)
    with pytest.raises(TableError, match="not between 0 and 1"):
        answer_cells([path], ["auto"], (2.0,), 1)
    (tmp_path / "bad.npz").write_bytes(b"nothing")
    with pytest.raises(TableError, match="not a table of answers"):
        answer_cells([tmp_path / "bad.npz"], ["auto"], (0.1,), 1)


def test_margins_of_a_table_change_what_is_compared(path: Path) -> None:
    with np.load(path) as file:
        known = dict(file)
    rng = np.random.default_rng(1)
    known["correct"] = (rng.random((12, 300)) < 0.5).astype(float)
    known["margin"] = np.linspace(-3, 3, 12)[:, None] + 0.1 * rng.standard_normal((12, 300))
    np.savez(path.with_name("margins.npz"), **known)
    (cell,) = answer_cells([path.with_name("margins.npz")], ["margins"], (0.1,), 1)
    from scrimp.bench import answer_suite

    table = answer_suite._table(Path(cell.source))
    row, _ = METHODS["margins"](table, 360.0, 0)
    assert row >= 10  # the answers are random; only the margins tell


def test_answers_in_other_files_are_tables_too(tmp_path: Path) -> None:
    rows = [
        {"checkpoint": row, "task": "a", "question": question, "score": float(row > question)}
        for row in range(5)
        for question in range(8)
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (cell,) = answer_cells([file], ["auto"], (1.0,), 1)
    assert run_answers(cell)["loss"] == [0.0]
    file = tmp_path / "b.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:-1]))
    with pytest.raises(TableError, match="lacks the answer of 4 to question 7 of 'a'"):
        answer_cells([file], ["auto"], (1.0,), 1)
