"""Methods that learn from past studies, driven from beginning to end."""

import numpy as np
import pytest

from scrimp.encoding.encoding import Encoding
from scrimp.errors import MethodError, NumericalError
from scrimp.json_values import Config
from scrimp.plugins.settings import build
from scrimp.space.parameter import Categorical, Float
from scrimp.space.space import Pool, Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import Sources
from scrimp.study_log.history import History
from scrimp.study_log.problem import Problem
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.model_settings import ModelSettings
from scrimp.suggesters.suggester import Suggester
from scrimp.testing.policies import SuggesterBattery, ask, begin, drive, pend, tell
from scrimp.transfer.past import Past
from scrimp.transfer.portfolio import portfolio_configs
from scrimp.transfer.source_study import source_study
from scrimp.transfer.task_prior_suggester import TaskPriorSuggester
from scrimp.transfer.transfer_suggester import TransferSuggester
from scrimp.transfer.weights import WeightRule, weight_notes, with_min_weight


class TestTransfer(SuggesterBattery):
    def suggester(self) -> Suggester:
        return TransferSuggester()


SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), kind=Categorical(["x", "y", "z"]))
POOL = Pool(SPACE, SPACE.sample(60, np.random.default_rng(0)))


def loss(config: Config, shift: float = 0.0) -> float:
    return float(
        (config["a"] - 0.4 - shift) ** 2
        + 0.5 * (config["b"] - 0.6) ** 2
        + 0.2 * (config["kind"] != "x")
    )


def past_of(sign: float = 1.0, studies: int = 4) -> Past:
    made = []
    for number in range(studies):
        configs = SPACE.sample(25, np.random.default_rng(number))
        y = sign * np.array([loss(config, 0.05 * number) for config in configs])
        made.append(
            source_study(f"past{number}", SPACE.to_units(configs), y, {"rows": float(number)})
        )
    return Past(tuple(made), Encoding(SPACE).columns)


PAST = past_of()


def suggester(**settings: object) -> Suggester:
    """A suggester that learns from `PAST`."""
    return build(TransferSuggester, settings).informed_by(PAST)


METHODS: dict[str, Suggester] = {
    "tst-m": suggester(combine="tst", weights="features", bandwidth=0.5),
    "tst-r": suggester(combine="tst", weights="ranks"),
    "taf-r": suggester(combine="taf", weights="ranks"),
    "taf-rgpe": suggester(combine="taf", dilution="probabilistic"),
    "taf-poe": suggester(combine="taf-poe", weights="experts"),
    "rgpe": suggester(dilution="probabilistic"),
    "rgpe-v1": suggester(dilution="percentile", draws="posterior"),
    "rmogp": suggester(combine="rmogp"),
    "pogpe": suggester(combine="poe", weights="experts"),
    "pogpe-all": suggester(combine="poe", weights="experts", experts="all"),
    "pogpe-entropy": suggester(combine="poe", weights="experts", experts="entropy"),
    "portfolio": suggester(combine="portfolio"),
    "task-prior": TaskPriorSuggester(past=PAST),
}
"""Everything in the catalog that learns."""


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("space", [SPACE, POOL], ids=["continuous", "pool"])
def test_suggestions_are_valid_new_and_repeatable(name: str, space: Space) -> None:
    suggester = METHODS[name]
    history = drive(suggester, begin(Problem(space, seed=2, features={"rows": 1.0})), 6, loss)
    history = pend(history, ask(suggester, history).configs[0])
    suggestion = ask(suggester, history, 2)
    assert len(suggestion.configs) == 2
    keys = [space.key(trial.config) for trial in history.trials] + [
        space.key(config) for config in suggestion.configs
    ]
    assert len(set(keys)) == len(keys)
    assert all(space.validate(config) == config for config in suggestion.configs)
    assert ask(suggester, History.of(history.events), 2) == suggestion


@pytest.mark.parametrize("name", METHODS)
def test_past_studies_help_from_the_first_trial(name: str) -> None:
    """Twenty seeds of random search find 0.05 at best in five trials; related past studies get far
    below it."""
    history = drive(METHODS[name], begin(Problem(POOL, seed=1, features={"rows": 1.0})), 5, loss)
    best = min(loss(config) for config in POOL.configs)
    found = min(trial.loss for trial in history.trials if trial.loss is not None)
    random = []
    for seed in range(20):
        rows = np.random.default_rng(seed).permutation(60)[:5]
        random.append(min(loss(POOL.configs[row]) for row in rows))
    assert found - best < np.mean(random) - best


@pytest.mark.parametrize("name", METHODS)
def test_a_pool_is_exhausted_without_repetition(name: str) -> None:
    small = Pool(SPACE, POOL.configs[:7])
    history = drive(METHODS[name], begin(Problem(small, features={"rows": 1.0})), 5, loss)
    rest = ask(METHODS[name], history, 4).configs
    assert len(rest) == 2
    assert ask(METHODS[name], pend(pend(history, rest[0]), rest[1])).configs == ()


@pytest.mark.parametrize("name", ["rgpe", "taf-r", "task-prior"])
@pytest.mark.parametrize("outcome", ["failed", "constant", "extreme", "pending"])
def test_whatever_trials_do(name: str, outcome: str) -> None:
    history = begin(Problem(SPACE))
    for number, config in enumerate(SPACE.sample(8, np.random.default_rng(4))):
        value = {"constant": 1.0, "extreme": (-1.0) ** number * 1e300}.get(outcome)
        history = pend(history, config) if outcome == "pending" else tell(history, config, value)
    config = ask(METHODS[name], history).configs[0]
    assert SPACE.validate(config) == config


def test_a_failure_of_the_algebra_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One published framework gives the new study all the weight then, and reports nothing."""

    def fail(*_: object) -> None:
        raise NumericalError("no factor")

    monkeypatch.setattr(WeightRule, "weights_of", fail)
    history = drive(METHODS["rgpe"], begin(Problem(SPACE)), 3, loss)
    found = ask(METHODS["rgpe"], history)
    assert (
        found.record.degraded == "the model failed (no factor); quasi-random instead"
        and len(found.configs) == 1
    )


@pytest.mark.parametrize("name", ["rgpe", "taf-r", "rmogp", "task-prior"])
def test_constraints_and_failures(name: str) -> None:
    history = begin(Problem(SPACE, constraints={"memory": AtMost(0.5)}))
    for number, config in enumerate(SPACE.sample(8, np.random.default_rng(7))):
        history = tell(
            history, config, None if number == 3 else loss(config), memory=float(config["b"])
        )
    config = ask(METHODS[name], history).configs[0]
    assert SPACE.validate(config) == config


def test_weights_are_recorded_for_every_decision() -> None:
    for name in ("tst-r", "rgpe", "task-prior"):
        history = drive(METHODS[name], begin(Problem(POOL)), 6, loss)
        weights = ask(METHODS[name], history).record.sources.weights
        assert sum(weights.values()) == pytest.approx(1.0, abs=0.01) and "this study" in weights
    assert weight_notes(("a", "b"), np.array([0.0, 0.25, 0.75])) == {"b": 0.25, "this study": 0.75}


def test_without_past_studies_it_is_a_gaussian_process() -> None:
    history = drive(
        BayesianSuggester(model=ModelSettings(transform="standardise")),
        begin(Problem(POOL)),
        6,
        loss,
    )
    found = ask(TransferSuggester(), history)
    assert (
        found.configs
        == ask(BayesianSuggester(model=ModelSettings(transform="standardise")), history).configs
    )
    assert found.record.sources == Sources()


def test_skipped_studies_are_noted_with_the_first_decision() -> None:
    said = Past(PAST.studies, PAST.columns, ("past study 'gone' is left out",))
    for suggester in (TransferSuggester(past=said), TaskPriorSuggester(past=said)):
        history = begin(Problem(POOL))
        said = ask(suggester, history).record.sources
        assert said.left_out == ("past study 'gone' is left out",)
        later = ask(suggester, drive(suggester, history, 4, loss)).record.sources
        assert later is None or not later.left_out


def test_portfolio_configs_skip_what_is_known() -> None:
    encoding = Encoding(POOL)
    first = portfolio_configs(PAST, PAST.models("z-score"), encoding, np.zeros((0, 3)), 3)
    rest = portfolio_configs(PAST, PAST.models("z-score"), encoding, encoding.encode(first[:1]), 2)
    assert rest == first[1:]
    assert portfolio_configs(PAST, PAST.models("z-score"), encoding, np.zeros((0, 3)), 0) == []


@pytest.mark.parametrize("normalise", ["none", "z-score", "min-max", "copula", "log-regret"])
def test_every_normaliser(normalise: str) -> None:
    suggester = TransferSuggester(normalise=normalise, past=PAST)
    history = drive(suggester, begin(Problem(POOL)), 6, loss)
    assert len(ask(suggester, history).configs) == 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"combine": "magic"},
            "combine is 'magic'; it must be one of tst, rgpe, poe, taf, taf-poe, rmogp, portfolio",
        ),
        ({"normalise": "magic"}, "normalise is 'magic'"),
        ({"weights": "magic"}, "weights is 'magic'"),
        ({"experts": "magic"}, "experts is 'magic'; it must be one of single, all, entropy"),
        ({"samples": 0}, "samples is 0; it must be at least 1"),
        (
            {"variance": "rbcm"},
            "variance is 'rbcm' with combine='rgpe'; choose one of rgpe, poe, tst",
        ),
        ({"combine": "taf", "variance": "poe"}, "only combined posteriors have one"),
        ({"incumbent": "magic"}, "incumbent is 'magic'"),
        ({"distance": "magic"}, "distance is 'magic'"),
        ({"ties": "magic"}, "ties is 'magic'"),
        ({"dilution": "magic"}, "percentile-paper"),
        ({"least_weight": 1.0}, "least_weight is 1.0"),
    ],
)
def test_bad_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(MethodError, match=message):
        build(TransferSuggester, settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"combine": "rgpe", "variance": "tst"},
        {"combine": "rgpe", "variance": "poe"},
        {"combine": "poe", "weights": "experts", "experts": "entropy", "variance": "poe"},
        {"combine": "poe", "weights": "experts", "experts": "entropy", "variance": "rbcm"},
        {"combine": "tst", "weights": "ranks", "bandwidth": 0.5, "incumbent": "observed"},
        {"combine": "rgpe", "least_weight": 0.9},
    ],
)
def test_other_readings_score_otherwise(settings: dict[str, object]) -> None:
    """With the reading a score changes; without it, it is the usual one."""
    usual = {
        key: value
        for key, value in settings.items()
        if key not in ("variance", "incumbent", "least_weight")
    }
    history = drive(METHODS["rgpe"], begin(Problem(POOL)), 7, loss)
    other, plain = (ask(suggester(**given), history) for given in (settings, usual))
    assert other.record.reason.score != pytest.approx(plain.record.reason.score, abs=1e-6)
    assert POOL.validate(other.configs[0]) == other.configs[0]


def test_the_new_study_always_counts_a_little() -> None:
    """A past that is flat along a parameter it does not know must leave that one to the new
    study."""
    assert with_min_weight(np.array([0.5, 0.5])).tolist() == [0.5, 0.5]
    assert with_min_weight(np.array([1.0, 0.0]), 0.0).tolist() == [1.0, 0.0]
    floored = with_min_weight(np.array([0.75, 0.25, 0.0]))
    assert floored.sum() == pytest.approx(1.0) and floored[-1] == pytest.approx(1e-6)
