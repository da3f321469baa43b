"""Verdicts: the noise and where it comes from, probabilities that are true, runs that settle it."""

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.json_values import Config
from scrimp.study.contest import SEED, Runs, noise_of
from scrimp.study.verdict import next_runs

SPACE = scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b", "c"]))


def bowl(params: Config) -> float:
    return float((params["x"] - 0.3) ** 2 + 0.1 * ("abc".index(params["kind"])))


def noisy(std: float, seed: int = 0) -> Callable[[Config, int], float]:
    """The bowl with noise that does not depend on the seed of a run."""
    rng = np.random.default_rng(seed)
    return lambda params, seed: bowl(params) + std * float(rng.standard_normal())


def studied(
    objective: Callable[[Config, int], float], count: int = 15, **settings: object
) -> scrimp.Study:
    defaults = {"method": "random", "storage": "memory://", "seed": 0}
    study = scrimp.create_study("s", SPACE, **{**defaults, **settings})
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, objective(trial.params, 0))
    return study


def test_the_planned_runs_measure_the_noise_and_settle_what_is_clear() -> None:
    study = studied(noisy(0.0))
    verdict = study.verdict()
    assert verdict.probability_better > 0.99
    said = "Not settled until more repeated runs measure the noise: about 4 more runs"
    assert verdict.runs_needed == 4 and said in str(verdict)
    for planned in (2, 0):
        verdict = study.verdict(confirm=bowl, runs=2)
        assert (verdict.runs_needed, verdict.settled) == (planned, not planned)


def test_without_repeats_the_noise_is_bounded_and_nothing_is_settled() -> None:
    verdict = studied(noisy(0.0)).verdict()
    assert verdict.noise_source.startswith("a model") and not verdict.settled
    assert verdict.runs_needed > 0 and verdict.best.trial in verdict.plan
    assert 0.5 <= verdict.probability_better <= 0.999
    assert "not measured, since no configuration was run twice" in str(verdict)
    assert f"suggests about {verdict.noise:.2g} (standard deviation)" in str(verdict)
    assert "it may be several times larger" in str(verdict)


def test_a_better_value_after_less_training_is_named_and_not_compared() -> None:
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", 1, 9),
        method="random",
        storage="memory://",
        seed=0,
    )
    for steps, value in ((9, 0.5), (9, 0.6), (3, 0.2), (3, 0.7)):
        trial = study.ask()
        study.report(trial, step=steps, value=value)
    verdict = study.verdict()
    assert verdict.best.trial == 0
    assert "Not compared: trial 2 has the best value so far, value 0.2 after 3 epochs." in str(
        verdict
    )
    assert "Not compared" not in str(studied(noisy(0.0)).verdict())


def test_the_noise_of_repeated_configurations() -> None:
    study = studied(noisy(0.05), noisy=True)
    objective = noisy(0.05, 1)
    config = study.best_params
    for _ in range(60):
        study.enqueue(config)
        trial = study.ask()
        assert trial.params == config
        study.tell(trial, objective(config, 0))
    verdict = study.verdict()
    # 60 degrees of freedom: the estimate is within 9 %, three times that allowed
    assert verdict.noise == pytest.approx(0.05, rel=0.28)
    assert verdict.noise_source == "61 runs of 1 repeated configuration"
    assert verdict.best.runs in (1, 61)


def test_reported_standard_errors_are_the_noise() -> None:
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, bowl(trial.params), stderr=0.02)
    verdict = study.verdict()
    assert verdict.noise == pytest.approx(0.02) and "standard errors" in verdict.noise_source


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_confirming_settles_a_large_difference_and_records_the_runs(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    objective = noisy(0.01)
    study = studied(lambda p, s: sign * objective(p, s), direction=direction)
    before = len(study.trials)
    seeds = []

    def confirm(params: Config, seed: int) -> float:
        seeds.append((params["x"], seed))
        return sign * objective(params, seed)

    verdict = study.verdict(confirm=confirm, runs=40)
    assert verdict.settled and verdict.runs_needed == 0 and verdict.plan == {}
    assert verdict.confirmed == len(seeds) == len(study.trials) - before <= 40
    assert verdict.probability_better >= 0.95 and "Settled at 95 %" in str(verdict)
    rivals = [bowl(rival.params) for rival in verdict.rivals]
    assert bowl(verdict.best.params) < min(rivals)
    told = [(trial.params["x"], trial.user_attrs["seed"]) for trial in study.trials[before:]]
    assert told == seeds and len(set(seeds)) == len(seeds)
    assert "confirm a verdict" in str(study.explain(len(study.trials) - 1))
    assert study.ask().params not in [trial.params for trial in study.trials[:-1]]


def test_seeds_are_paired_and_their_effect_cancels() -> None:
    """Runs differ by their seeds alone, twenty times as much as the two configurations."""
    space = scrimp.Space(kind=scrimp.Categorical(["a", "b"]))
    effect = np.random.default_rng(3).standard_normal(100)

    def confirm(params: Config, seed: int) -> float:
        return 0.05 * (params["kind"] == "b") + float(effect[seed])

    study = scrimp.create_study("s", space, method="grid", storage="memory://", seed=0)
    for place in (50, 60):
        trial = study.ask()
        study.tell(trial, confirm(trial.params, place))
    verdict = study.verdict(confirm=confirm, runs=16)
    assert verdict.settled and verdict.best.params == {"kind": "a"}
    pairs = [trial.user_attrs["seed"] for trial in study.trials[2:]]
    assert pairs[::2] == pairs[1::2]
    found = noise_of(Runs.of(study.history))
    assert found is not None and found.shared == pytest.approx(found.std, rel=0.05)


def test_confirming_ends_where_many_more_runs_would_be_needed() -> None:
    space = scrimp.Space(kind=scrimp.Categorical(["a", "b", "c"]))
    rng = np.random.default_rng(0)
    study = scrimp.create_study("s", space, method="grid", storage="memory://", seed=0)
    for _ in range(3):
        study.tell(study.ask(), float(rng.standard_normal()))
    verdict = study.verdict(confirm=lambda params: float(rng.standard_normal()), runs=12)
    assert not verdict.settled and verdict.confirmed <= 12
    assert verdict.runs_needed > 12 - verdict.confirmed
    assert "more runs" in str(verdict) or "too close" in str(verdict)


def test_equal_configurations_are_seldom_called_different() -> None:
    """Thirty studies of four equal configurations: at level 0.95 a false winner in 5 % of them; six
    or more have a probability below 0.004."""
    space = scrimp.Space(kind=scrimp.Categorical(["a", "b", "c", "d"]))
    wrong = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 9])
        study = scrimp.create_study("s", space, method="grid", storage="memory://", seed=seed)
        for _ in range(4):
            study.tell(study.ask(), float(rng.standard_normal()))
        wrong += study.verdict(
            confirm=lambda p, rng=rng: float(rng.standard_normal()), runs=16
        ).settled
    assert wrong <= 5


def test_the_default_is_the_guess_of_the_user() -> None:
    objective = noisy(0.001)
    study = scrimp.create_study("s", SPACE, method="random", storage="memory://", seed=0)
    study.tell(study.ask(), 0.5)
    study.enqueue({"x": 0.9, "kind": "c"})
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, objective(trial.params, 0))
    verdict = study.verdict()
    default = verdict.default
    assert "the first queued configuration, trial 1 (" in str(verdict)
    assert default is not None and default.trial == 1 and default.params["x"] == 0.9
    plain = studied(objective, 6).verdict()
    assert plain.best.trial == 0 or (plain.default is not None and plain.default.trial == 0)


def test_a_first_trial_is_no_default_and_is_named_once() -> None:
    values = iter((1.0, 0.0))
    verdict = studied(lambda params, seed: next(values), 2).verdict()
    assert verdict.runner_up.trial == 0
    assert "the runner-up and the first trial, trial 0 (" in str(verdict)
    assert str(verdict).count("beats") == 1 and "default" not in str(verdict)
    apart = replace(verdict, default=replace(verdict.runner_up, trial=7))
    assert "It beats the first trial, trial 7 (" in str(apart)


def test_probabilities_are_never_one_and_json_is_plain() -> None:
    study = studied(noisy(0.0), 12, noisy=True)
    for config in (study.best_params, study.trials[0].params):
        study.enqueue(config)
        trial = study.ask()
        study.tell(trial, bowl(trial.params))
    verdict = study.verdict()
    assert verdict.probability_better <= 0.999 and "1.00" not in str(verdict)
    found = json.loads(json.dumps(verdict.to_json()))
    assert found["noise"] == verdict.noise and found["best"]["trial"] == verdict.best.trial
    assert found["probability_better"] == verdict.probability_better


def test_it_is_settled_once_both_rivals_are_beaten() -> None:
    verdict = replace(studied(noisy(0.0)).verdict(), noise_freedom=10.0)
    sure = replace(verdict.runner_up, trial=1, probability=0.99)
    unsure = replace(sure, trial=2, probability=0.003)
    assert replace(verdict, runner_up=sure, default=replace(sure, trial=2)).settled
    assert replace(verdict, runner_up=sure, default=None).settled
    for rivals in ((sure, unsure), (unsure, sure)):
        told = replace(verdict, runner_up=rivals[0], default=rivals[1])
        assert not told.settled and "with probability below 0.01" in str(told)


def test_a_better_value_than_that_of_the_best_is_told() -> None:
    """A single lucky run does not make a configuration the best."""
    space = scrimp.Space(kind=scrimp.Categorical(["a", "b", "c", "d"]))
    study = scrimp.create_study("s", space, method="grid", storage="memory://", noisy=True)
    results = [("a", v) for v in (0.2, -0.2, 0.1, -0.1)] + [("b", -0.12), ("c", 2.0), ("d", 0.05)]
    for kind, value in [*results, ("d", 0.3), ("c", 2.3), ("c", 1.8)]:
        study.enqueue({"kind": kind})
        study.tell(study.ask(), value)
    verdict = study.verdict()
    assert verdict.best.params == {"kind": "a"} and verdict.luckiest is not None
    assert verdict.luckiest.params == {"kind": "b"} and verdict.luckiest.value == -0.12
    apart = replace(verdict, runner_up=replace(verdict.runner_up, trial=5))
    told = "It beats trial 4, which has the best value (-0.12), with probability 0."
    assert told in str(apart) and "part of that value is expected to be luck" in str(apart)
    assert told not in str(replace(apart, luckiest=None))


def test_a_queued_repetition_is_no_default() -> None:
    """A user who repeats the best configuration to measure the noise does not make it the default."""
    study = studied(noisy(0.1), 10, noisy=True)
    study.enqueue(study.trials[3].params)
    trial = study.ask()
    study.tell(trial, bowl(trial.params))
    told = str(study.verdict())
    assert "the first trial, trial 0" in told and "queued" not in told
    study.enqueue({**trial.params, "x": 0.9123})
    trial = study.ask()
    study.tell(trial, bowl(trial.params))
    assert f"the first queued configuration, trial {trial.id}" in str(study.verdict())


def test_the_next_runs_are_of_the_best_and_of_the_closest_rival() -> None:
    space = scrimp.Space(kind=scrimp.Categorical(["a", "b", "c"]))
    values = {"a": 0.0, "b": 0.05, "c": 3.0}
    study = scrimp.create_study("s", space, method="grid", storage="memory://", noisy=True)
    for kind, value in values.items():
        for change in (-0.1, 0.1):
            study.enqueue({"kind": kind})
            study.tell(study.ask(), value + change)
    chosen = next_runs(study.history, 0.95)
    assert sorted(config["kind"] for config, _ in chosen) == ["a", "b"]
    assert {seed for _, seed in chosen} == {0}
    # With a seed that only the best was run with, the rival is enough.
    study.set_user_attr(SEED, 7, trial=0)
    assert next_runs(study.history, 0.95) == [({"kind": "b"}, 7)]
    study.set_user_attr(SEED, 7, trial=2)
    assert {seed for _, seed in next_runs(study.history, 0.95)} == {0}


def test_refusals() -> None:
    with pytest.raises(StudyError, match="has 1 with a finished run; run more trials"):
        studied(noisy(0.0), 1).verdict()
    limited = scrimp.create_study(
        "s", SPACE, constraints={"size": scrimp.AtMost(1)}, storage="memory://", seed=0
    )
    for _ in range(3):
        limited.tell(limited.ask(), {"value": 1.0, "size": 2.0})
    with pytest.raises(StudyError, match="has 0 with a finished run that satisfies the constr"):
        limited.verdict()
    with pytest.raises(StudyError, match=r"level is 1\.0; it must be above 0\.5 and below 1"):
        studied(noisy(0.0), 3).verdict(level=1.0)
    both = {"p": "minimize", "q": "minimize"}
    study = scrimp.create_study("s", SPACE, metrics=both, storage="memory://", seed=0)
    with pytest.raises(StudyError, match=r"compares one metric.*study\.front"):
        study.verdict()
    assert math.isfinite(studied(noisy(0.0), 3).verdict().noise)


def test_the_spread_of_the_difference_is_named_and_agrees_with_the_probability() -> None:
    runner_up = studied(noisy(0.05)).verdict().runner_up
    assert runner_up is not None
    z = runner_up.behind / (runner_up.give_or_take / 1.96)
    assert 0.5 * math.erfc(-z / math.sqrt(2.0)) == pytest.approx(runner_up.probability, abs=0.02)
    text = str(studied(noisy(0.05)).verdict())
    assert "(95 %)." in text.split("expected difference")[1].split("\n")[0]
