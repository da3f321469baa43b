"""Filtering, sorting and paging against plain Python."""

from collections.abc import Sequence

import pytest

import scrimp
from scrimp.dashboard import table
from scrimp.dashboard.table import TRIALS_PER_PAGE, Query, table_page
from scrimp.study_log.history import History


@pytest.fixture(scope="module")
def history(url: str) -> History:
    return scrimp.load_study("staged", storage=url).history


def test_pages_hold_every_trial_once(history: History) -> None:
    first, second = (
        table_page(history, Query("id", page=number, descending=False)) for number in (1, 2)
    )
    assert first.pages == 2 and first.total == 60 and len(first.trials) == TRIALS_PER_PAGE
    assert [trial.id for trial in (*first.trials, *second.trials)] == list(range(60))
    assert table_page(history, Query(page=99)).query.page == 2


@pytest.mark.parametrize(
    "column", ["best", "value", "lr", "budget", "depth", "kind", "status", "id"]
)
def test_sorting_both_ways_with_the_unknown_last(history: History, column: str) -> None:
    def key(trial: scrimp.Trial) -> object:
        return (
            trial.config.get(column)
            if column in ("lr", "depth", "kind")
            else getattr(trial, column)
        )

    for descending in (False, True):
        pages = [
            table_page(history, Query(sort=column, descending=descending, page=number))
            for number in (1, 2)
        ]
        shown = [key(trial) for page in pages for trial in page.trials]
        known = [value for value in shown if value is not None]
        assert known == sorted(known, reverse=descending)  # type: ignore[type-var]
        assert all(value is None for value in shown[len(known) :]) and len(shown) == 60


def test_filters(history: History) -> None:
    failed = table_page(history, Query(status="failed"))
    assert failed.total == history.counts["failed"] and {
        trial.status for trial in failed.trials
    } == {"failed"}
    found = table_page(history, Query(text='KIND="<B>bold</b>"'))
    assert found.total == sum(trial.config["kind"] == "<b>bold</b>" for trial in history.trials) > 0
    assert table_page(history, Query(text='"out of memory"')).total == history.counts["failed"]
    odd = table_page(history, Query(text="kimd=a"))
    assert odd.total == 60 and "there is no 'kimd'" in odd.error and "kind" in odd.error
    empty = table_page(history, Query(text="no such thing"))
    assert (empty.total, empty.pages, empty.trials) == (0, 1, ())


def test_addresses_say_what_is_shown() -> None:
    query = Query(sort="lr", descending=False, status="failed", text="a&b=c", page=3)
    assert Query.of(query.parts()) == query
    assert Query.of(query.sorted_by("lr")) == Query("lr", True, "failed", "a&b=c", 1)
    assert Query.of(query.sorted_by("id")).sort == "id"


@pytest.mark.parametrize(
    "given", [{"page": "-3"}, {"page": "x"}, {"page": "9" * 40}, {"status": "odd"}, {"sort": "odd"}]
)
def test_nonsense_is_ignored(history: History, given: dict[str, str]) -> None:
    page = table_page(history, Query.of(given))
    assert page.query.sort == "best" and page.query.page in (1, 2) and page.total == 60


def test_choices_of_several_types_have_an_order() -> None:
    space = scrimp.Space(k=scrimp.Categorical(["b", 2, True, "a"]))
    study = scrimp.create_study("k", space, method="grid", storage="memory://", seed=0)
    study.optimize(lambda trial: 0.0, n_trials=4)
    page = table_page(study.history, Query(sort="k", descending=False))
    assert [trial.config["k"] for trial in page.trials] == [True, 2, "a", "b"]


def test_the_front_comes_first_and_by_the_first_metric() -> None:
    study = scrimp.create_study(
        "two",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "speed": "maximize"},
        method="random",
        storage="memory://",
        seed=0,
    )
    for error, speed in ((0.6, 1.0), (0.5, 5.0), (0.2, 2.0), (0.3, 1.0)):
        study.tell(study.ask(), {"error": error, "speed": speed})
    study.tell(study.ask(), state="failed")
    page = table_page(study.history, Query())
    assert [trial.id for trial in page.trials] == [2, 1, 3, 0, 4] and page.front == {1, 2}
    turned = table_page(study.history, Query.of(page.query.sorted_by("front")))
    assert [trial.id for trial in turned.trials] == [3, 0, 2, 1, 4]
    fast = table_page(study.history, Query("speed", descending=True))
    assert [trial.id for trial in fast.trials][:2] == [1, 2]


def test_a_new_trial_costs_one_place_and_not_a_new_order(monkeypatch: pytest.MonkeyPatch) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=60)
    placed: list[int] = []
    real = table.Filter.of

    def counted(self: table.Filter, trials: Sequence[scrimp.Trial]) -> list[scrimp.Trial]:
        placed.extend(trial.id for trial in trials)
        return real(self, trials)

    monkeypatch.setattr(table.Filter, "of", counted)
    for page in (1, 2, 1):
        assert table_page(study.history, Query(page=page)).total == 60
    assert placed == list(range(60))
    study.tell(study.ask(), 0.5)
    shown = table_page(study.history, Query())
    assert placed[60:] == [60] and shown.total == 61
    values = [
        trial.best
        for page in (1, 2)
        for trial in table_page(study.history, Query(page=page)).trials
    ]
    assert values == sorted(values)  # type: ignore[type-var]
    study.tell(study.ask(), -1.0)
    assert table_page(study.history, Query()).trials[0].value == -1.0


def test_a_kept_table_is_the_one_made_again() -> None:
    """Whatever happened to the trials meanwhile, filters and attributes included."""
    space = scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", 1, True]))
    study = scrimp.create_study("s", space, method="random", storage="memory://", seed=1)
    queries = [
        Query(),
        Query("kind"),
        Query("kind", descending=False),
        Query(status="completed"),
        Query(text="x>0.4", sort="x"),
        Query(text="done=1"),
        Query(text="completed"),
    ]
    for number in range(70):
        trial = study.ask()
        if number % 7:
            study.tell(trial, round(trial.params["x"], 1), state=None)
        elif number % 14:
            study.tell(trial, state="failed", message="completed half")
        if number % 5 == 0:
            study.set_user_attr("done", 1, trial=trial)
        again = History.of(study.history.events)
        for query in queries:
            assert table_page(study.history, query) == table_page(again, query)
