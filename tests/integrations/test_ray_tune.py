"""`ScrimpSearch` and `ScrimpScheduler` in experiments of Ray Tune."""

from collections.abc import Iterator
from pathlib import Path

import pytest

tune = pytest.importorskip(
    "ray.tune", reason="Ray Tune is not installed: make test-integrations brings it"
)

import ray  # noqa: E402

import scrimp  # noqa: E402
from scrimp.errors import ReportError, SpaceError, StudyError  # noqa: E402
from scrimp.formats.imports import ImportSettings, read_results  # noqa: E402
from scrimp.integrations.ray_tune import (  # noqa: E402
    ScrimpScheduler,
    ScrimpSearch,
    space_of_ray,
)
from scrimp.space.parameter import Categorical, Constant, Float, Int  # noqa: E402
from tests.integrations.changed_scripts import script_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own deprecations and sockets

SPACE = {
    "x": tune.uniform(-5.0, 10.0),
    "net": {"width": tune.choice([8, 16]), "depth": tune.randint(1, 4)},
    "epochs": 3,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def train(config: dict[str, object]) -> None:
    for epoch in range(1, 10):
        loss = (config["x"] - 2) ** 2 + config["net"]["depth"] + 1.0 / epoch
        tune.report({"loss": loss})


def tuner(folder: Path, search: ScrimpSearch, trials: int, scheduler: object = None) -> tune.Tuner:
    return tune.Tuner(
        train,
        param_space=SPACE,
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=trials,
            max_concurrent_trials=2,
            search_alg=search,
            scheduler=scheduler,
        ),
        run_config=tune.RunConfig(storage_path=str(folder), verbose=0),
    )


def test_a_search(cluster: None, tmp_path: Path) -> None:
    search = ScrimpSearch("gp", seed=0)
    found = tuner(tmp_path, search, 6).fit()
    assert len(found) == 6 and not found.errors
    trials = search.study.trials
    assert [trial.status for trial in trials] == ["completed"] * 6
    assert search.study.best_value == found.get_best_result().metrics["loss"]
    best = found.get_best_result().config
    assert search.study.best_params["net/depth"] == best["net"]["depth"]
    (past,) = read_results(Path(found.experiment_path), ImportSettings("loss"))  # for the next one
    assert len(past.trials) == 6 and len(past.trials[0].curve) == 9
    tried = {tuple(sorted(trial.config.items())) for trial in past.trials}
    assert tried == {tuple(sorted(trial.config.items())) for trial in trials}


def test_the_scheduler_stops_poor_trials(cluster: None, tmp_path: Path) -> None:
    budget = scrimp.Budget("training_iteration", 1, 9)
    search = ScrimpSearch("asha-stopping", budget=budget, seed=0)
    found = tuner(tmp_path, search, 8, ScrimpScheduler(search)).fit()
    assert len(found) == 8 and not found.errors
    statuses = {trial.status for trial in search.study.trials}
    assert statuses == {"completed", "stopped"}
    lengths = sorted(result.metrics["training_iteration"] for result in found)
    assert lengths[0] < 9 and lengths[-1] == 9


def test_the_script_on_our_page_runs(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    exec(compile(script_of("integrations/ray-tune.md"), "ray-tune.md", "exec"), names)
    study = names["search"].study
    assert len(study.trials) == 8 and all(trial.finished for trial in study.trials)


def test_a_searcher_is_saved_and_restored(tmp_path: Path) -> None:
    whole, first, second = (ScrimpSearch("sobol", seed=1) for _ in range(3))
    for search in (whole, first):
        search.set_search_properties("loss", "min", SPACE)
        search.suggest("a")
        search.on_trial_complete("a", {"loss": 1.0})
        search.suggest("b")
    first.save(str(tmp_path / "state"))
    second.restore(str(tmp_path / "state"))
    assert second.suggest("c") == whole.suggest("c")
    second.on_trial_complete("b", error=True)
    assert [t.status for t in second.study.trials] == ["completed", "failed", "running"]


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        (tune.uniform(0, 1), Float(0.0, 1.0)),
        (tune.loguniform(1e-5, 1e-1), Float(1e-5, 1e-1, log=True)),
        (tune.quniform(0, 1, 0.25), Float(0.0, 1.0, step=0.25)),
        (tune.randint(1, 9), Int(1, 8)),
        (tune.qrandint(8, 64, 8), Int(8, 64, step=8)),
        (tune.lograndint(1, 100), Int(1, 99, log=True)),
        (tune.choice(["a", None]), Categorical(["a", None])),
        (tune.grid_search([1, 2]), Categorical([1, 2])),
        ("adam", Constant("adam")),
    ],
)
def test_spaces_of_ray_are_spaces(given: object, parameter: object) -> None:
    assert space_of_ray({"x": given})["x"] == parameter


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (tune.randn(), "has no bounds; give a range"),
        (tune.choice([[1], [2]]), "must be numbers, words"),
        (tune.sample_from(lambda spec: 1), "scrimp takes uniform"),
    ],
)
def test_what_cannot_be_searched_is_told(given: object, words: str) -> None:
    with pytest.raises(SpaceError, match=words):
        space_of_ray({"x": given})


def test_wrong_use_is_told() -> None:
    with pytest.raises(StudyError, match="the study has not begun"):
        ScrimpSearch().suggest("a")
    with pytest.raises(StudyError, match="mode is None; give TuneConfig mode='min'"):
        ScrimpSearch().set_search_properties("loss", None, SPACE)
    budget = scrimp.Budget("training_iteration", 1, 9)
    alone = ScrimpSearch("asha-stopping", budget=budget)
    alone.set_search_properties("loss", "min", SPACE)
    with pytest.raises(StudyError, match="a budget and no scheduler"):
        alone.suggest("a")
    pausing = ScrimpSearch("asha", budget=budget)
    ScrimpScheduler(pausing)
    pausing.set_search_properties("loss", "min", SPACE)
    with pytest.raises(StudyError, match=r"'asha' pauses trials .* asha-stopping, median"):
        pausing.suggest("a")
    with pytest.raises(StudyError, match="it takes the ScrimpSearch of the same TuneConfig"):
        ScrimpScheduler("asha")
    plain = ScrimpSearch(seed=0)
    plain.set_search_properties("loss", "min", SPACE)
    plain.suggest("a")
    with pytest.raises(ReportError, match="no number 'loss'; it has error"):
        plain.on_trial_complete("a", {"error": 1.0})
