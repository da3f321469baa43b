"""Continuous halving on common questions: the schedule, the shares of the tasks, the leader."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.question_race import (
    QuestionRace,
    Questions,
    paired_scores,
    question_orders,
)

ABILITIES = np.linspace(0.3, 0.7, 12)


def answers(seed: int, sizes: tuple[int, ...], rows: int = 12) -> list[np.ndarray]:
    """Answers with the difficulty of a question in common, as right or wrong."""
    rng = np.random.default_rng(seed)
    levels = ABILITIES[:rows, None]
    return [
        (levels + 0.2 * rng.standard_normal(size) > rng.random((rows, size))).astype(float)
        for size in sizes
    ]


def play(race: QuestionRace, table: list[np.ndarray]) -> QuestionRace:
    while race.round is not None:
        for part in list(race.open_parts()):
            places = race.order[part.task][part.start : part.end]
            race.record(part.row, part.task, table[part.task][part.row, places])
        race.advance()
    return race


def test_a_race_spends_its_budget_and_no_more() -> None:
    sizes = (60, 90, 150)
    race = play(QuestionRace(Questions(sizes), 12, 400.0, seed=0), answers(0, sizes))
    assert 390 <= race.spent <= 400
    assert race.counts.sum() == race.spent


def test_rows_in_a_round_have_answered_the_same_questions_and_fewer_stay_each_time() -> None:
    sizes = (60, 90, 150)
    race = play(QuestionRace(Questions(sizes), 12, 400.0, seed=0), answers(0, sizes))
    alive = [len(each.rows) for each in race.past_rounds]
    assert alive[0] == 12 and alive[-1] == 2
    assert alive == sorted(alive, reverse=True)
    for one in race.past_rounds:
        assert (race.counts[one.rows] >= one.upto).all()
    assert len(np.unique(race.counts[race.alive], axis=0)) == 1


def test_the_number_of_survivors_follows_the_share_that_is_spent() -> None:
    sizes = (400,)
    race = QuestionRace(Questions(sizes), 12, 600.0, seed=0)
    table = answers(1, sizes)
    while race.round is not None:
        for part in list(race.open_parts()):
            places = race.order[0][part.start : part.end]
            race.record(part.row, 0, table[0][part.row, places])
        expected = max(2, int(np.ceil(12 ** (1 - race.spent / 600.0))))
        before = len(race.alive)
        race.advance()
        assert len(race.alive) == min(before, expected)


def test_the_better_half_wins_far_more_often_than_by_chance() -> None:
    sizes = (100, 100)
    leaders = [
        play(QuestionRace(Questions(sizes), 12, 240.0, seed=s), answers(s, sizes)).leader
        for s in range(40)
    ]
    # By chance 20 of 40 are in the better half; 32 or more have a probability below 1e-4.
    assert sum(leader >= 6 for leader in leaders) >= 32


def test_noisy_and_heavy_tasks_get_more_questions_and_expensive_ones_fewer() -> None:
    race = QuestionRace(
        Questions((500, 500, 500), weights=(1.0, 2.0, 1.0), costs=(1.0, 1.0, 4.0)), 4, 1e9, 0
    )
    race.noise = np.array([0.1, 0.1, 0.1])
    upto = race._allocate(np.zeros(3, np.intp), 200.0)
    # n_t ~ w_t s_t / sqrt(c_t): 1 : 2 : 0.5.
    assert upto[1] / upto[0] == pytest.approx(2.0, rel=0.1)
    assert upto[2] / upto[0] == pytest.approx(0.5, rel=0.1)


def test_every_task_is_asked_once_before_any_is_asked_twice() -> None:
    race = QuestionRace(Questions((50,) * 6), 3, 1e9, 0)
    race.noise = np.array([1.0, 1e-6, 1.0, 1e-6, 1.0, 1e-6])
    assert race._allocate(np.zeros(6, np.intp), 6.0).tolist() == [1] * 6


def test_the_noise_is_that_of_double_centred_answers() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([0.04, 0.25])
    race = QuestionRace(Questions((4000, 4000)), 30, 1e9, 0)
    difficulty = rng.standard_normal((2, 4000))
    for row in range(30):
        for task in range(2):
            noise = np.sqrt(truth[task]) * rng.standard_normal(4000)
            race.record(row, task, difficulty[task] + 0.1 * row + noise)
    race._estimate_noise(np.arange(30))
    np.testing.assert_allclose(race.noise, truth, rtol=0.05)


def test_when_the_questions_run_out_eliminated_rows_answer_everything() -> None:
    sizes = (10,)
    race = play(QuestionRace(Questions(sizes), 12, 90.0, seed=0), answers(2, sizes))
    assert (race.counts[race.alive] == 10).all()
    assert len(race.alive) > 2
    assert race.spent <= 90


def test_a_failed_row_leaves_the_race() -> None:
    sizes = (40,)
    race, table = QuestionRace(Questions(sizes), 12, 200.0, seed=0), answers(0, sizes)
    race.failed.add(11)
    play(race, table)
    assert race.counts[11].sum() == 0
    assert race.leader != 11


def test_paired_scores_compare_rows_on_their_own_questions() -> None:
    sizes = (60, 90)
    race = play(QuestionRace(Questions(sizes), 12, 300.0, seed=0), answers(4, sizes))
    score, variance = paired_scores(race)
    row = int(np.argmin(race.counts.sum(1)))
    counts = race.counts[row]
    seen = counts > 0
    own, others = [], []
    for task in np.flatnonzero(seen):
        block = race.block(np.arange(12), task, counts[task])
        own.append(block[row].mean())
        others.append(block[race.alive].mean())
    assert score[row] == pytest.approx(np.mean(own) - np.mean(others))
    assert variance[row] > variance[race.leader]


def test_the_order_of_questions_depends_on_the_seed_alone() -> None:
    first, again, other = (question_orders((50, 20), seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert sorted(first[0]) == list(range(50))
