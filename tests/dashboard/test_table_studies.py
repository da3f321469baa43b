"""The list of studies is searched and sorted."""

import pytest

import scrimp
from scrimp.dashboard.table import Query, Row, ordered
from scrimp.dashboard.views import current_record


@pytest.fixture(scope="module")
def rows(url: str) -> list[Row]:
    known = [
        Row(0, name, current_record(scrimp.load_study(name, storage=url)))
        for name in ("staged", "fallen")
    ]
    return [*known, Row(0, "broken", error="its log is damaged")]


@pytest.mark.parametrize(
    ("sort", "descending", "names"),
    [
        ("name", False, ["broken", "fallen", "staged"]),
        ("trials", True, ["staged", "fallen", "broken"]),
        ("trials", False, ["fallen", "staged", "broken"]),
        ("best", False, ["staged", "fallen", "broken"]),
        ("failed", True, ["staged", "fallen", "broken"]),
        ("created", True, ["fallen", "staged", "broken"]),
        ("state", False, ["staged", "fallen", "broken"]),
    ],
)
def test_every_column_with_the_unknown_last(
    rows: list[Row], sort: str, descending: bool, names: list[str]
) -> None:
    assert [row.name for row in ordered(rows, Query(sort, descending))] == names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("asha", ["staged"]),
        ("FINISHED val_error", ["staged"]),
        ("damaged", ["broken"]),
        ("none", []),
    ],
)
def test_every_word_must_be_there(rows: list[Row], text: str, names: list[str]) -> None:
    assert [row.name for row in ordered(rows, Query("name", text=text))] == names


def test_addresses() -> None:
    order = Query("best", False, text="a&b")
    assert Query.of(order.parts()) == order
    assert Query.of(order.sorted_by("best")).descending
    assert Query.of(order.sorted_by("trials", True)) == Query("trials", True, text="a&b")
    assert not Query.of(order.sorted_by("name")).descending


def test_a_study_is_found_by_each_of_its_metrics(url: str) -> None:
    row = Row(0, "several", current_record(scrimp.load_study("several", storage=url)))
    for text in ("error", "latency"):
        assert ordered([row], Query("name", text=text)) == [row]
