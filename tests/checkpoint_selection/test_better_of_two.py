"""Is A better than B: errors are bounded at all times, few answers for large differences."""

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.better_of_two import DIFFERENCES, Wealth, is_better
from scrimp.errors import ReportError, StudyError


def table(seed: int, gap: float, size: int = 600) -> dict[object, np.ndarray]:
    rng = np.random.default_rng(seed)
    difficulty, luck = rng.random(size), 0.2 * rng.standard_normal((2, size))
    return {name: (0.5 + sign * gap / 2 + luck[place] > difficulty).astype(float)
            for place, (name, sign) in enumerate((("a", 1), ("b", -1)))}  # fmt: skip


def asker(answers: dict[object, np.ndarray], seen: list[object] | None = None) -> object:
    def evaluate(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        if seen is not None:
            seen.extend((checkpoint, task, question) for question in questions)
        half = len(answers["a"]) // 2 * (task == "second")
        return [float(answers[checkpoint][half + question]) for question in questions]

    return evaluate


TASKS = {"first": 300, "second": 300}


def test_a_clear_difference_needs_few_answers_and_no_question_is_asked_twice() -> None:
    seen: list[object] = []
    found = scrimp.is_better(asker(table(0, 0.5), seen), "a", "b", TASKS, seed=0)
    assert found.better == "a" and found.p_value <= 0.05 and found.answers < 300
    assert len(set(seen)) == len(seen) == found.answers and found.of == 1200
    low, high = found.interval
    assert 0.0 < low < found.difference < high
    assert "a is better" in str(found) and "of 1,200 answers" in str(found)
    assert is_better(asker(table(0, 0.5)), "b", "a", TASKS, seed=0).better == "a"


def test_without_a_difference_the_error_is_bounded_at_all_times() -> None:
    """Every question is there twice, with the roles exchanged, so that the difference is zero."""
    wrong = 0
    for seed in range(120):
        once = table(seed, 0.2, 150)
        both = {
            "a": np.concatenate([once["a"], once["b"], once["b"], once["a"]]),
            "b": np.concatenate([once["b"], once["a"], once["a"], once["b"]]),
        }
        found = is_better(asker(both), "a", "b", TASKS, level=0.2, seed=seed, answers=1000)
        wrong += found.better is not None
    # At most 24 are expected; 34 or more have a probability of 2 %.
    assert wrong <= 33


def test_the_wealth_is_the_mean_of_all_bets() -> None:
    drawn = np.array([1.0, 0.0, -1.0, 1.0, 1.0])
    wealth, half = Wealth(), len(DIFFERENCES) // 2
    assert DIFFERENCES[half] == 0.0
    highest = 1.0
    for place, value in enumerate(drawn):
        wealth.add(np.array([value]))
        bets = np.array([0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.9])
        capital = [np.prod(1 + sign * bet * drawn[: place + 1]) for sign in (1, -1) for bet in bets]
        highest = max(highest, float(np.mean(capital)))
    assert wealth.p_value == pytest.approx(1.0 / highest)


def test_when_everything_is_asked_the_difference_is_known() -> None:
    answers = table(3, 0.0, 40)
    found = is_better(asker(answers), "a", "b", {"first": 20, "second": 20}, seed=0)
    truth = float((answers["a"] - answers["b"]).mean())
    assert found.answers == found.of == 80 and found.difference == pytest.approx(truth)
    assert found.interval == (found.difference, found.difference)
    assert (found.better == "a") == (truth > 0)


def test_weights_limits_and_tolerance_count() -> None:
    def split(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        return [float((checkpoint == "a") == (task == "first"))] * len(questions)

    assert is_better(split, "a", "b", TASKS, weights={"first": 5.0}, seed=0).better == "a"
    assert is_better(split, "a", "b", TASKS, weights={"second": 5.0}, seed=0).better == "b"
    few = is_better(asker(table(0, 0.01)), "a", "b", TASKS, answers=100, seed=0)
    assert few.better is None and few.answers <= 100 and "no difference" in str(few)

    def same(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        return [1.0] * len(questions)

    alike = is_better(same, "a", "b", {"t": 100_000}, tolerance=0.05, seed=0)
    assert alike.better is None and alike.answers < 2000


def test_bad_arguments_are_refused() -> None:
    evaluate = asker(table(0, 0.1))
    for arguments, words in (
        ({"tasks": {}}, "numbers of questions"),
        ({"tasks": {"first": 0}}, "whole number"),
        ({"tasks": TASKS, "level": 1.0}, "probability of error"),
        ({"tasks": TASKS, "weights": {"x": 1.0}}, "weights"),
        ({"tasks": TASKS, "answers": 1}, "at least 2"),
    ):
        with pytest.raises(StudyError, match=words):
            is_better(evaluate, "a", "b", **arguments)
    with pytest.raises(ReportError, match="between 0 and 1"):
        is_better(lambda *given: [7.0] * len(given[2]), "a", "b", TASKS)
