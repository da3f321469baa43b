"""Selections by question: in the log, asked and told, run, resumed, replayed."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.question_policy import pack_answers, race_of, unpack_answers
from scrimp.errors import ReportError, StudyError
from scrimp.explain.race_words import checkpoint_lines
from scrimp.explain.replay import replay
from scrimp.study.sources import read_past
from scrimp.study.studies import storage_at

TASKS = {"arc": 120, "gsm8k": 80}
STEPS = [1000 * number for number in range(1, 13)]


def right(checkpoint: object, task: str, question: int) -> float:
    """A right or wrong answer that is the same whenever it is asked; 7000 is best."""
    seed = [int(str(checkpoint)), len(task), question]
    difficulty = np.random.default_rng([len(task), question]).random()
    ability = 0.8 - abs(int(str(checkpoint)) - 7000) / 20_000
    luck = 0.3 * np.random.default_rng(seed).standard_normal()
    return float(ability + luck > difficulty)


def evaluate(checkpoint: object, task: str, questions: list[int]) -> list[float]:
    return [right(checkpoint, task, question) for question in questions]


def test_one_call_asks_a_share_of_the_answers_and_none_twice() -> None:
    asked: list[tuple[object, str, int]] = []

    def counted(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        asked.extend((checkpoint, task, question) for question in questions)
        return evaluate(checkpoint, task, questions)

    best = scrimp.select_checkpoint(counted, STEPS, TASKS, answers=0.25, seed=0)
    assert 0.2 * 2400 <= len(asked) <= 0.25 * 2400
    assert len(set(asked)) == len(asked)
    assert abs(best.checkpoint - 7000) <= 3000
    assert best.asked == len(asked) and best.answers == 2400
    low, high = best.interval
    assert low < best.expected_score < high
    assert "sampling error included" in str(best) and "1.00" not in str(best)


def test_ask_and_tell_by_question(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    selection = scrimp.create_selection("s", checkpoints=STEPS, tasks=TASKS, storage=url, seed=0)
    selection.stop_when(share=0.1)
    while not selection.finished:
        # A fresh process every time: everything is in the log.
        selection = scrimp.load_selection("s", storage=url)
        checkpoint, task, questions = selection.ask()
        # The order of the answers is that of the questions given.
        reverse = questions[::-1]
        answers = evaluate(checkpoint, task, reverse)
        selection.tell(checkpoint, task, answers, questions=reverse)
    assert selection.recommend().checkpoint in STEPS
    _, race = race_of(selection.history)
    for row, task in np.argwhere(race.counts > 0):
        count = race.counts[row, task]
        name = list(TASKS)[task]
        expected = evaluate(STEPS[row], name, race.order[task][:count].tolist())
        assert race.book.answers(np.array([row]), task, count)[0].tolist() == expected
    outcomes = list(replay(selection.history.events, partial(read_past, storage_at(url))))
    assert outcomes and all(outcome.same for outcome in outcomes)


def test_parallel_evaluators_get_different_cells_of_the_round() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    selection.stop_when(share=0.2)
    parts = selection.ask(count=30)
    assert 1 < len(parts) <= 30
    assert len({(checkpoint, task) for checkpoint, task, _ in parts}) == len(parts)
    for checkpoint, task, questions in parts:
        selection.tell(checkpoint, task, evaluate(checkpoint, task, questions))
    assert len(selection.ask()) == 3


def test_worker_processes_answer_questions(tmp_path: Path) -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS[:6], tasks=TASKS, storage=f"sqlite:///{tmp_path}/s.db", seed=0
    )
    best = selection.run(evaluate, answers=120, workers=2, progress=False)
    assert best.asked is not None and 100 <= best.asked <= 120
    assert not selection.history.with_status("failed", "running")


def test_more_answers_continue_with_all_that_were_given() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    first = selection.run(evaluate, answers=0.05, progress=False)
    asked: list[tuple[object, str, int]] = []

    def counted(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        asked.extend((checkpoint, task, question) for question in questions)
        return evaluate(checkpoint, task, questions)

    second = selection.run(counted, answers=0.2, progress=False)
    assert second.asked == first.asked + len(asked)
    assert second.asked <= 0.2 * 2400


def test_new_checkpoints_join_the_race() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS[:5], tasks=TASKS, storage="memory://", seed=0
    )
    selection.run(evaluate, answers=0.2, progress=False)
    selection.add_checkpoints([6000, 7000, 8000])
    best = selection.run(evaluate, answers=0.4, progress=False)
    assert best.checkpoint >= 5000
    _, race = race_of(selection.history)
    assert (race.counts[5:].sum(1) > 0).all()


def test_a_whole_benchmark_beside_question_tasks() -> None:
    calls: list[int] = []

    def mixed(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        if task == "human":
            calls.append(len(questions))
            return [0.5]
        return evaluate(checkpoint, task, questions)

    best = scrimp.select_checkpoint(
        mixed, STEPS, {**TASKS, "human": None}, cost={"human": 30.0}, answers=0.5, seed=0
    )
    assert best.checkpoint in STEPS
    # The expensive block is bought for some checkpoints at most, never twice.
    assert set(calls) <= {1} and len(calls) <= len(STEPS)


def test_directions_and_weights_count() -> None:
    def loss(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        return [1.0 - value for value in evaluate(checkpoint, task, questions)]

    up = scrimp.select_checkpoint(evaluate, STEPS, TASKS, answers=0.3, seed=0)
    down = scrimp.select_checkpoint(
        loss, STEPS, TASKS, answers=0.3, seed=0, directions=dict.fromkeys(TASKS, "minimize")
    )
    assert up.checkpoint == down.checkpoint
    assert up.expected_score == pytest.approx(1.0 - down.expected_score, abs=1e-9)


def test_an_expected_loss_ends_the_race_early() -> None:
    def sure(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        return [float(checkpoint == 7000)] * len(questions)

    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0, ordered=False
    )
    selection.stop_when(share=0.5, loss=0.01)
    best = selection.run(sure, progress=False)
    assert best.checkpoint == 7000
    assert best.asked is not None and best.asked < 0.25 * 2400


def test_expensive_loads_mean_fewer_rounds() -> None:
    rounds = []
    for load in (0.0, 20.0):
        selection = scrimp.create_selection(
            "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0, load_cost=load
        )
        selection.run(evaluate, answers=0.3, progress=False)
        rounds.append(len(race_of(selection.history)[1].past_rounds))
    assert rounds[1] < rounds[0]


def test_wrong_answers_are_refused_with_a_reason() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    checkpoint, task, questions = selection.ask()
    with pytest.raises(ReportError, match="one number, or one pair"):
        selection.tell(checkpoint, task, [1.0] * (len(questions) + 1))
    for outside in (37.5, -0.2):
        with pytest.raises(ReportError, match=rf"is {outside:g}; it must be between 0 and 1"):
            selection.tell(checkpoint, task, [outside] * len(questions))
    with pytest.raises(ReportError, match="score a missing answer as 0"):
        selection.tell(checkpoint, task, [float("nan")] * len(questions))
    with pytest.raises(ReportError, match="was asked"):
        selection.tell(checkpoint, task, [1.0], questions=[TASKS[task] + 5])
    selection.tell(checkpoint, task, evaluate(checkpoint, task, questions), questions=questions)
    with pytest.raises(ReportError, match="once"):
        selection.tell(checkpoint, task, evaluate(checkpoint, task, questions))
    with pytest.raises(StudyError, match="whole number"):
        scrimp.create_selection("b", checkpoints=STEPS, tasks={"arc": 0.5}, storage="memory://")
    with pytest.raises(StudyError, match="by question"):
        scrimp.create_selection(
            "b", checkpoints=STEPS, tasks=TASKS, method="kg", storage="memory://"
        )
    with pytest.raises(StudyError, match="a share such as"):
        selection.run(evaluate, answers=-1, progress=False)


def test_a_checkpoint_whose_evaluation_fails_leaves_the_race() -> None:
    def broken(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        if checkpoint == 7000:
            raise RuntimeError("out of memory")
        return evaluate(checkpoint, task, questions)

    best = scrimp.select_checkpoint(broken, STEPS, TASKS, answers=0.2, seed=0)
    assert best.checkpoint != 7000


@pytest.mark.parametrize("values", [[1, 0, 1, 1, 0, 0, 0, 1, 1], [0.25, 1.0, 0.5], [0.0]])
def test_answers_are_packed_and_read_back(values: list[float]) -> None:
    packed = pack_answers(values)
    read = unpack_answers(packed, len(values))
    assert read is not None and read.values.tolist() == values and read.margins is None
    assert len(pack_answers([1.0] * 900)) < 900 * 0.2
    assert unpack_answers(packed, len(values) + 9) is None
    assert unpack_answers("x" + packed, len(values)) is None


def test_equal_scores_of_a_race_are_called_tied_and_all_answers_are_100_percent() -> None:
    race = scrimp.create_selection(
        "tied", checkpoints=STEPS[:2], tasks={"a": 20}, storage="memory://", seed=0
    )
    answer = race.run(lambda checkpoint, task, asked: [1.0] * len(asked), share=1.0, progress=False)
    assert answer.tied == 1
    text = str(answer)
    assert "it and 1 other share the highest score" in text and "one of them at random" in text
    assert "tied with 1 other; expected loss" in text and "probability" not in text
    assert "40 of 40 answers asked (100 %)" in text
    assert "tied with 1 other" in repr(answer) and "probability" not in repr(answer)
    line = checkpoint_lines(race.history, STEPS[0])[-1]
    assert "led with 1, tied with 1 other; this one was number 1 of 2" in line


def test_margins_are_packed_beside_the_answers() -> None:
    packed = pack_answers([1.0, 0.0, 1.0], [0.5, -2.0, 1e9])
    read = unpack_answers(packed, 3)
    assert read is not None and read.margins is not None
    assert read.values.tolist() == [1.0, 0.0, 1.0] and read.margins[:2].tolist() == [0.5, -2.0]
    assert len(pack_answers([1.0] * 900, [0.5] * 900)) < 900 * 3
    assert unpack_answers(packed[:-4], 3) is None and unpack_answers(packed + "!", 3) is None


def test_answers_with_margins_are_told_and_run() -> None:
    def pairs(checkpoint: object, task: str, questions: list[int]) -> list[tuple[float, float]]:
        values = evaluate(checkpoint, task, questions)
        return [(value, 3.0 * value - 1.0) for value in values]

    best = scrimp.select_checkpoint(pairs, STEPS, TASKS, answers=0.25, seed=0)
    low, high = best.interval
    assert 0.0 <= low < best.expected_score < high <= 1.1
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    checkpoint, task, questions = selection.ask()
    reverse = questions[::-1]
    selection.tell(checkpoint, task, pairs(checkpoint, task, reverse), questions=reverse)
    book = race_of(selection.history)[1].book
    row, place = STEPS.index(checkpoint), list(TASKS).index(task)
    expected = evaluate(checkpoint, task, questions)
    assert book.answers(np.array([row]), place, len(questions))[0].tolist() == expected
    with pytest.raises(ReportError, match="one pair"):
        selection.tell(*selection.ask()[:2], [[1.0, 0.5, 0.2]])


def test_answers_that_vary_are_asked_again_once_all_questions_are_used() -> None:
    rng, asked = np.random.default_rng(0), []

    def noisy(checkpoint: object, task: str, questions: list[int]) -> list[float]:
        asked.extend((checkpoint, question) for question in questions)
        return [float(rng.random() < 0.3 + 0.1 * int(str(checkpoint))) for _ in questions]

    best = scrimp.select_checkpoint(noisy, [1, 2, 3], {"a": 5}, answers=0.5, repeats=8, seed=0)
    counts = {one: [asked.count((one, question)) for question in range(5)] for one in (1, 2, 3)}
    assert best.answers == 3 * 5 * 8 and best.asked == len(asked)
    assert max(map(max, counts.values())) > 1
    assert all(max(each) - min(each) <= 1 for each in counts.values())
    low, high = best.interval
    assert high - low > 0.02


def test_a_time_limit_alone_asks_races_of_doubling_budgets() -> None:
    best = scrimp.select_checkpoint(evaluate, STEPS[:3], {"arc": 20}, timeout=600.0, seed=0)
    assert best.asked is not None and best.asked > 30


def test_evaluators_in_parallel_load_different_checkpoints() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    selection.stop_when(share=0.3)
    asked = selection.ask(count=len(STEPS))
    assert len({checkpoint for checkpoint, _, _ in asked}) == len(STEPS)


def test_a_selection_by_question_has_no_model_of_cells() -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    for ask in (selection.posterior, selection.task_correlations):
        with pytest.raises(StudyError, match="asks single questions and has no model of cells"):
            ask()
