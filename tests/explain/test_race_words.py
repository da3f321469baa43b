"""A race in words: numbers of the sentences are those of the race."""

import re

import numpy as np
import pytest

import scrimp
from scrimp.checkpoint_selection.question_policy import race_of
from scrimp.errors import StudyError
from scrimp.explain.race_words import checkpoint_lines
from scrimp.explain.reasons import explain
from tests.checkpoint_selection.test_question_policy import STEPS, TASKS, evaluate


@pytest.fixture(scope="module")
def selection() -> scrimp.Selection:
    chosen = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    chosen.run(evaluate, answers=0.2, progress=False)
    return chosen


def test_an_eliminated_checkpoint_was_below_those_that_stayed(selection: scrimp.Selection) -> None:
    race = race_of(selection.history)[1]
    for row in set(range(12)) - set(race.alive.tolist()):
        words = " ".join(checkpoint_lines(selection.history, STEPS[row]))
        number = max(n for n, each in enumerate(race.past_rounds) if row in each.rows)
        left, stayed = race.past_rounds[number], race.past_rounds[number + 1].rows
        scores = dict(zip(left.rows, race.book.scores(left.rows, left.upto), strict=True))
        assert f"eliminated after round {number + 1} " in words
        assert f"the {left.upto.sum()} questions" in words
        place = 1 + sum(score > scores[row] for score in scores.values())
        assert f"score was {scores[row]:.4g}, number {place};" in words
        assert f"{len(stayed)} stayed, the last of them with" in words
        last = min(scores[each] for each in stayed)
        assert scores[row] <= last
        assert ("a tie, broken at random" in words) == (scores[row] == last)
        assert f"answered {race.counts[row].sum():,} of 200 questions" in words


def test_equal_scores_at_the_last_place_are_told_as_a_tie() -> None:
    chosen = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    chosen.run(lambda checkpoint, task, asked: [1.0] * len(asked), answers=0.2, progress=False)
    race = race_of(chosen.history)[1]
    left = set(race.past_rounds[0].rows.tolist()) - set(race.alive.tolist())
    words = [checkpoint_lines(chosen.history, STEPS[row])[1] for row in left]
    assert words and all("a tie, broken at random" in line for line in words)


def test_the_leader_is_in_the_race(selection: scrimp.Selection) -> None:
    words = " ".join(checkpoint_lines(selection.history, selection.recommend().checkpoint))
    assert "It is in the race" in words and "number 1 of" in words
    with pytest.raises(StudyError, match="no checkpoint 5"):
        checkpoint_lines(selection.history, 5)


def test_a_failed_checkpoint_and_one_that_never_started() -> None:
    chosen = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    chosen.stop_when(budget=16.0)
    checkpoint, task, _ = chosen.ask()
    chosen.tell(checkpoint, task, state="failed", message="no memory")
    assert "evaluation failed" in checkpoint_lines(chosen.history, checkpoint)[1]
    started = race_of(chosen.history)[1].past_rounds[0].rows
    other = next(step for row, step in enumerate(STEPS) if row not in started)
    assert "drawn at random" in checkpoint_lines(chosen.history, other)[1]


def test_the_questions_of_a_part_are_explained(selection: scrimp.Selection) -> None:
    race = race_of(selection.history)[1]
    trial = next(
        each
        for each in selection.history.trials
        if each.config["checkpoint"] == STEPS[race.leader] and each.config["task"] == "arc"
    )
    first, *_, last = explain(selection.history, trial.id).decisions
    assert "the same for every checkpoint" in " ".join(first.lines)
    assert "every task is asked once first" in " ".join(first.lines)
    words = " ".join(last.lines)
    noise = re.search(r"one answer of arc has a noise of ([\d.]+)", words)
    assert noise is not None
    assert float(noise[1]) == pytest.approx(float(np.sqrt(race.noise[0])), rel=0.3)
    assert re.search(r"checkpoint \d+ led with", words) and "within 0 of" not in words
    # Parts of different questions have no rank among each other.
    assert "rank" not in explain(selection.history, trial.id).text


def test_one_question_is_singular() -> None:
    chosen = scrimp.create_selection(
        "s", checkpoints=STEPS, tasks=TASKS, storage="memory://", seed=0
    )
    chosen.run(lambda checkpoint, task, asked: [1.0] * len(asked), answers=60, progress=False)
    told = [" ".join(checkpoint_lines(chosen.history, step)) for step in STEPS]
    assert any(
        "the 1 question that all" in words or "On 1 common question " in words for words in told
    )
    assert not any(" 1 questions" in words or "1 common questions" in words for words in told)
