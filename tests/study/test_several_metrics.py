"""A study of several metrics, from the front door: asked, told, stored, resumed, stopped, refused."""

import json
import math

import pytest

import scrimp
from scrimp.errors import MethodError, ReportError, StudyError
from scrimp.explain.replay import replay
from scrimp.formats.exports import json_record
from scrimp.formats.imports import read_results, store_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.storage.memory import MemoryStorage
from scrimp.study.stopping import NoImprovement, TargetReached
from scrimp.study_log.history import History
from scrimp.study_log.record import StudyRecord
from scrimp.study_log.trial import INFEASIBLE_STANDING

SPACE = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))
METRICS = {"error": "minimize", "speed": "maximize"}


def created(method="random", metrics=METRICS, **settings):
    storage = settings.pop("storage", "memory://")
    return scrimp.create_study(
        "s", SPACE, metrics=metrics, method=method, storage=storage, seed=0, **settings
    )


def measure(params):
    return {"error": params["x"] + 0.3 * params["y"], "speed": params["x"] ** 2 - params["y"]}


def run(trial):
    for step in trial.steps():
        values = measure(trial.params)
        trial.report(error=values["error"] + 1.0 / step, speed=values["speed"])


def test_metrics_are_told_by_name_and_the_front_is_sorted_by_the_first():
    study = created()
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, measure(trial.params))
    errors = [report.metrics["error"] for _, report in study.front]
    speeds = [report.metrics["speed"] for _, report in study.front]
    assert errors == sorted(errors) and speeds == sorted(speeds) and len(errors) > 1
    assert study.metrics == METRICS and study.metric == "error"
    assert study.hypervolume({"error": 2.0, "speed": -1.0}) > 0
    assert study.best(weights={"error": 1.0})[0].id == study.front[0][0].id
    assert study.knee[0].id in {trial.id for trial, _ in study.front}


@pytest.mark.parametrize("name", ["best_trial", "best_params", "best_value", "best_checkpoint"])
def test_what_has_one_answer_only_says_what_to_use(name):
    study = created()
    study.tell(study.ask(), {"error": 1.0, "speed": 2.0})
    with pytest.raises(StudyError, match=r"study\.front"):
        getattr(study, name)


def test_weights_of_the_study_make_one_trial_the_best():
    study = created(weights={"error": 1.0, "speed": 0.0})
    for value in (0.5, 0.2):
        study.tell(study.ask(), {"error": value, "speed": value})
    assert study.best()[0].id == study.best_trial.id == 1
    with pytest.raises(StudyError, match="no best value"):
        _ = study.best_value


def test_bad_reports_are_refused_and_lose_nothing():
    study = created()
    trial = study.ask()
    with pytest.raises(ReportError, match="2 metrics; report them by name"):
        study.tell(trial, 0.5)
    with pytest.raises(ReportError, match="'speed' was not reported"):
        study.tell(trial, {"error": 0.5})
    assert study.tell(trial, {"error": 0.5, "speed": 1.0}).status == "completed"


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_metric_that_is_not_finite_fails_the_trial(bad):
    study = created()
    failed = study.tell(study.ask(), {"error": 0.5, "speed": bad})
    assert failed.status == "failed" and "speed is" in failed.message
    assert failed.loss is None and study.front == []
    with pytest.raises(StudyError, match="failed"):
        _ = study.knee


def test_a_study_is_read_again_from_its_storage(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    settings = {
        "reference": {"error": 2.0, "speed": -1.0},
        "goals": {"error": 0.1},
        "weights": {"error": 1.0, "speed": 3.0},
    }
    study = created(storage=url, **settings)
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, measure(trial.params))
    again = scrimp.load_study("s", storage=url)
    assert again.history.problem == study.history.problem
    assert [trial.id for trial, _ in again.front] == [trial.id for trial, _ in study.front]
    assert again.hypervolume() == study.hypervolume()
    adopted = created(storage=url, load_if_exists=True)  # what is left out stays
    assert adopted.history.problem == study.history.problem


def test_one_name_in_metrics_is_a_study_of_one_metric():
    study = created(metrics={"error": "maximize"})
    assert not study.history.problem.several
    assert (study.metric, study.direction) == ("error", "maximize")
    study.tell(study.ask(), 0.5)
    assert study.best_value == 0.5 and [trial.id for trial, _ in study.front] == [0]
    assert study.history.problem.to_json()["metrics"] == {"error": "maximize"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"metrics": None, "goals": {"value": 1.0}}, "the study has one metric"),
        ({"metric": "other"}, "give metrics alone"),
        ({"direction": "maximize"}, "give metrics alone"),
        (
            {"metrics": {"error": "down", "speed": "maximize"}},
            "direction of metric 'error' is 'down'",
        ),
        ({"metrics": {}}, "names to directions"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, words):
    with pytest.raises(StudyError, match=words):
        created(**settings)


def test_methods_of_one_metric_refuse_and_name_the_others():
    with pytest.raises(MethodError, match="'tst-r' optimizes one metric"):
        created(method="tst-r")
    with pytest.raises(MethodError, match="'freeze-thaw' spends training budgets"):
        created(method="freeze-thaw")
    with pytest.raises(MethodError, match=r"'rgpe' optimizes one metric.*'auto'.*random"):
        created("rgpe")


def test_the_record_has_values_and_the_front():
    study = created()
    study.tell(study.ask(), {"error": 0.5, "speed": 1.0, "seconds": 3.0})
    study.tell(study.ask(), state="failed")
    record = StudyRecord.of(study.history).to_json()
    assert json.loads(json.dumps(record)) == record
    assert record["metrics"] == METRICS and record["best"] is None
    first, failed = record["trials"]
    assert first["values"] == {"error": 0.5, "speed": 1.0}
    assert failed["values"] == {"error": None, "speed": None}
    assert [row["trial"] for row in record["front"]] == [0]
    assert record["front"][0]["values"] == first["values"] and record["hypervolume"] > 0
    assert StudyRecord.of(study.history).rows()[0]["metrics_speed"] == 1.0


def test_an_export_is_imported_whole(tmp_path):
    study = created(budget=scrimp.Budget("epoch", 1, 4), method="asha")
    study.optimize(run, n_trials=5, progress=False)
    path = tmp_path / "export.json"
    path.write_text(json.dumps(json_record(study.history)))
    (found,) = read_results(path, ImportSettings())
    again = History.of(store_results(MemoryStorage(), "again", found, 0.0).read())
    assert again.problem == study.history.problem
    assert [(trial.id, point.losses) for trial, point in again.front] == [
        (trial.id, point.losses) for trial, point in study.front
    ]


def test_a_front_is_a_target_and_stands_still():
    study = created()
    target = TargetReached({"error": 0.5, "speed": 1.0})
    still = NoImprovement(2)
    study.tell(study.ask(), {"error": 0.4, "speed": 0.5})
    assert not target.satisfied(study.history, 0.0, 0.0)
    study.tell(study.ask(), {"error": 0.5, "speed": 1.0})
    assert target.satisfied(study.history, 0.0, 0.0)
    study.tell(study.ask(), {"error": 0.6, "speed": 0.9})
    assert not still.satisfied(study.history, 0.0, 0.0)
    study.tell(study.ask(), {"error": 0.6, "speed": 0.8})
    assert still.satisfied(study.history, 0.0, 0.0)
    study.tell(study.ask(), {"error": 0.3, "speed": 0.1})
    assert not still.satisfied(study.history, 0.0, 0.0)
    with pytest.raises(StudyError, match="by name"):
        TargetReached(0.5).satisfied(study.history, 0.0, 0.0)
    with pytest.raises(StudyError, match="leave least out"):
        NoImprovement(2, least=0.1).satisfied(study.history, 0.0, 0.0)


def test_constraints_keep_a_report_off_the_front():
    study = created(constraints={"memory": scrimp.AtMost(1.0)})
    study.tell(study.ask(), {"error": 0.1, "speed": 9.0, "memory": 2.0})
    study.tell(study.ask(), {"error": 0.5, "speed": 1.0, "memory": 0.5})
    study.tell(study.ask(), {"error": 0.2, "speed": 2.0})  # nobody knows
    assert [trial.id for trial, _ in study.front] == [1]


def test_a_metric_may_join_later_and_old_reports_count_where_they_have_it(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    study = created(storage=url, reference={"error": 1.0, "speed": 0.0})
    study.tell(study.ask(), {"error": 0.1, "speed": 9.0})
    study.tell(study.ask(), {"error": 0.5, "speed": 1.0, "memory": 4.0})
    three = {**METRICS, "memory": "minimize"}
    study = created(storage=url, metrics=three, load_if_exists=True)
    assert [trial.id for trial, _ in study.front] == [1]  # the other does not say
    assert study.history.problem.reference == {}
    with pytest.raises(ReportError, match="'memory' was not reported"):
        study.tell(study.ask(), {"error": 0.1, "speed": 9.0})
    study.tell(study.trials[-1], {"error": 0.4, "speed": 1.0, "memory": 5.0})
    assert [trial.id for trial, _ in scrimp.load_study("s", storage=url).front] == [2, 1]
    with pytest.raises(StudyError, match="can be added, but not removed"):
        created(storage=url, load_if_exists=True)
    with pytest.raises(StudyError, match="can be added, but not removed"):
        created(storage=url, metrics={**three, "speed": "minimize"}, load_if_exists=True)


def test_a_study_of_one_metric_may_get_a_second(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    study = created(storage=url, metrics={"error": "minimize"})
    study.tell(study.ask(), {"error": 0.1, "speed": 9.0})
    assert study.best_value == 0.1
    study = created(storage=url, load_if_exists=True)
    assert study.history.best is None and len(study.front) == 1
    url = f"sqlite:///{tmp_path / 'other.db'}"
    created("rgpe", storage=url, metrics={"error": "minimize"})
    with pytest.raises(MethodError, match="optimizes one metric"):
        created(storage=url, load_if_exists=True)


def test_many_metrics_come_with_advice_and_still_work():
    eight = {f"m{place}": "minimize" for place in range(8)}
    with pytest.warns(UserWarning, match="8 metrics.*constraints"):
        study = created(metrics=eight)
    for place in range(4):
        study.tell(study.ask(), {name: (place * 7 + row) % 5 for row, name in enumerate(eight)})
    assert (
        study.hypervolume() > 0
        and study.knee is not None
        and StudyRecord.of(study.history).to_json()
    )


@pytest.mark.parametrize("method", ["gp", "parego", "nsga2", "tpe"])
def test_methods_go_on_where_metrics_say_nothing(method):
    equal, constant = created(method), created(method)
    for count in range(5):
        trial = equal.ask()
        equal.tell(trial, {"error": 1.0, "speed": 1.0})
        assert len(equal.front) == 1 and equal.knee[0].id == 0 and equal.hypervolume() > 0
        trial = constant.ask()
        constant.tell(trial, {"error": trial.params["x"], "speed": 2.0})
        assert constant.knee[1].metrics["error"] == min(t.value for t in constant.trials), count
    assert equal.ask() is not None and constant.ask() is not None


BUDGETED = (
    "asha",
    "asha-stopping",
    "hyperband",
    "sync-sh",
    "sync-hyperband",
    "bohb",
    "sync-bohb",
    "median",
    "dehb",
    "auto",
)


@pytest.mark.parametrize("method", BUDGETED)
def test_rungs_let_the_front_go_on(method):
    study = created(method, budget=scrimp.Budget("epoch", 1, 9))
    study.optimize(run, n_trials=14, progress=False)
    full = [trial for trial in study.trials if trial.budget == 9]
    assert 0 < len(full) < 14
    assert any(trial.id in {one.id for one, _ in study.front} for trial in full)


def test_promotion_takes_the_front_before_what_it_dominates():
    study = created("asha", budget=scrimp.Budget("epoch", 1, 9))
    trials = [study.ask() for _ in range(6)]
    losses = [(5.0, 5.0), (0.0, 4.0), (6.0, 6.0), (4.0, 0.0), (7.0, 7.0), (8.0, 8.0)]
    for trial, (error, slow) in zip(trials, losses, strict=True):
        study.report(trial, step=1, error=error, speed=-slow)
    assert {study.ask().id for _ in range(2)} == {1, 3}
    assert all(
        point.standing < INFEASIBLE_STANDING for trial in study.trials for point in trial.curve
    )


def test_failed_and_retried_trials_leave_and_take_their_places():
    study = created("asha", budget=scrimp.Budget("epoch", 1, 9))
    first, second, third = (study.ask() for _ in range(3))
    for place, trial in enumerate((first, second, third)):
        study.report(trial, step=1, error=float(place), speed=-float(place))
    promoted = study.ask()
    assert promoted.id == 0
    study.tell(promoted, state="failed")
    for place in range(3):
        trial = study.ask()
        if trial.id > 2:
            study.report(trial, step=1, error=5.0 + place, speed=-5.0)
    assert study.retry_failed() == 1
    assert study.ask().id == 0


def test_fronts_of_past_studies_are_tried_first(tmp_path):
    url = f"sqlite:///{tmp_path / 's.db'}"
    past = created(storage=url)
    for error, speed in ((0.1, 1.0), (0.2, 8.0), (0.9, 9.0), (1.0, 0.5)):
        past.tell(past.ask(), {"error": error, "speed": speed})
    other = scrimp.create_study("other", SPACE, metric="loss", method="random", storage=url)
    other.tell(other.ask(), 0.5)
    settings = {"metrics": METRICS, "storage": url, "learn_from": ["s", "other"], "seed": 0}
    new = scrimp.create_study("new", SPACE, method="gp", **settings)
    first = [new.ask().params for _ in range(3)]
    assert [past.trials[number].params for number in (1, 0, 2)] == first  # the knee, then the ends
    assert not new.history.queue
    learning = scrimp.create_study("learning", SPACE, **settings)
    assert all(learning.ask().params in first for _ in range(3))
    related = scrimp.create_study(
        "third", SPACE, metrics=METRICS, storage=url, learn_from="all", seed=0
    )
    assert {source.study for source in related.history.sources} == {"s", "new", "learning"}


def test_decisions_of_several_metrics_are_replayed():
    study = created("gp")
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, measure(trial.params))
    assert all(outcome.same for outcome in replay(study.history.events))
