"""One study played through: asked, measured and told in this process, with its deciding timed."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from scrimp.errors import StudyError
from scrimp.history.events import Config
from scrimp.history.trial import Trial
from scrimp.space.space import Space
from scrimp.tuning.studies import create_study
from scrimp.tuning.study import Study

__all__ = ["BenchQuestion", "play_out", "play_study"]


@dataclass(frozen=True)
class BenchQuestion:
    """What is played: a space, a function that measures a configuration (None: it failed), and
    whether it is noisy."""

    space: Space
    measure: Callable[[Config], float | None]
    noisy: bool = False


def play_out(
    question: BenchQuestion,
    method: str,
    seed: int,
    trials: int,
    workers: int = 1,
    place: tuple[str, str] = ("bench", "memory://"),
) -> tuple[float, int]:
    """Ask and tell until ``trials`` were measured or nothing is left to try: CPU seconds spent
    asking, and how many asks.

    With several ``workers`` as many trials are open at once; the oldest is measured first.
    ``place``: the study's name and storage.
    """
    name, storage = place
    study = create_study(
        name, question.space, method=method, storage=storage, seed=seed, noisy=question.noisy
    )
    return play_study(study, question.measure, trials, workers)


def play_study(
    study: Study, measure: Callable[[Config], float | None], trials: int, workers: int = 1
) -> tuple[float, int]:
    """The same of a study that exists."""
    running: deque[Trial] = deque()

    def finish() -> None:
        trial = running.popleft()
        value = measure(trial.config)
        if value is None:
            study.tell(trial, state="failed")
        else:
            study.tell(trial, value)

    seconds, asks = 0.0, 0
    while asks < trials:
        start = time.process_time()
        try:
            trial = study.ask()
        except StudyError:  # nothing to ask for: for now, or for good
            if not running:
                break
            finish()
            continue
        seconds += time.process_time() - start
        asks += 1
        running.append(trial)
        if len(running) >= workers:
            finish()
    while running:
        finish()
    return seconds, asks
