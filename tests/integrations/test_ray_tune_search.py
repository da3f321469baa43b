"""Pausing methods under the loop of Ray Tune, without its actors: what is decided, and when."""

from pathlib import Path

import pytest

pytest.importorskip("ray.tune", reason="Ray Tune is not installed: make test-integrations")

from ray import tune

import scrimp
from scrimp.errors import ReportError, StudyError
from scrimp.integrations.ray_tune import ScrimpScheduler, ScrimpSearch
from tests.integrations.ray_loop import RayLoop

SPACE = scrimp.Space(x=scrimp.Float(0.0, 1.0))
BUDGET = scrimp.Budget("training_iteration", 1, 9)
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


def searching(method: str, **more: object) -> tuple[ScrimpSearch, ScrimpScheduler]:
    given = {"space": SPACE, "metric": "loss", "mode": "min", "budget": BUDGET, "seed": 0, **more}
    search = ScrimpSearch(method, **given)
    return search, ScrimpScheduler(search)


def loop_of(method: str, samples: int = 9, **more: int) -> RayLoop:
    return RayLoop(*searching(method), samples, **more)


def steps(search: ScrimpSearch) -> list[list[float]]:
    return [[point.step for point in trial.curve] for trial in search.study.trials]


def check_curves(loop: RayLoop) -> None:
    """Every step that counts was told once, in order, and came from the trial of that name."""
    for curve in steps(loop.search):
        assert curve == list(range(1, len(curve) + 1))


@pytest.mark.parametrize(
    "method",
    [
        "asha",
        "hyperband",
        "sync-hyperband",
        "bohb",
        "mobster-joint",
        "dyhpo",
        "freeze-thaw",
        "dehb",
    ],
)
@pytest.mark.parametrize("limited", [True, False])
def test_methods_that_pause(method: str, limited: bool) -> None:
    loop = loop_of(method, limited=limited).run()
    check_curves(loop)
    trials = loop.search.study.trials
    assert len(trials) == len(loop.trials) <= 9
    assert {trial.status for trial in trials} <= {"completed", "paused", "stopped"}
    assert any(trial.status == "paused" for trial in trials)
    trained = sum(len(trial.reported) for trial in loop.trials)
    assert trained == sum(len(curve) for curve in steps(loop.search))  # no step was trained twice
    assert any(trial.granted > 1 and trial.attempt > 1 for trial in trials)


def test_it_decides_as_a_loop_of_scrimp_does() -> None:
    given = {"metric": "loss", "budget": BUDGET, "method": "asha", "seed": 0}
    own = scrimp.create_study("own", SPACE, storage="memory://", **given)

    def train(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(loss=trial.params["x"] + 1 / step)

    own.optimize(train, n_trials=9)
    there = loop_of("asha", slots=1).run().search.study
    assert [trial.config for trial in there.trials] == [trial.config for trial in own.trials]
    assert [trial.granted for trial in there.trials] == [trial.granted for trial in own.trials]


def test_a_trial_that_goes_on_at_once_is_not_paused() -> None:
    alone = RayLoop(*searching("freeze-thaw", total_budget=9), 1, slots=1).run()
    assert alone.trials[0].reported == list(range(1, 10)) and alone.trials[0].starts == 1
    assert alone.search.study.trials[0].attempt > 1  # several grants, each taken up in place


def test_a_total_budget_ends_it() -> None:
    search, scheduler = searching("freeze-thaw", total_budget=20)
    loop = RayLoop(search, scheduler, 10**9).run()
    assert 20 <= sum(len(curve) for curve in steps(search)) < 30
    assert all(trial.status == "TERMINATED" for trial in loop.trials)


def test_a_trial_resumes_from_an_older_checkpoint() -> None:
    search, scheduler = searching("asha", budget=scrimp.Budget("training_iteration", 3, 9))
    loop = RayLoop(search, scheduler, 9, every=2, limited=False).run()
    check_curves(loop)
    again = [trial for trial in loop.trials if trial.starts > 1]
    assert again and all(trial.reported[3] == 3 for trial in again)  # saved at 2, paused at 3


def test_a_crashed_trial_begins_again_and_tells_nothing_twice() -> None:
    loop = loop_of("asha-stopping", samples=3).run(6)
    trial = next(trial for trial in loop.trials if trial.status == "RUNNING")
    trial.checkpoint = None  # nothing was saved: from scratch
    before = len(trial.reported)
    assert before > 0
    loop.crash(trial)
    loop.run()
    check_curves(loop)
    assert trial.starts == 2 and trial.reported[before] == 1


@pytest.mark.parametrize("storage", ["memory://", "file"])
def test_an_experiment_is_restored(tmp_path: Path, storage: str) -> None:
    place = storage if storage != "file" else f"sqlite:///{tmp_path}/s.db"
    whole = RayLoop(*searching("asha"), 9).run()
    first = RayLoop(*searching("asha", storage=place), 9).run(25)
    paused = {trial.trial_id for trial in first.with_status("PAUSED")}
    assert paused
    second = first.restored(tmp_path, *searching("asha", storage=place))
    assert {trial.trial_id for trial in second.with_status("PAUSED")} == paused
    second.run()
    check_curves(second)
    assert len(second.search.study.trials) == len(whole.search.study.trials) == 9


def test_results_of_ray_stoppers_count() -> None:
    loop = loop_of("asha", samples=4).run(5)
    trial = loop.with_status("RUNNING")[0]
    number = loop.search._open[trial.trial_id]
    loop.stop_trial(trial)  # as RunConfig(stop=...) does, past the scheduler
    assert loop.search.study.trials[number].status == "completed"


def test_a_trainable_without_checkpoints_is_told() -> None:
    with pytest.raises(StudyError, match=r"trial t0: .* no checkpoint .* asha-stopping, median"):
        loop_of("asha", every=0).run()

    class Plain(tune.Trainable):
        pass

    loop = loop_of("asha", every=0)
    loop.kind = Plain
    with pytest.raises(
        StudyError, match=r"Plain has no save_checkpoint; write save_checkpoint and"
    ):
        loop.run()


def test_a_report_beyond_the_pause_is_told() -> None:
    search, scheduler = searching("asha")
    loop = RayLoop(search, scheduler, 2)
    loop.ask()
    with pytest.raises(ReportError, match="was to pause at 1; report after every unit"):
        search.report("t0", {"loss": 1.0, "training_iteration": 2})
    with pytest.raises(
        ReportError, match="has no 'training_iteration', the budget of ScrimpSearch"
    ):
        search.report("t0", {"loss": 1.0})


def test_a_metric_that_is_never_reported_is_told() -> None:
    search, scheduler = searching("asha")
    RayLoop(search, scheduler, 2).ask()
    with pytest.raises(ReportError, match="no number 'loss'; it has done"):
        search.on_trial_complete("t0", {"done": True})
    (trial,) = search.study.trials
    assert trial.status == "failed" and "no number 'loss'" in trial.message


def test_paused_trials_of_another_experiment_are_told(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path}/s.db"
    RayLoop(*searching("asha", storage=place), 5).run()
    with pytest.raises(StudyError, match=r"paused trials of another experiment, .* study_name"):
        RayLoop(*searching("asha", storage=place), 5).run()
