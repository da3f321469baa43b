"""Bayesian suggestions: deterministic, distinct, valid, aware of what runs, better than random."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import scrimp
from scrimp.acquisition import named_acquisitions as catalog
from scrimp.acquisition.improvement import (
    log_expected_improvement,
    log_expected_improvement_and_derivatives,
)
from scrimp.acquisition.several_models import SeveralModelsAcquisition
from scrimp.errors import MethodError, NumericalError
from scrimp.study_log.decision_record import Modelled
from scrimp.suggesters import bayesian
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.experts import explores
from scrimp.suggesters.suggester import Suggester
from scrimp.testing.policies import SuggesterBattery


class TestBayesian(SuggesterBattery):
    def suggester(self) -> Suggester:
        return BayesianSuggester()


SPACE = scrimp.Space(
    x=scrimp.Float(0, 1),
    n=scrimp.Int(1, 8),
    kind=scrimp.Categorical(["a", "b", "c"]),
    extra=scrimp.Float(0.01, 1, log=True, when={"kind": "b"}),
)


def loss(params: dict[str, Any]) -> float:
    offset = {"a": 0.3, "b": 0.0, "c": 0.5}[params["kind"]]
    return (
        (params["x"] - 0.6) ** 2 + 0.02 * (params["n"] - 4) ** 2 + offset + params.get("extra", 0.2)
    )


def study_with(
    count: int, method: Any = "gp", space: scrimp.Space = SPACE, **settings: Any
) -> scrimp.Study:
    study = scrimp.create_study("s", space, method=method, storage="memory://", seed=1, **settings)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, loss(trial.params))
    return study


@pytest.mark.parametrize(
    "method", ["gp", "gp-ei", "gp-pi", "gp-ucb", "gp:acquisition=thompson", "gp:kernel=rbf-noard"]
)
def test_every_variant_gives_valid_and_distinct_configurations(method: str) -> None:
    study = study_with(14, method)
    params = [trial.params for trial in study.trials]
    assert all(SPACE.validate(config) == config for config in params)
    assert len({SPACE.key(config) for config in params}) == 14


@pytest.mark.parametrize(
    "settings",
    [
        {"mcmc": True},
        {"input_warping": True},
        {"transform": "power"},
        {"transform": "copula"},
        {"incumbent": "observed"},
    ],
)
def test_model_settings_work(settings: dict[str, Any]) -> None:
    study = study_with(8, scrimp.Method("gp", **settings))
    assert not study.history.degraded and len(study.trials) == 8


def test_the_same_history_gives_the_same_suggestion() -> None:
    first, second = study_with(9), study_with(9)
    assert [trial.params for trial in first.trials] == [trial.params for trial in second.trials]
    assert first.ask().params == second.ask().params


def test_a_resumed_study_decides_like_an_uninterrupted_one(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    whole = study_with(12)
    parts = scrimp.create_study("s", SPACE, method="gp", storage=url, seed=1)
    for _ in range(12):
        parts = scrimp.load_study("s", storage=url)  # a new process each time, as far as caches go
        trial = parts.ask()
        parts.tell(trial, loss(trial.params))
    assert [trial.params for trial in parts.trials] == [trial.params for trial in whole.trials]


def test_running_trials_are_not_repeated() -> None:
    study = study_with(10)
    asked = [trial.params for trial in study.ask(count=6)]
    rows = bayesian.encoding_of(SPACE).encode(asked)
    gaps = np.linalg.norm(rows[:, None] - rows[None], axis=2) + 10 * np.eye(len(rows))
    assert gaps.min() > 1e-3  # spread out, not six times the same optimum
    assert len({SPACE.key(config) for config in asked}) == 6


def test_it_beats_random_search_at_equal_cost() -> None:
    """6 seeds, 20 trials: the mean log regret is lower by at least one (a factor of e); random
    varies by about 0.4."""

    def final(method: str, seed: int) -> float:
        result = scrimp.minimize(loss, SPACE, 20, seed=seed, method=method)
        return math.log(result.best_value + 1e-3)

    gaps = [final("random", seed) - final("gp", seed) for seed in range(6)]
    assert np.mean(gaps) > 1.0


def test_failures_are_avoided() -> None:
    """Half of the space fails; the model learns to keep away from it."""
    study = scrimp.create_study(
        "f", scrimp.Space(x=scrimp.Float(0, 1)), method="gp", storage="memory://", seed=0
    )
    for _ in range(20):
        trial = study.ask()
        x = trial.params["x"]
        if x > 0.5:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, (x - 0.3) ** 2)
    late = [trial.status for trial in study.trials[8:]]
    assert (
        late.count("failed") <= 3 and study.best_value < 1e-3
    )  # blind search would fail six times


def test_constraints_are_learned() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))
    study = scrimp.create_study(
        "c",
        space,
        method="gp",
        metric="loss",
        constraints={"sum": scrimp.AtMost(0.8)},
        storage="memory://",
        seed=0,
    )
    for _ in range(25):
        trial = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, {"loss": -(x + 0.5 * y), "sum": x + y})
    assert -0.8 <= study.best_value < -0.78  # the optimum is -0.8 at (0.8, 0), on the limit
    late = [trial.params["x"] + trial.params["y"] for trial in study.trials[10:]]
    # It works along the limit; unconstrained it would run to 2.
    assert np.mean(np.abs(np.array(late) - 0.8) < 0.05) >= 1 / 3


def test_costs_are_taken_into_account() -> None:
    """Two equal basins, one ten times as dear: the cheap one is tried more often."""
    space = scrimp.Space(x=scrimp.Float(0, 1))

    def run(cost: str | None) -> int:
        study = scrimp.create_study(
            "c", space, method="gp", metric="loss", cost=cost, storage="memory://", seed=3
        )
        for _ in range(18):
            trial = study.ask()
            x = trial.params["x"]
            price = 10.0 if x > 0.5 else 1.0
            study.tell(trial, {"loss": min((x - 0.2) ** 2, (x - 0.8) ** 2), "price": price})
        return sum(trial.params["x"] > 0.5 for trial in study.trials)

    assert run("price") < run(None)


def test_it_looks_elsewhere_when_nothing_improves() -> None:
    falling, still = np.linspace(5.0, 1.0, 12), np.ones(20)
    assert not any(explores(falling[:count], 6) for count in range(1, 13))
    stuck = np.concatenate([falling, still])
    assert [explores(stuck[: 12 + count], 6) for count in range(4, 11)] == [
        False,
        False,
        True,
        False,
        True,
        False,
        True,
    ]
    failing = np.concatenate([falling, np.full(20, np.inf)])  # failures are no progress either
    assert [explores(failing[: 12 + count], 6) for count in range(5, 9)] == [
        False,
        True,
        False,
        True,
    ]


def test_reported_noise_enters_the_model() -> None:
    study = scrimp.create_study(
        "n", scrimp.Space(x=scrimp.Float(0, 1)), method="gp", storage="memory://", seed=0
    )
    rng = np.random.default_rng(0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + rng.normal(0, 0.2), stderr=0.2)
    belief = BayesianSuggester().belief(study.history, study.history.rng("test"))
    noise = belief.models.fitted["loss"].data.noise
    assert noise is not None and (noise > 0).all()


def test_pools_are_searched_without_replacement_and_end() -> None:
    configs = [{"x": x / 9} for x in range(10)]
    pool = scrimp.Pool(scrimp.Space(x=scrimp.Float(0, 1)), configs)
    study = scrimp.create_study("p", pool, method="gp", storage="memory://", seed=0)
    study.optimize(lambda trial: (trial.params["x"] - 0.4) ** 2, n_trials=50)
    assert sorted(trial.params["x"] for trial in study.trials) == [
        config["x"] for config in configs
    ]


def test_the_users_guess_comes_first() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1, prior=(0.77, "high")), y=scrimp.Float(0, 1))
    study = scrimp.create_study("g", space, method="gp", storage="memory://", seed=0)
    assert study.ask().params["x"] == 0.77


def test_decisions_say_why() -> None:
    study = study_with(12)
    history = study.history
    reason = history.recorded.reason
    assert isinstance(reason, Modelled) and reason.rivals
    assert reason.expected.low <= reason.expected.loss <= reason.expected.high
    assert reason.rivals[0].config and reason.rivals[0].score is not None
    assert history.recorded.fit["loss"].n >= 8


def test_a_failing_model_degrades_openly(monkeypatch: pytest.MonkeyPatch) -> None:
    study = study_with(8)

    def broken(*arguments: Any) -> Any:
        raise NumericalError("not positive definite")

    monkeypatch.setattr(bayesian, "fit_models", broken)
    study.tell(study.ask(), 1.0)
    assert (
        len(study.history.degraded) == 1 and "not positive definite" in study.history.degraded[0][1]
    )


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("gp:acquisition=logei", "did you mean"),
        ("gp:kernel=matern", "matern52-ard"),
        ("gp:transform=log", "one of auto, plain"),
        ("gp:incumbent=best", "one of mean, observed"),
        ("gp:initial=0", "initial is 0"),
        ("gp:kernal=rbf-ard", "did you mean 'kernel'"),
        ("gp:max_data=many", "max_data"),
    ],
)
def test_bad_settings_are_named(method: str, words: str) -> None:
    with pytest.raises(MethodError, match=words):
        study_with(0, method)  # refused when the study is created, not in the middle of the night


@dataclass(frozen=True)
class PerSecond(SeveralModelsAcquisition):
    """EI by cost: a formula over two models."""

    needs: ClassVar[tuple[str, ...]] = ("loss", "cost")
    logarithmic: ClassVar[bool] = True

    def alpha(self, beliefs: Any, incumbent: Any) -> Any:
        return (
            log_expected_improvement(beliefs["loss"].mean, beliefs["loss"].std, incumbent)
            - beliefs["cost"].mean
        )

    def derivatives(self, beliefs: Any, incumbent: Any) -> Any:
        _, d_mean, d_std = log_expected_improvement_and_derivatives(
            beliefs["loss"].mean, beliefs["loss"].std, incumbent
        )
        return {"loss": (d_mean, d_std), "cost": (-1.0, 0.0)}


def test_a_formula_over_loss_and_cost_decides_as_the_wrapper_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a study: costs of 1 to 20 units, one failed trial, and evaluations that run."""
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    catalog.register_acquisition("per-second", PerSecond)
    space = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Float(0, 1))

    def asked(method: str) -> list[dict[str, Any]]:
        study = scrimp.create_study(
            "s", space, method=method, cost="price", storage="memory://", seed=1
        )
        for k in range(7):
            trial = study.ask()
            x, y = trial.params["x"], trial.params["y"]
            if k == 4:
                study.tell(trial, state="failed")
            else:
                study.tell(trial, {"value": (x - 0.5) ** 2 + y, "price": 20.0**x})
        return [trial.params for trial in (study.ask(), study.ask())]

    for mine, theirs in zip(
        asked("gp:acquisition=per-second,patience=0"), asked("gp:patience=0"), strict=True
    ):
        assert mine == pytest.approx(theirs, abs=1e-3)


def test_models_that_a_study_cannot_have_are_missed_before_anything_is_evaluated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalog, "_FACTORIES", catalog._FACTORIES.copy())
    catalog.register_acquisition("per-second", PerSecond)
    with pytest.raises(
        MethodError,
        match="needs a model of 'cost', which this study has no data for; give create_study",
    ):
        study_with(1, "gp:acquisition=per-second")
    with pytest.raises(
        MethodError,
        match="models of loss, cost, but methods with budgets model the loss alone",
    ):
        study_with(1, "mobster-joint:acquisition=per-second", budget=scrimp.Budget("epoch", 1, 9))
