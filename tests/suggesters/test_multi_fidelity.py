"""MOBSTER: at the right budget, aware of what runs, better than random search, open about
failures."""

from dataclasses import dataclass

import numpy as np
import pytest

import scrimp
from scrimp.acquisition import named_acquisitions as catalog
from scrimp.acquisition.acquisition import MeanStdAcquisition
from scrimp.errors import MethodError, NumericalError
from scrimp.methods.policy import Scheduled
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.synchronous import SynchronousHalving
from scrimp.study_log.decision_record import Modelled
from scrimp.study_log.events import Decided
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters import curve_search, multi_fidelity
from scrimp.suggesters.curve_models import CurveSettings
from scrimp.suggesters.curve_search import CurveSearch
from scrimp.suggesters.multi_fidelity import MultiFidelitySuggester, acquisition_level
from scrimp.testing.policies import SuggesterBattery, World, play

SPACE = scrimp.Space(
    x=scrimp.Float(0, 1), y=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b"])
)


class TestJoint(SuggesterBattery):
    def suggester(self):
        return MultiFidelitySuggester()


@pytest.mark.parametrize("model", ["gp_multitask", "gp_independent"])
@pytest.mark.parametrize(
    "scheduler",
    [AsynchronousHalving(brackets=None), AsynchronousHalving("stopping"), SynchronousHalving(None)],
)
def test_any_number_of_brackets_under_any_scheduler(scheduler, model):
    """In a world in which trials fail, vanish, skip steps and diverge; the rules are in `play`."""
    curves = CurveSettings(model, refit_from=6, refit_every=4)
    suggester = MultiFidelitySuggester(CurveSearch(curves, fantasies=4))
    world = World(events=50, failing=0.1, vanishing=0.1, skipping=0.2, diverging=0.1)
    assert not play(Scheduled(scheduler, suggester), world).degraded


def curve(params, step):
    """A curve that falls towards a bowl; far configurations also fall more slowly."""
    bowl = (
        (params["x"] - 0.7) ** 2
        + (params["y"] - 0.2) ** 2
        + (0.3 if params["kind"] == "b" else 0.0)
    )
    return bowl + (1.0 + bowl) / step


def run(method, seed=0, n_trials=20):
    study = scrimp.create_study(
        "m",
        SPACE,
        method=method,
        budget=scrimp.Budget("epoch", 1, 9),
        storage="memory://",
        seed=seed,
    )

    def objective(trial):
        for step in trial.steps():
            trial.report(value=curve(trial.params, step))

    study.optimize(objective, n_trials=n_trials)
    return study


def test_the_level_is_that_of_bohb():
    assert acquisition_level(np.array([1.0] * 5 + [3.0] * 3 + [9.0] * 2), 3) == 3.0
    assert acquisition_level(np.array([3.0, 9.0]), 3) == 3.0


@pytest.mark.parametrize(
    "method", ["mobster-joint", "mobster-indep", "sync-mobster", "mobster-joint:type=stopping"]
)
def test_it_beats_successive_halving_on_random_configurations(method):
    """3 seeds, 20 configurations, where chance gives the other side two wins of three in one case
    of two: the mean must win."""
    partner = "sync-hyperband" if method.startswith("sync") else "asha"
    gaps = [run(partner, seed).best_value - run(method, seed).best_value for seed in range(3)]
    assert np.mean(gaps) > 0.0


def test_decisions_say_why_and_at_which_budget():
    history = run("mobster-joint").history
    reason = next(
        event.record.reason
        for event in reversed(history.events)
        if isinstance(event, Decided) and isinstance(event.record.reason, Modelled)
    )
    assert reason.expected.low <= reason.expected.loss <= reason.expected.high
    assert reason.at in (1.0, 3.0, 9.0) and reason.score is not None
    assert not history.degraded


@pytest.mark.parametrize(
    "settings",
    [
        {"data": "all"},
        {"data": "rungs_and_last"},
        {"resource_kernel": "freeze-thaw"},
        {"model": "gp_expdecay", "data": "all"},
        {"model": "gp_issm", "data": "all"},
        {"input_warping": True},
        {"model": "gp_independent", "input_warping": True, "acquisition": "ei"},
        {"acquisition": "ucb", "acquisition_settings": {"kappa": 1.0}},
        {"acquisition": "thompson"},
        {"random_fraction": 0.0, "refit_steps": 50, "cap": False},
    ],
)
def test_settings_work(settings):
    assert not run(scrimp.Method("mobster-joint", **settings), n_trials=10).history.degraded


def test_the_acquisition_decides(monkeypatch):
    """A formula of one's own, in place of expected improvement: here the one that prefers a large
    x."""
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())

    @dataclass(frozen=True)
    class Careless(MeanStdAcquisition):
        def alpha(self, mean, std, incumbent):
            return mean

        def derivatives(self, mean, std, incumbent):
            return 1.0, 0.0

    catalog.register_acquisition("careless", Careless)
    chosen = [
        run(f"mobster-joint:random_fraction=0,acquisition={name}").trials[6:]
        for name in ("careless", "log-ei")
    ]
    worse, better = (np.mean([curve(trial.params, 9) for trial in trials]) for trials in chosen)
    assert worse > better + 0.2


def test_running_trials_are_not_repeated():
    study = run("mobster-joint", n_trials=8)
    asked = [trial.params for trial in study.ask(count=5)]
    rows = np.array([[config["x"], config["y"], config["kind"] == "a"] for config in asked])
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=2) + 10 * np.eye(len(rows))
    assert gaps.min() > 1e-3


def test_failing_models_give_way_to_simpler_ones_and_say_so(monkeypatch):
    study = run("mobster-joint:random_fraction=0", n_trials=12)
    fit = multi_fidelity.fit_curves

    def broken(history, encoding, levels, settings, rng):
        if settings.model == "gp_multitask":
            raise NumericalError("not positive definite")
        return fit(history, encoding, levels, settings, rng)

    monkeypatch.setattr(multi_fidelity, "fit_curves", broken)
    study.ask()
    assert (
        study.history.degraded[-1][1]
        == "gp_multitask failed (not positive definite); gp_independent instead"
    )
    assert any(
        isinstance(event, Decided) and isinstance(event.record.reason, Modelled)
        for event in study.history.events
    )

    def hopeless(*arguments, **named):
        raise NumericalError("not positive definite")

    monkeypatch.setattr(multi_fidelity, "fit_curves", hopeless)
    study.ask()
    assert study.history.degraded[-1][1].endswith("a single-fidelity model instead")
    monkeypatch.setattr(curve_search.BayesianSuggester, "_choice", hopeless)
    study.ask()
    assert "gp_multitask failed" in study.history.degraded[-1][1]
    assert study.history.degraded[-1][1].endswith("quasi-random instead")


def test_works_without_rungs():
    """A scheduler that compares nothing leaves one level."""
    problem = Problem(SPACE, budget=Budget("epoch", 1, 9))
    assert play(
        Scheduled(AsynchronousHalving(), MultiFidelitySuggester()),
        World(problem=problem, events=30),
    )


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mobster-joint:r_acq=last", "bohb, first, final"),
        ("mobster-joint:initial=0", "initial is 0"),
        ("mobster-joint:model=gp_issm", "data='all'"),
        ("mobster-indep:data=all", "data='rungs'"),
        ("mobster-joint:resource_kernel=rbf", "exp-decay-sum"),
        ("mobster-joint:acquisition=eei", "did you mean 'ei'"),
    ],
)
def test_bad_settings_are_named(method, words):
    with pytest.raises(MethodError, match=words):
        run(method, n_trials=0)
