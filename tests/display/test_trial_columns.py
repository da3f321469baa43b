"""The table of trials: the ones asked for, in order, one line each, with the columns that fit."""

from typing import Literal

import pytest

import scrimp
from scrimp.dashboard.table import Query, table_page
from scrimp.display.trial_columns import (
    TableQuery,
    column_readers,
    fitted,
    padded_lines,
    selected_trials,
    trial_table,
)
from scrimp.errors import StudyError
from scrimp.study_log.record import StudyRecord


def test_the_best_come_first_and_those_without_a_value_last(told: scrimp.Study) -> None:
    table = trial_table(StudyRecord.of(told.history), TableQuery())
    assert table.columns == ("trial", "status", "best", "lr", "kind", "failure")
    assert [row[0] for row in table.rows] == ["1", "0", "2", "3", "4"] and table.matching == 5
    assert table.rows[3][-1] == "CUDA out of memory: Error: no <b>memory</b>"


def test_orders_top_and_status(told: scrimp.Study) -> None:
    def ids(**query: object) -> list[int]:
        return [
            trial.id for trial in selected_trials(StudyRecord.of(told.history), TableQuery(**query))
        ]  # type: ignore[arg-type]

    assert ids(sort="trial") == [0, 1, 2, 3, 4] and ids(sort="-trial") == [4, 3, 2, 1, 0]
    assert ids(sort="-best") == [2, 0, 1, 3, 4]  # the worst first; without a value is still last
    assert ids(status=("failed", "running")) == [3, 4]
    by_lr = [told.trials[number].config["lr"] for number in ids(sort="lr")]
    assert by_lr == sorted(by_lr)
    assert len(trial_table(StudyRecord.of(told.history), TableQuery(top=2)).rows) == 2
    high = scrimp.create_study(
        "h",
        scrimp.Space(x=scrimp.Float(0, 1)),
        direction="maximize",
        method="random",
        storage="memory://",
    )
    for value in (1.0, 3.0, 2.0):
        high.tell(high.ask(), value)
    assert [trial.id for trial in selected_trials(StudyRecord.of(high.history), TableQuery())] == [
        1,
        2,
        0,
    ]


def test_what_the_study_does_not_have_is_refused(told: scrimp.Study) -> None:
    for query, words in (
        (TableQuery(sort="besst"), "did you mean 'best'"),
        (TableQuery(columns=("zzz",)), "there are trial, status, best, last, budget, lr, kind"),
        (TableQuery(status=("done",)), "must be one of running"),
        (TableQuery(top=0), "at least one"),
    ):
        with pytest.raises(StudyError, match=words):
            trial_table(StudyRecord.of(told.history), query)


def test_a_metric_comes_before_a_column_of_its_name(told: scrimp.Study) -> None:
    table = trial_table(
        StudyRecord.of(told.history), TableQuery(columns=("trial", "error", "failure"), top=4)
    )
    assert [row[1] for row in table.rows] == ["0.2", "0.5", "0.9", "-"]
    assert table.rows[3][2].startswith("CUDA out of memory")
    by_error = selected_trials(StudyRecord.of(told.history), TableQuery(sort="-error"))
    assert [trial.id for trial in by_error][:3] == [2, 0, 1]
    assert fitted(table, 40).columns == ("trial", "error", "failure")
    other = scrimp.create_study(
        "o", told.history.problem.space, metric="loss", method="random", storage="memory://"
    )
    other.tell(other.ask(), state="failed", message="no memory")
    assert trial_table(StudyRecord.of(other.history), TableQuery()).columns[-1] == "error"


def test_metrics_constraints_and_attributes_are_columns() -> None:
    study = scrimp.create_study(
        "c", scrimp.Space(x=scrimp.Float(0, 1)), metric="error", constraints={"size": scrimp.AtMost(4)},
        method="random", storage="memory://",
    )  # fmt: skip
    study.tell(study.ask(), {"error": 0.5, "size": 9.0, "f1": 0.75})
    study.set_user_attr("host", "a100", trial=0)
    study.set_note("odd", trial=0)
    assert {"size", "f1", "host"} <= set(column_readers(StudyRecord.of(study.history)))
    table = trial_table(StudyRecord.of(study.history), TableQuery())
    assert (
        table.columns == ("trial", "status", "best", "feasible", "x", "size")
        and table.rows[0][3] == "no"
    )
    wanted = trial_table(
        StudyRecord.of(study.history), TableQuery(columns=("f1", "host", "note", "last"))
    )
    assert wanted.rows == (("0.75", "a100", "odd", "0.5"),)


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_lines_fit_and_no_word_is_broken(width: int) -> None:
    names = {f"parameter_{number}": scrimp.Float(0, 1) for number in range(8)}
    study = scrimp.create_study(
        "w", scrimp.Space(names), metric="error", method="random", storage="memory://"
    )
    study.tell(study.ask(), 0.123456)
    study.tell(
        study.ask(),
        state="failed",
        message="the quick brown fox jumps over the lazy dog again and again",
    )
    full = trial_table(StudyRecord.of(study.history), TableQuery())
    table = fitted(full, width)
    lines = ["  ".join(cells).rstrip() for cells in padded_lines(table)]
    assert len(lines) == 3 and all(len(line) <= max(width, 43) for line in lines)
    assert set(table.columns) | set(table.left_out) == set(full.columns)
    for name in table.columns:
        assert name in lines[0].split()
    message = table.rows[1][-1].removesuffix("…")
    assert full.rows[1][-1].startswith(message) and full.rows[1][-1][len(message) :][:1] in (
        "",
        " ",
    )
    assert len(fitted(full, 1000).left_out) == 0


def test_numbers_stand_at_the_right(told: scrimp.Study) -> None:
    header, *rows = padded_lines(
        trial_table(StudyRecord.of(told.history), TableQuery(columns=("status", "best")))
    )
    assert (
        header == ("status   ", "best")
        and rows[0] == ("completed", " 0.2")
        and rows[-1][1] == "   -"
    )


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_of_equal_trials_the_best_one_comes_first(
    direction: Literal["minimize", "maximize"],
) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "t", space, direction=direction, method="random", storage="memory://"
    )
    trials = [study.ask() for _ in range(4)]
    for place in (2, 0, 3, 1):
        study.tell(trials[place], 0.5)
    assert study.best_trial.id == 2
    assert [trial.id for trial in selected_trials(StudyRecord.of(study.history), TableQuery())] == [
        2,
        0,
        1,
        3,
    ]
    assert [trial.id for trial in table_page(study.history, Query()).trials] == [2, 0, 1, 3]
