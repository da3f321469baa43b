"""A study played through: what is asked, measured and told."""

import pytest

from scrimp.bench.runner import Measure, play_study
from scrimp.errors import MethodError
from scrimp.space.parameter import Float, Int
from scrimp.space.space import Pool, Space
from scrimp.study.studies import create_study
from scrimp.study.study import Study

SPACE = Space(x=Float(0.0, 1.0))


def play(
    space: Space, measure: Measure, method: str, seed: int, trials: int, workers: int = 1
) -> tuple[float, int]:
    """Play a study in memory."""
    study = create_study("bench", space, method=method, storage="memory://", seed=seed)
    return play_study(study, measure, trials, workers)


def test_every_trial_is_measured_once_and_timed() -> None:
    seen: list[float] = []

    def measure(config: dict[str, float]) -> float | None:
        seen.append(config["x"])
        return None if config["x"] > 0.5 else config["x"]

    seconds, asks = play(SPACE, measure, "random", seed=0, trials=20)
    assert asks == len(seen) == len(set(seen)) == 20
    assert 0 < seconds < 5


def test_same_seed_same_run() -> None:
    runs: list[list[float]] = []
    for seed in (1, 1, 2):
        seen: list[float] = []
        play(
            SPACE,
            lambda config, seen=seen: seen.append(config["x"]) or config["x"],
            "random",
            seed,
            5,
        )
        runs.append(seen)
    assert runs[0] == runs[1] != runs[2]


def play_order(workers: int) -> list[int]:
    """How many trials were open at each measurement, the measured one included."""
    opened: list[int] = []
    original = Study.ask

    with pytest.MonkeyPatch.context() as patch:
        asked: list[int] = []
        patch.setattr(Study, "ask", lambda study: asked.append(1) or original(study))
        play(
            SPACE,
            lambda config: opened.append(len(asked) - len(opened)) or 0.0,
            "random",
            0,
            9,
            workers,
        )
    return opened


def test_workers_keep_as_many_trials_open() -> None:
    told: list[float] = []

    def measure(config: dict[str, float]) -> float:
        told.append(config["x"])
        return config["x"]

    alone, together = play_order(1), play_order(4)
    assert alone == [1] * 9 and together == [4, 4, 4, 4, 4, 4, 3, 2, 1]
    _, asks = play(SPACE, measure, "gp:initial=5", seed=0, trials=9, workers=4)
    assert asks == 9 and len(set(told)) == 9  # running trials are not proposed again


def test_an_exhausted_pool_ends_the_study() -> None:
    pool = Pool(Space(k=Int(1, 9)), [{"k": 2}, {"k": 5}, {"k": 9}])
    seen: list[int] = []
    _, asks = play(
        pool,
        lambda config: seen.append(config["k"]) or 1.0,
        "random",
        seed=0,
        trials=10,
        workers=2,
    )
    assert asks == 3 and sorted(seen) == [2, 5, 9]


def test_unknown_methods_are_refused() -> None:
    with pytest.raises(MethodError, match="no method 'gps'"):
        play(SPACE, lambda config: 0.0, "gps", seed=0, trials=1)
