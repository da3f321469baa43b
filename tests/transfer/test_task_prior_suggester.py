"""The default with past studies: gate, start, evidence, no harm."""

import numpy as np
import pytest

from scrimp.acquisition.acquisition import Context
from scrimp.encoding.encoding import Encoding
from scrimp.errors import MethodError
from scrimp.json_values import Config
from scrimp.space.parameter import Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study_log.decision_record import DecisionRecord, FromPortfolio
from scrimp.study_log.problem import Problem
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.suggester import Suggester
from scrimp.surrogates.exact_gp import ExactGP, FittedGP
from scrimp.surrogates.surrogate import Data
from scrimp.testing.policies import SuggesterBattery, ask, begin, drive, tell
from scrimp.transfer.past import Past
from scrimp.transfer.portfolio import AdaptivePortfolio
from scrimp.transfer.source_study import SourceStudy, source_study
from scrimp.transfer.task_prior import NUMBERS as MIXTURE
from scrimp.transfer.task_prior import MixtureImprovement, TaskBasis, TaskPosterior, task_posterior
from scrimp.transfer.task_prior_suggester import (
    NUMBERS,
    Lessons,
    TaskPriorSuggester,
    is_own_turn,
    learn,
    task_acquisition,
)


class TestTaskPrior(SuggesterBattery):
    def suggester(self) -> Suggester:
        return TaskPriorSuggester()


SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), n=Int(1, 5))
POOL = Pool(SPACE, SPACE.sample(80, np.random.default_rng(1)))


def loss(config: Config, shift: float = 0.0) -> float:
    return float(
        (config["a"] - 0.3 - shift) ** 2 + (config["b"] - 0.7) ** 2 + 0.05 * abs(config["n"] - 2)
    )


def study(name: str, y: object = None, shift: float = 0.0, count: int = 40) -> SourceStudy:
    configs = SPACE.sample(count, np.random.default_rng(len(name) + int(100 * abs(shift))))
    values = np.array([loss(config, shift) for config in configs]) if y is None else np.asarray(y)
    return source_study(name, SPACE.to_units(configs), values)


COLUMNS = Encoding(SPACE).columns
GOOD = tuple(study(f"past{number}", shift=0.05 * number) for number in range(5))
BEGUN = begin(Problem(POOL))


def learned_from(studies: tuple[SourceStudy, ...], doubt: float = 0.0) -> tuple[Lessons, TaskBasis]:
    """What these studies teach about the pool."""
    lessons = learn(Past(studies, COLUMNS), Encoding(POOL), 0, doubt)
    assert lessons is not None and lessons.bases[0] is not None
    return lessons, lessons.bases[0]


def test_unlearnable_and_meaningless_studies_are_left_out_and_noted() -> None:
    rng = np.random.default_rng(0)
    noise = study("noise", rng.standard_normal(40))
    past = Past((*GOOD, noise), COLUMNS)
    assert learned_from(past.studies)[0].names == tuple(one.name for one in GOOD)
    said = ask(TaskPriorSuggester(past=past), begin(Problem(POOL))).record.sources
    assert said.unlearnable == ("noise",) and said.used == tuple(one.name for one in GOOD)


def test_when_no_study_can_be_learned_it_is_the_cold_process_exactly() -> None:
    rng = np.random.default_rng(0)
    past = Past(tuple(study(f"noise{k}", rng.standard_normal(40)) for k in range(4)), COLUMNS)
    assert learn(past, Encoding(POOL), 0, 0.0) is None
    warm = drive(TaskPriorSuggester(past=past), begin(Problem(POOL, seed=5)), 9, loss)
    cold = drive(BayesianSuggester(initial=3), begin(Problem(POOL, seed=5)), 9, loss)
    assert [trial.config for trial in warm.trials] == [trial.config for trial in cold.trials]


def test_a_single_past_study_is_enough() -> None:
    """It has no differences; the rest keeps a variance all the same."""
    suggester = TaskPriorSuggester(past=Past(GOOD[:1], COLUMNS))
    history = drive(suggester, begin(Problem(POOL)), 7, loss)
    assert min(loss(trial.config) for trial in history.trials) < 0.05


def test_the_start_is_the_portfolio_then_models_decide() -> None:
    suggester = TaskPriorSuggester(past=Past(GOOD, COLUMNS))
    history = drive(suggester, begin(Problem(POOL)), 1, loss)
    assert ask(suggester, history).record == DecisionRecord(reason=FromPortfolio())
    history = drive(suggester, history, 2, loss)
    assert ask(suggester, history).record.sources.weights
    portfolio = learned_from(GOOD)[0].portfolio
    assert isinstance(portfolio, AdaptivePortfolio)
    best_on_average = int(np.argmin(portfolio.scaled.mean(axis=1)))
    assert history.trials[0].config == POOL.configs[best_on_average]


def _cold(y: np.ndarray, x: np.ndarray) -> FittedGP:
    return ExactGP.over(COLUMNS).fit(Data(x, (y - y.mean()) / y.std()), np.random.default_rng(0))


def test_evidence_decides_between_the_past_and_the_new_study() -> None:
    _, basis = learned_from(GOOD)
    rng = np.random.default_rng(3)
    rows = rng.permutation(80)[:20]
    x = POOL.units[rows]
    related = np.array([loss(POOL.configs[row], 0.1) for row in rows])
    explained = task_posterior(basis, _cold(related, x)).cold_weight
    unrelated = np.sin(9 * x[:, 0]) * np.cos(7 * x[:, 1])
    alone = task_posterior(basis, _cold(unrelated, x)).cold_weight
    assert explained < 0.05 < alone


def test_the_cold_process_joins_when_there_is_something_to_fit() -> None:
    _, basis = learned_from(GOOD)
    x = POOL.units[: MIXTURE.cold_from]
    y = np.array([loss(config) for config in POOL.configs[: MIXTURE.cold_from]])
    few = task_posterior(basis, _cold(y[:-1], x[:-1]))
    assert few.cold_weight == 0.0 and all(component.parts[3] == 0.0 for component in few.components)
    some = task_posterior(basis, _cold(y, x))
    assert some.weights.sum() == pytest.approx(1.0) and (some.scales > 0).all()


def test_the_acquisition_adds_a_little_of_what_past_models_predict() -> None:
    lessons, basis = learned_from(GOOD)
    x, others = POOL.units[:10], POOL.units[10:]
    posterior = task_posterior(
        basis, _cold(np.array([loss(config) for config in POOL.configs[:10]]), x)
    )
    models, context = {"loss": posterior}, Context(x)
    improvement = np.exp(MixtureImprovement().bind(models, context)(others))
    means = basis.sources.means
    predicted_gain = np.maximum(means(x).min(axis=0) - means(others), 0.0).mean(axis=1)
    assert predicted_gain.max() > 0.0
    expected = (1.0 - NUMBERS.steady) * improvement + NUMBERS.steady * predicted_gain
    acquisition = task_acquisition(posterior, lessons.portfolio.rows, 0.0)
    assert np.exp(acquisition.bind(models, context)(others)) == pytest.approx(expected, rel=1e-9)


def test_early_on_past_studies_count_for_more() -> None:
    lessons, basis = learned_from(GOOD)
    y = np.array([loss(config) for config in POOL.configs])
    shares = []
    for count in (1, 5, 10, 30):
        data = Data(POOL.units[:count], y[:count])
        posterior = TaskPosterior(basis, (), np.zeros(0), np.zeros(0), data)
        acquisition = task_acquisition(posterior, lessons.portfolio.rows, 0.4)
        shares.append(acquisition.early)
        assert acquisition.agreement.sum() == pytest.approx(1.0)
    assert shares == pytest.approx([0.36, 0.2, 0.0, 0.0])


def test_with_few_past_studies_the_cold_process_has_turns_of_its_own() -> None:
    def weights(studies: tuple[SourceStudy, ...], tried: int, own_turns: bool) -> dict[str, float]:
        suggester = TaskPriorSuggester(past=Past(studies, COLUMNS), own_turns=own_turns)
        history = drive(TaskPriorSuggester(past=Past(GOOD, COLUMNS)), BEGUN, tried, loss)
        return dict(ask(suggester, history).record.sources.weights)

    assert weights(GOOD[:3], 6, True) == {"this study": 1.0}
    for studies, tried, own_turns in ((GOOD[:3], 5, True), (GOOD, 6, True), (GOOD[:3], 6, False)):
        assert len(weights(studies, tried, own_turns)) > 1
    count = NUMBERS.min_studies_without_own_turns
    many = tuple(study(f"past{number:02}", shift=0.01 * number) for number in range(count))
    _, basis = learned_from(many)
    assert len(basis.sources) == count
    assert not any(is_own_turn(tried, basis, 8) for tried in range(50))


def test_values_that_agree_are_no_proof() -> None:
    """Ten equal values: with the noise of the plain process the fit is certain of a constant, and
    length-scales run away."""
    suggester = TaskPriorSuggester(past=Past(GOOD, COLUMNS))
    history = drive(suggester, begin(Problem(POOL)), 10, lambda config: 1.0)
    found = ask(suggester, history).record.fit["loss"].state["inner"]["parameters"]
    assert found["noise"][0] >= 1e-4 and max(found["length_scale"]) < 20.0


def test_upside_down_past_does_no_lasting_harm() -> None:
    """Inverted past studies against the cold process, 3 seeds, mean best loss after 15 trials: no
    worse by more than 0.01."""
    inverted = Past(tuple(source_study(one.name, one.x, -one.y) for one in GOOD), COLUMNS)
    warm, cold = [], []
    for seed in range(3):
        for found, suggester in (
            (warm, TaskPriorSuggester(past=inverted)),
            (cold, BayesianSuggester(initial=3)),
        ):
            history = drive(suggester, begin(Problem(POOL, seed=seed)), 15, loss)
            found.append(min(trial.loss for trial in history.trials if trial.loss is not None))
    assert np.mean(warm) <= np.mean(cold) + 0.01


def test_on_a_continuous_space() -> None:
    suggester = TaskPriorSuggester(past=Past(GOOD, COLUMNS))
    history = drive(suggester, begin(Problem(SPACE, seed=1)), 12, loss)
    assert min(loss(trial.config) for trial in history.trials) < 0.01


def test_doubt_takes_what_is_good_for_many_first() -> None:
    """Of five configurations none is next to another, and all are good."""
    suggester = TaskPriorSuggester(start=5, doubt=0.1, past=Past(GOOD, COLUMNS))
    history = drive(suggester, begin(Problem(SPACE, seed=1)), 5, loss)
    rows = SPACE.to_units([trial.config for trial in history.trials])
    apart = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))[np.triu_indices(5, 1)]
    assert apart.min() > 0.03
    assert max(loss(trial.config) for trial in history.trials) < 0.3
    assert ask(suggester, history).record.reason != FromPortfolio()


def test_configurations_of_the_user_before_the_start() -> None:
    history = begin(Problem(SPACE))
    for a in (0.11, 0.52):
        history = tell(history, {"a": a, "b": 0.5, "n": 3}, loss({"a": a, "b": 0.5, "n": 3}))
    found = ask(TaskPriorSuggester(past=Past(GOOD, COLUMNS)), history)
    assert found.record.reason == FromPortfolio()


def test_bad_settings() -> None:
    with pytest.raises(MethodError, match="start is 0; it must be at least 1"):
        TaskPriorSuggester(start=0)
    with pytest.raises(MethodError, match=r"early is 1.0; it must be from 0 to 0.9"):
        TaskPriorSuggester(early=1.0)
    with pytest.raises(MethodError, match=r"doubt is 2.0; it must be from 0 to 1"):
        TaskPriorSuggester(doubt=2.0)


def test_a_portfolio_with_doubt_counts_as_one_trial_for_patience() -> None:
    history = begin(Problem(SPACE))
    for a, value in zip((0.1, 0.3, 0.5, 0.7, 0.9), (1.0, 3.0, 2.0, 4.0, 5.0), strict=True):
        history = tell(history, {"a": a, "b": 0.5, "n": 3}, value)
    past = Past(GOOD, COLUMNS)
    for doubt, exploring in ((0.0, True), (0.1, False)):
        suggester = TaskPriorSuggester(start=3, patience=4, doubt=doubt, past=past)
        assert ask(suggester, history).record.reason.exploring == exploring
