"""`ScrimpSampler` on Optuna itself: its own battery for samplers, and what users do with it."""

import pickle
import re
import subprocess
import sys

import pytest

optuna = pytest.importorskip(
    "optuna", reason="Optuna is not installed: make test-integrations brings it"
)

try:
    from optuna.testing.pytest_samplers import (
        BasicSamplerTestCase,
        MultiObjectiveSamplerTestCase,
        RelativeSamplerTestCase,
    )
except ModuleNotFoundError:
    # Optuna has shipped its tests of samplers since 4.8.
    BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase = (
        type(name, (), {}) for name in ("Basic", "Relative", "Several")
    )

import scrimp
from scrimp.errors import SpaceError
from scrimp.formats.imports import read_results, read_server
from scrimp.formats.result_folders import ImportSettings
from scrimp.integrations.optuna import (
    ScrimpSampler,
    distributions_of,
    space_of_distributions,
    space_of_suggestions,
)
from tests.integrations.changed_scripts import DOCS, script_of
from tests.tools.postgres_server import PrivateServer, available

pytestmark = pytest.mark.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


class TestScrimpSampler(
    BasicSamplerTestCase, RelativeSamplerTestCase, MultiObjectiveSamplerTestCase
):
    @pytest.fixture
    def sampler(self):
        return lambda: ScrimpSampler(seed=0)


def bowl(trial):
    x = trial.suggest_float("x", -5, 10)
    y = trial.suggest_float("y", 1e-3, 1e1, log=True)
    kind = trial.suggest_categorical("kind", ["good", "bad", None])
    return (x - 2) ** 2 + abs(y - 0.1) + (kind != "good")


def test_it_finds_what_random_search_does_not():
    ours = optuna.create_study(sampler=ScrimpSampler(seed=1))
    ours.optimize(bowl, n_trials=35)
    theirs = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    theirs.optimize(bowl, n_trials=35)
    assert ours.best_value < 0.2 < theirs.best_value
    assert ours.best_params["kind"] == "good"


def test_several_objectives_are_searched_for_their_front():
    def trade_off(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if trial.number == 5:
            return float("inf"), 0.0
        return x**2 + y, -((x - 1) ** 2) - y

    ways = ["minimize", "maximize"]
    ours = optuna.create_study(sampler=ScrimpSampler(seed=0), directions=ways)
    ours.optimize(trade_off, n_trials=16)
    front = [trial.params["x"] for trial in ours.best_trials if trial.params["y"] < 0.05]
    assert len(front) >= 6 and max(front) - min(front) > 0.5
    (mirror,) = ours.sampler._mirrors.values()
    assert mirror.study.metrics == {"values_0": "minimize", "values_1": "maximize"}
    assert mirror.study.history.counts["failed"] == 1


def test_maximising():
    study = optuna.create_study(sampler=ScrimpSampler(seed=0), direction="maximize")
    study.optimize(lambda trial: -bowl(trial), n_trials=30)
    assert study.best_value > -0.5


def test_the_same_seed_decides_the_same_and_a_new_process_goes_on(tmp_path):
    url = f"sqlite:///{tmp_path}/optuna.db"
    whole = optuna.create_study(sampler=ScrimpSampler(seed=3))
    whole.optimize(bowl, n_trials=14)
    first = optuna.create_study(sampler=ScrimpSampler(seed=3), storage=url, study_name="s")
    first.optimize(bowl, n_trials=8)
    assert [t.params for t in first.trials] == [t.params for t in whole.trials[:8]]
    second = optuna.load_study(
        study_name="s", storage=url, sampler=pickle.loads(pickle.dumps(first.sampler))
    )
    second.optimize(bowl, n_trials=6)
    assert len(second.trials) == 14 and second.best_value < 6


def test_threads_share_one_sampler():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(3):
            study = optuna.create_study(sampler=ScrimpSampler("random", seed=seed))
            study.optimize(bowl, n_trials=40, n_jobs=8)
            assert [t.state.name for t in study.trials] == ["COMPLETE"] * 40
    finally:
        sys.setswitchinterval(interval)


def test_pruned_failed_and_foreign_trials_are_learned_from():
    study = optuna.create_study(sampler=ScrimpSampler(seed=0))
    study.enqueue_trial({"x": 2.0, "y": 0.1, "kind": "good"})

    def objective(trial):
        value = bowl(trial)
        if trial.number % 4 == 1:
            raise ArithmeticError("diverged")
        if trial.number % 4 == 2:
            trial.report(value, 1)
            raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=12, catch=ArithmeticError)
    (mirror,) = study.sampler._mirrors.values()
    counts = mirror.study.history.counts
    assert counts["failed"] == 3
    assert counts["completed"] == 8  # the last one is not told yet
    assert mirror.study.best_value == 0.0
    assert mirror.study.best_params["x"] == 2.0


def test_a_fixed_parameter_is_not_taken_for_what_was_suggested():
    study = optuna.create_study(sampler=ScrimpSampler(seed=0))
    study.optimize(bowl, n_trials=3)
    study.sampler = optuna.samplers.PartialFixedSampler({"x": 7.0}, study.sampler)
    study.optimize(bowl, n_trials=3)
    study.sampler = study.sampler._base_sampler
    study.optimize(bowl, n_trials=1)
    (mirror,) = (m for m in study.sampler._mirrors.values() if len(m.distributions) == 3)
    told = [trial.config["x"] for trial in mirror.study.trials if trial.status == "completed"]
    assert told == [trial.params["x"] for trial in study.trials[:6]]


def test_distributions_become_a_space():
    from optuna.distributions import FloatDistribution, IntDistribution

    import scrimp

    space = space_of_distributions(
        {"lr": FloatDistribution(1e-5, 1, log=True), "n": IntDistribution(8, 64, step=8)}
    )
    assert space == scrimp.Space(lr=scrimp.Float(1e-5, 1, log=True), n=scrimp.Int(8, 64, step=8))


def test_distributions_both_ways():
    space = scrimp.Space(
        lr=scrimp.Float(1e-5, 1e-1, log=True),
        drop=scrimp.Float(0.0, 0.5, step=0.1),
        n=scrimp.Int(8, 64, step=8),
        kind=scrimp.Categorical(["a", None, 3]),
        batch=32,
    )
    made = distributions_of(space)
    assert made["n"] == optuna.distributions.IntDistribution(8, 64, step=8)
    assert space_of_suggestions(made) == space
    with pytest.raises(SpaceError, match="'x' is conditional"):
        distributions_of(
            scrimp.Space(
                kind=scrimp.Categorical(["a", "b"]), x=scrimp.Float(0, 1, when={"kind": "a"})
            )
        )
    with pytest.raises(SpaceError, match="Optuna has no ordered choices"):
        distributions_of(scrimp.Space(width=scrimp.Ordinal([1, 2, 4])))


def test_journals_of_optuna_are_read(tmp_path):
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(study_name="kept", storage=storage, direction="maximize")
    study.optimize(lambda trial: -bowl(trial), n_trials=4)
    study.enqueue_trial({"x": 1.0})
    study.add_trial(
        optuna.trial.create_trial(
            params={"x": 2.0},
            distributions={"x": optuna.distributions.FloatDistribution(-5, 10)},
            value=3.0,
        )
    )
    (found,) = read_results(tmp_path / "journal.log", ImportSettings())
    assert found.name == "kept" and found.problem.direction == "maximize"
    ended = [trial for trial in study.trials if trial.state.is_finished()]
    assert [trial.config for trial in found.trials] == [trial.params for trial in ended]
    assert [trial.curve[-1][1] for trial in found.trials] == [trial.value for trial in ended]


def test_the_script_on_our_page_runs():
    names = {}
    exec(compile(script_of("integrations.md"), "integrations.md", "exec"), names)
    assert len(names["study"].trials) == 50 and names["study"].best_value < 0.5


def test_the_page_for_optuna_users_works_to_the_last_step(tmp_path, monkeypatch):
    """Both sides of the page, then the command that imports, then the study that continues."""
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "coming-from" / "optuna.md").read_text()
    names = {}
    blocks = re.findall(r"^```(.*?)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    code = [text for label, text in blocks if label.startswith("python")]
    for text in code[:-1]:
        if "study = " in text or "import scrimp" in text:
            exec(compile(text, "optuna.md", "exec"), names)
    (command,) = (text.split() for label, text in blocks if text.startswith("scrimp import"))
    out = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=True
    ).stdout
    (shown,) = (text for label, text in blocks if text.startswith("imported"))
    assert out.splitlines()[0] == shown.splitlines()[0]
    first = next(text for text in code if "momentum" in text and "scrimp" in text)
    exec(compile(first, "optuna.md", "exec"), names)
    exec(compile(code[-1], "optuna.md", "exec"), names)
    study = names["study"]
    assert len(study.trials) == 30
    assert all(("momentum" in t.params) == (t.params["opt"] == "sgd") for t in study.trials)


def test_studies_of_optuna_on_a_server_are_read(tmp_path):
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        theirs = server.url().replace("postgresql://", "postgresql+psycopg://")
        storage = optuna.storages.RDBStorage(theirs)
        study = optuna.create_study(study_name="served", storage=storage)
        study.optimize(bowl, n_trials=3)
        (found,) = read_server(theirs)
        trials = study.trials
        storage.engine.dispose()
    assert found.name == "served"
    assert [trial.config for trial in found.trials] == [trial.params for trial in trials]
    assert [trial.curve[-1][1] for trial in found.trials] == [trial.value for trial in trials]
