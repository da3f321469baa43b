"""Studies as users meet them: ask, tell, report, enqueue, optimize, resume."""

import math
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ReportError, ScrimpError, StudyError
from scrimp.study.study import answers_to
from scrimp.study_log.events import BudgetGranted, Decided, Reported, TrialAdded

SPACE = scrimp.Space(x=scrimp.Float(0, 1), n=scrimp.Int(1, 5))


def memory(**changes: Any) -> scrimp.Study:
    settings: dict[str, Any] = {"method": "random", "storage": "memory://", "seed": 0}
    return scrimp.create_study("s", SPACE, **settings | changes)


def test_ask_and_tell() -> None:
    study = memory()
    trial = study.ask()
    assert set(trial.params) == {"x", "n"} and trial.status == "running"
    told = study.tell(trial, 0.5, stderr=0.1)
    assert (told.status, told.value) == ("completed", 0.5)
    assert told.last is not None and told.last.stderr == {"value": 0.1}
    assert (
        study.best_params == trial.params and study.best_value == 0.5 and study.best_trial.id == 0
    )


def test_what_is_asked_can_be_read() -> None:
    study = memory(direction="maximize", metric="accuracy", budget=scrimp.Budget("epoch", 1, 9))
    assert (study.space, study.direction, study.metric) == (SPACE, "maximize", "accuracy")
    assert study.budget == scrimp.Budget("epoch", 1, 9) and memory().budget is None


def test_ask_for_several() -> None:
    trials = memory().ask(count=8)
    assert [trial.id for trial in trials] == list(range(8))
    assert len({trial.params["x"] for trial in trials}) == 8


def test_maximize_turns_the_order_but_not_the_values() -> None:
    study = memory(direction="maximize")
    for value in (0.1, 0.9, 0.5):
        study.tell(study.ask(), value)
    assert study.best_value == 0.9 and study.best_trial.id == 1


def test_the_same_seed_gives_the_same_suggestions() -> None:
    def params(seed: int) -> list[Any]:
        study = memory(seed=seed)
        return [study.tell(study.ask(), 1.0).params for _ in range(5)]

    assert params(3) == params(3) != params(4)


def test_enqueued_configurations_come_first_and_in_order() -> None:
    study = memory()
    study.enqueue({"x": 0.25, "n": 2})
    study.enqueue({"x": 0.75, "n": 3})
    assert [study.ask().params for _ in range(2)] == [{"x": 0.25, "n": 2}, {"x": 0.75, "n": 3}]
    assert study.ask().params["x"] not in (0.25, 0.75)


def test_a_partly_enqueued_configuration_is_completed() -> None:
    study = memory()
    study.enqueue({"x": 0.25})
    asked = study.ask().params
    assert asked["x"] == 0.25 and 1 <= asked["n"] <= 5


def test_failed_and_senseless_values_are_failures_with_messages() -> None:
    study = memory()
    assert study.tell(study.ask(), state="failed", message="no memory").message == "no memory"
    told = study.tell(study.ask(), math.nan)
    assert told.status == "failed" and "nan" in told.message
    assert study.tell(study.ask(), 1.0).status == "completed"
    assert study.history.counts["failed"] == 2


def test_constraints_decide_what_is_best() -> None:
    study = memory(constraints={"memory": scrimp.AtMost(16)}, metric="loss")
    study.tell(study.ask(), {"loss": 0.1, "memory": 20.0})
    with pytest.raises(StudyError, match="no feasible value"):
        study.best_value
    study.tell(study.ask(), {"loss": 0.3, "memory": 16.0})
    assert study.best_value == 0.3


def test_reports_with_budgets() -> None:
    study = memory(budget=scrimp.Budget("epoch", 1, 9), method="random", metric="error")
    trial = study.ask()
    assert trial.granted == 9
    assert study.report(trial, step=3, error=0.4, seconds=1.0) is True
    assert study.report(trial, step=9, error=0.5) is False
    done = study.trials[0]
    assert done.status == "completed" and done.value == 0.5
    assert study.best_value == 0.4 and study.best()[1].step == 3
    assert study.best(at="max")[1].loss == 0.5
    assert study.history.spent == 9


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda study: study.tell(99, 1.0), "no trial 99"),
        (lambda study: study.tell("0", 1.0), "no trial '0'"),
        (lambda study: study.tell(study.trials[0], 1.0), "completed already"),
        (lambda study: study.tell(1, None), "None"),
        (lambda study: study.tell(1, "good"), "'good'"),
        (lambda study: study.tell(1, 1.0, state="done"), "'done'"),
        (lambda study: study.tell(1, 1.0, stderr=-1.0), "stderr is -1.0"),
        (lambda study: study.tell(1, {"other": 1.0}), "'value' was not reported"),
        (lambda study: study.report(1, step=2, value=1.0), "beyond its grant"),
        (lambda study: study.report(1, step=0, value=1.0), "not positive"),
    ],
)
def test_bad_tells_are_refused_and_lose_nothing(call: Any, words: str) -> None:
    study = memory()
    study.tell(study.ask(), 1.0)
    study.ask()
    length = study.history.length
    with pytest.raises(ReportError, match=words):
        call(study)
    assert study.history.length == length
    study.tell(1, 2.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda study: study.optimize(len, n_trials=0), "n_trials is 0"),
        (lambda study: study.optimize(len, n_trials=2.5), "n_trials is 2.5"),
        (lambda study: study.optimize(len, n_trials=2, workers=0), "workers is 0"),
        (lambda study: study.optimize(len), "never end"),
        (lambda study: study.optimize("module:f", n_trials=2), "'module:f'"),
        (lambda study: study.optimize(len, n_trials=2, timeout=-1), "timeout is -1"),
        (lambda study: study.optimize(len, n_trials=2, stop=7), "stop is 7"),
        (lambda study: study.optimize(len, n_trials=2, time_limit=5), "workers=2"),
        (
            lambda study: study.optimize(len, n_trials=2, workers=2, gpus_per_worker=64),
            "128 devices",
        ),
        (lambda study: study.ask(count=0), "count is 0"),
        (lambda study: study.best(at="min"), "'min'"),
        (lambda study: study.best_value, "no feasible value yet"),
        (lambda study: study.enqueue({"y": 1}), "'y'"),
        (lambda study: study.enqueue(None), "got None"),
        (lambda study: study.optimize(len, n_trials=2, callbacks=print), "callbacks"),
        (lambda study: study.report(study.ask(), step="a", value=1.0), "step is 'a'"),
        (lambda study: study.tell(1.0, 1.0), "no trial 1.0"),
        (lambda study: scrimp.TargetReached("low"), "'low'"),
        (lambda study: study.enqueue({"x": 7.0}), "7.0"),
    ],
)
def test_bad_calls_are_refused(call: Any, words: str) -> None:
    with pytest.raises(ScrimpError, match=words):
        call(memory())


def test_asking_for_more_than_there_is_gives_what_there_is() -> None:
    pool = scrimp.Pool(
        scrimp.Space(x=scrimp.Float(0, 1)), [{"x": number / 4} for number in range(5)]
    )
    study = scrimp.create_study("p", pool, method="random", storage="memory://", seed=0)
    assert len(study.ask(count=8)) == 5
    with pytest.raises(StudyError, match="every configuration"):
        study.ask(count=2)


def test_enqueuing_twice_is_once_and_works_when_the_method_has_nothing_left() -> None:
    space = scrimp.Space(x=scrimp.Int(0, 3))
    study = scrimp.create_study("e", space, method="grid", storage="memory://", seed=0)
    study.enqueue({"x": 2})
    study.enqueue({"x": 2})
    assert [study.ask().params["x"] for _ in range(4)] == [2, 0, 1, 3]
    study.enqueue({"x": 1})  # tried already
    assert not study.history.queue
    noisy = scrimp.create_study("n", space, method="grid", storage="memory://", seed=0, noisy=True)
    noisy.ask(count=4)
    noisy.enqueue({"x": 1})
    assert noisy.ask().params == {"x": 1}


def test_the_queue_moves_with_a_space_that_grows(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    settings: dict[str, Any] = {
        "storage": url,
        "method": "random",
        "seed": 0,
        "load_if_exists": True,
    }
    scrimp.create_study("q", scrimp.Space(lr=scrimp.Float(0, 1)), **settings).enqueue({"lr": 0.6})
    wider = scrimp.Space(lr=scrimp.Float(0, 1), drop=scrimp.Float(0, 1, default=0.0))
    assert scrimp.create_study("q", wider, **settings).ask().params == {"lr": 0.6, "drop": 0.0}


def test_the_best_at_full_budget_must_be_known_to_be_feasible() -> None:
    study = memory(constraints={"m": scrimp.AtMost(1.0)})
    study.tell(study.ask(), 0.5)  # the constraint was not reported
    with pytest.raises(StudyError, match="no feasible value"):
        study.best(at="max")


@pytest.mark.parametrize("stderr", [math.inf, math.nan, -1.0, "small"])
def test_a_standard_error_must_be_a_finite_number(stderr: Any) -> None:
    study = memory(budget=scrimp.Budget("epoch", 1, 3))
    trial = study.ask()
    for call in (
        lambda: study.tell(trial, 1.0, stderr=stderr),
        lambda: study.report(trial, step=1, value=1.0, stderr=stderr),
    ):
        with pytest.raises(ReportError, match="stderr"):
            call()


def test_numbers_beyond_all_floats_and_words_beyond_unicode_are_failures() -> None:
    study = memory()
    assert study.tell(study.ask(), 10**400).status == "failed"
    told = study.tell(study.ask(), state="failed", message="caf\udce9.csv")
    assert told.message == "caf\\udce9.csv"


def test_decisions_record_what_they_saw() -> None:
    study = memory()
    study.optimize(lambda trial: 1.0, n_trials=3)
    events = study.history.events
    record = [(place, event) for place, event in enumerate(events) if isinstance(event, Decided)]
    assert [note.decision for _, note in record] == [0, 1, 2]
    assert all(note.seen == place for place, note in record)


def test_load_if_exists_resumes_and_lets_the_space_grow(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    first = scrimp.create_study("g", SPACE, storage=url, method="random", seed=0)
    first.optimize(lambda trial: trial.params["x"], n_trials=3)
    with pytest.raises(StudyError, match="exists"):
        scrimp.create_study("g", SPACE, storage=url, method="random", seed=0)
    wider = scrimp.Space(
        x=scrimp.Float(0, 2), n=scrimp.Int(1, 5), k=scrimp.Categorical(["a", "b"], default="a")
    )
    grown = scrimp.create_study(
        "g", wider, storage=url, method="random", seed=0, load_if_exists=True
    )
    assert [trial.params["k"] for trial in grown.trials] == ["a"] * 3
    grown.optimize(lambda trial: trial.params["x"], n_trials=6)
    assert len(grown.trials) == 6 and all("k" in trial.params for trial in grown.trials)
    with pytest.raises(StudyError, match="can grow, but not shrink"):
        scrimp.create_study("g", SPACE, storage=url, method="random", seed=0, load_if_exists=True)


@pytest.mark.parametrize(
    "change",
    [
        {"direction": "maximize"},
        {"metric": "other"},
        {"seed": 9},
        {"cost": "seconds"},
        {"noisy": True},
    ],
)
def test_load_if_exists_refuses_another_question(tmp_path: Path, change: dict[str, Any]) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    settings: dict[str, Any] = {"storage": url, "method": "random", "seed": 0}
    scrimp.create_study("q", SPACE, **settings)
    with pytest.raises(StudyError, match="use another name"):
        scrimp.create_study("q", SPACE, load_if_exists=True, **settings | change)


def test_studies_can_be_listed_and_deleted(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    for name in ("b", "a"):
        scrimp.create_study(name, SPACE, storage=url, method="random")
    assert scrimp.studies(url) == ["b", "a"]
    scrimp.delete_study("b", storage=url)
    assert scrimp.studies(url) == ["a"]
    with pytest.raises(StudyError):
        scrimp.load_study("b", storage=url)
    with sqlite3.connect(tmp_path / "s.db") as database:
        assert database.execute("SELECT count(*) FROM studies").fetchone() == (1,)


def test_dataframe() -> None:
    study = memory()
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    frame = study.dataframe()
    assert list(frame["id"]) == [0, 1, 2] and {
        "value",
        "status",
        "params_x",
        "params_n",
    } <= set(frame.columns)
    # A log can hold a time that is no date.
    planted = Reported(trial=3, step=1.0, metrics={"value": 0.5}, time=1e300)
    grant = BudgetGranted(trial=3, budget=1.0, time=1e9)
    study._ledger.append([TrialAdded(trial=3, config={"x": 0.5, "n": 1}), grant, planted])
    started, ended = study.dataframe()[["started", "ended"]].iloc[3]
    assert started.year == 2001 and math.isnan(ended.year)


def test_another_name_is_answered_with_the_right_one() -> None:
    @answers_to({"n_jobs": "'workers'"})
    def run(workers: int = 1) -> int:
        return workers

    assert run(workers=3) == 3
    with pytest.raises(TypeError, match=r"run\(\) has no argument 'n_jobs'; use 'workers'"):
        run(n_jobs=3)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "right"), [("budget", "total_budget"), ("until", "stop"), ("n_jobs", "workers")]
)
def test_optimize_answers_to_former_and_foreign_names(given: str, right: str) -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage="memory://")
    with pytest.raises(TypeError, match=f"no argument '{given}'; use '{right}'"):
        study.optimize(len, n_trials=1, **{given: 1})  # type: ignore[arg-type]
    assert not study.trials


@pytest.mark.parametrize(
    ("old", "new"),
    [("Trials", "MaxTrials"), ("Seconds", "MaxSeconds"), ("RunContext", "LiveTrial")],
)
def test_former_public_names_say_the_present_ones(old: str, new: str) -> None:
    with pytest.raises(AttributeError, match=f"scrimp.{old} is now called scrimp.{new}"):
        getattr(scrimp, old)
