"""`ScrimpSearch` and `ScrimpScheduler` in experiments of Ray Tune."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

tune = pytest.importorskip(
    "ray.tune", reason="Ray Tune is not installed: make test-integrations brings it"
)

import ray

import scrimp
from scrimp.errors import ReportError, ScrimpError, StudyError
from scrimp.formats.imports import read_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.integrations.ray_tune import ScrimpScheduler, ScrimpSearch
from tests.integrations.changed_scripts import DOCS, script_of

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


def test_a_trainable_is_paused_and_resumed(cluster: None) -> None:
    """The script on our page: each trial goes on where its checkpoint stood."""
    names: dict[str, object] = {}
    page = (DOCS / "integrations" / "ray-tune.md").read_text()
    (script,) = re.findall(r'```python no-run title="paused.py"\n(.*?)```', page, re.S)
    exec(compile(script, "ray-tune.md", "exec"), names)
    study = names["search"].study
    assert len(study.trials) <= 8
    assert any(trial.attempt > 1 for trial in study.trials)
    assert any(trial.status == "paused" for trial in study.trials)
    for trial in study.trials:
        assert [point.step for point in trial.curve] == list(range(1, int(trial.budget) + 1))
        weights = [trial.config["decay"] ** point.step for point in trial.curve]
        told = [point.metrics["loss"] for point in trial.curve]
        assert told == pytest.approx(weights)  # the state was kept


def test_a_trainable_without_checkpoints_is_told(cluster: None, tmp_path: Path) -> None:
    budget = scrimp.Budget("training_iteration", 1, 9)
    search = ScrimpSearch("asha", budget=budget, seed=0)
    with pytest.raises(Exception, match=r"reported no checkpoint to resume from; give tune.report"):
        tuner(tmp_path, search, 4, ScrimpScheduler(search)).fit()


def test_a_metric_that_is_never_reported_is_told(cluster: None, tmp_path: Path) -> None:
    def silent(config: dict[str, object]) -> None:
        tune.report({"error": config["x"], "other": 1.0})

    search = ScrimpSearch("random", seed=0)
    config = tune.TuneConfig(metric="loss", mode="min", num_samples=1, search_alg=search)
    with pytest.raises(Exception, match=r"did not include the specified metric\(s\) `loss`"):
        tune.Tuner(
            silent,
            param_space=SPACE,
            tune_config=config,
            run_config=tune.RunConfig(storage_path=str(tmp_path), verbose=0),
        ).fit()


def test_the_script_on_our_page_runs(cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    names: dict[str, object] = {}
    exec(compile(script_of("integrations/ray-tune.md"), "ray-tune.md", "exec"), names)
    study = names["search"].study
    assert len(study.trials) == 8 and all(trial.finished for trial in study.trials)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:-1], "not the state of a ScrimpSearch"),
        (lambda text: "[]", "Expected `object`, got `array`"),
        (lambda text: text.replace('"total":', '"sum":'), "missing required field `total`"),
        (lambda text: text.replace('"a":0', '"a":"x"'), "Expected `int`, got `str`"),
        (lambda text: text.replace('"a":0', '"a":7'), "continues trial 7 .* does not exist"),
        (lambda text: text.replace('"a":0', '"a":-1'), "continues trial -1 .* does not exist"),
        (lambda text: re.sub(r'"x\\":[-.\d]+', r'"x\\":99.0', text), "does not fit the space"),
        (lambda text: text.replace("study_created", "other"), "other"),
    ],
)
def test_a_state_that_was_changed_is_refused(
    tmp_path: Path, change: Callable[[str], str], words: str
) -> None:
    search = ScrimpSearch("sobol", seed=1)
    search.set_search_properties("loss", "min", SPACE)
    search.suggest("a")
    search.save(str(tmp_path / "state"))
    saved = (tmp_path / "state").read_text()
    changed = change(saved)
    assert changed != saved
    (tmp_path / "state").write_text(changed)
    with pytest.raises(ScrimpError, match=words):
        ScrimpSearch("sobol", seed=1).restore(str(tmp_path / "state"))


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


def test_wrong_use_is_told() -> None:
    with pytest.raises(StudyError, match="the study has not been created"):
        ScrimpSearch().suggest("a")
    with pytest.raises(StudyError, match="mode is None; give TuneConfig mode='min'"):
        ScrimpSearch().set_search_properties("loss", None, SPACE)
    budget = scrimp.Budget("training_iteration", 1, 9)
    alone = ScrimpSearch("asha-stopping", budget=budget)
    alone.set_search_properties("loss", "min", SPACE)
    with pytest.raises(StudyError, match="a budget and no scheduler"):
        alone.suggest("a")
    with pytest.raises(StudyError, match="it takes the ScrimpSearch of the same TuneConfig"):
        ScrimpScheduler("asha")
    plain = ScrimpSearch(seed=0)
    plain.set_search_properties("loss", "min", SPACE)
    plain.suggest("a")
    with pytest.raises(ReportError, match="no number 'loss'; it has error"):
        plain.on_trial_complete("a", {"error": 1.0})
