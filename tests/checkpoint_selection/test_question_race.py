"""Continuous halving on common questions: the schedule, the shares of the tasks, the leader."""

from itertools import pairwise

import numpy as np
import pytest

from scrimp.checkpoint_selection.answer_book import AnswerBook, Questions
from scrimp.checkpoint_selection.question_race import NUMBERS, QuestionRace

ABILITIES = np.linspace(0.3, 0.7, 12)


def new_race(
    questions: Questions, rows: int, budget: float, seed: int, load: float = 0.0
) -> QuestionRace:
    return QuestionRace(AnswerBook(questions, rows, seed), budget, seed, load=load)


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
    race = play(new_race(Questions(sizes), 12, 400.0, seed=0), answers(0, sizes))
    assert 390 <= race.spent <= 400
    assert race.counts.sum() == race.spent


def test_rows_in_a_round_have_answered_the_same_questions_and_fewer_stay_each_time() -> None:
    sizes = (60, 90, 150)
    race = play(new_race(Questions(sizes), 12, 400.0, seed=0), answers(0, sizes))
    alive = [len(each.rows) for each in race.past_rounds]
    assert alive[0] == 12 and alive[-1] == 2
    assert alive == sorted(alive, reverse=True)
    for one in race.past_rounds:
        assert (race.counts[one.rows] >= one.upto).all()
    assert len(np.unique(race.counts[race.alive], axis=0)) == 1


def test_the_number_of_survivors_follows_the_share_that_is_spent() -> None:
    sizes = (400,)
    race = new_race(Questions(sizes), 12, 600.0, seed=0)
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
        play(new_race(Questions(sizes), 12, 240.0, seed=s), answers(s, sizes)).leader
        for s in range(40)
    ]
    # By chance 20 of 40 are in the better half; 32 or more have a probability below 1e-4.
    assert sum(leader >= 6 for leader in leaders) >= 32


def test_noisy_and_heavy_tasks_get_more_questions_and_expensive_ones_fewer() -> None:
    race = new_race(
        Questions((500, 500, 500), weights=(1.0, 2.0, 1.0), costs=(1.0, 1.0, 4.0)), 4, 1e9, 0
    )
    race.noise = np.array([0.1, 0.1, 0.1])
    upto = race._allocate(np.zeros(3, np.intp), 200.0)
    # n_t ~ w_t s_t / sqrt(c_t): 1 : 2 : 0.5.
    assert upto[1] / upto[0] == pytest.approx(2.0, rel=0.1)
    assert upto[2] / upto[0] == pytest.approx(0.5, rel=0.1)


def test_every_task_is_asked_once_before_any_is_asked_twice() -> None:
    race = new_race(Questions((50,) * 6), 3, 1e9, 0)
    race.noise = np.array([1.0, 1e-6, 1.0, 1e-6, 1.0, 1e-6])
    assert race._allocate(np.zeros(6, np.intp), 6.0).tolist() == [1] * 6


def test_the_noise_is_that_of_double_centred_answers() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([0.04, 0.25])
    race = new_race(Questions((4000, 4000)), 30, 1e9, 0)
    difficulty = rng.standard_normal((2, 4000))
    for row in range(30):
        for task in range(2):
            noise = np.sqrt(truth[task]) * rng.standard_normal(4000)
            race.record(row, task, difficulty[task] + 0.1 * row + noise)
    race._estimate_noise(np.arange(30))
    np.testing.assert_allclose(race.noise, truth, rtol=0.05)


def test_when_the_questions_run_out_near_rows_return_until_the_best_is_sure() -> None:
    sizes = (20,)
    returned = sure = 0
    for seed in range(20):
        race = play(new_race(Questions(sizes), 12, 200.0, seed=seed), answers(seed, sizes))
        complete = race.alive[(race.counts[race.alive] == 20).all(1)]
        assert len(complete) >= 2 and race.leader in complete
        returned += any(
            len(each.rows) > len(before.rows) for before, each in pairwise(race.past_rounds)
        )
        score, variance = race.book.paired_scores(race.contenders, race.noise)
        outside = np.setdiff1d(np.arange(12), complete)
        bound = score + 2.5 * np.sqrt(variance)
        if race.spent < 190:  # ended early: no row outside can be better
            sure += 1
            assert (bound[outside] <= score[complete].max() + 1e-9).all()
    assert returned >= 10 and sure >= 3


def test_with_few_answers_only_a_part_of_the_rows_starts() -> None:
    race = play(new_race(Questions((100,)), 12, 16.0, seed=0), answers(0, (100,)))
    assert race.starters == 4 and (race.counts.sum(1) > 0).sum() == 4
    assert 10 <= race.spent <= 16 and race.counts[race.leader].sum() > 0
    # Other seeds start with other rows.
    first = {tuple(new_race(Questions((100,)), 12, 16.0, seed=s).alive) for s in range(8)}
    assert len(first) > 4


def test_rows_that_join_late_catch_up_before_any_is_compared() -> None:
    """Old answers are kept: a race over more rows asks the new ones only for what it compares."""
    sizes, table = (200,), answers(3, (200,))
    old = play(new_race(Questions(sizes), 10, 300.0, seed=0), table)
    race = new_race(Questions(sizes), 12, 400.0, seed=0)
    for row in range(10):
        count = int(old.counts[row, 0])
        race.record(row, 0, table[0][row, race.order[0][:count]])
        race.advance()
    before = race.spent
    assert race.leader in old.contenders
    play(race, table)
    assert (race.counts[10:].sum(1) > 0).all()
    assert before == old.spent and race.spent <= 400


def test_rows_that_join_when_nothing_is_left_are_not_asked() -> None:
    sizes, table = (200,), answers(3, (200,))
    old = play(new_race(Questions(sizes), 10, 300.0, seed=0), table)
    race = new_race(Questions(sizes), 12, 300.0, seed=0)
    for row in range(10):
        count = int(old.counts[row, 0])
        race.record(row, 0, table[0][row, race.order[0][:count]])
        race.advance()
    play(race, table)
    assert race.counts[10:].sum() <= 12 and race.spent <= 300
    assert race.leader in old.contenders


def test_a_budget_pays_for_loads() -> None:
    sizes = (400,)
    free = play(new_race(Questions(sizes), 12, 600.0, 0), answers(1, sizes))
    race = play(new_race(Questions(sizes), 12, 600.0, 0, load=5.0), answers(1, sizes))
    assert race.loads == sum(len(each.rows) for each in race.past_rounds)
    assert race.counts.sum() + 5.0 * race.loads == race.spent <= 600
    assert race.counts.sum() < free.counts.sum()


def test_every_other_round_begins_with_the_row_that_is_loaded() -> None:
    sizes, table = (400,), answers(1, (400,))
    race, asked, ends = new_race(Questions(sizes), 12, 600.0, seed=0), [], []
    while race.round is not None:
        parts = list(race.open_parts())
        ends.append((parts[0].row, parts[-1].row))
        asked += [part.row for part in parts]
        for part in parts:
            race.record(part.row, 0, table[0][part.row, race.order[0][part.start : part.end]])
        race.advance()
    kept = sum(last == first for (_, last), (first, _) in pairwise(ends))
    assert kept >= len(ends) // 3  # the others were eliminated


def test_a_failed_row_leaves_the_race() -> None:
    sizes = (40,)
    race, table = new_race(Questions(sizes), 12, 200.0, seed=0), answers(0, sizes)
    race.failed.add(11)
    play(race, table)
    assert race.counts[11].sum() == 0
    assert race.leader != 11


def test_the_noise_of_a_few_answers_has_a_degree_of_freedom_less_than_questions() -> None:
    race = new_race(Questions((50,)), 3, 1e9, 0)
    answered = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    for row, values in enumerate(answered):
        race.record(row, 0, values)
    race._estimate_noise(np.arange(3))
    centred = answered - answered.mean(0) - answered.mean(1, keepdims=True) + answered.mean()
    squares, freedom = float((centred**2).sum()) / 2, 1.0
    prior, pull = NUMBERS.prior_answers, NUMBERS.pooled_answers
    pooled = (squares + NUMBERS.prior_noise * prior) / (freedom + prior)
    assert race.noise[0] == pytest.approx((squares + pull * pooled) / (freedom + pull))


def joined_late() -> QuestionRace:
    """Ten rows with 25 answers of an earlier race, of which some are wrong, and two that joined with
    one right answer."""
    race = new_race(Questions((200,)), 12, 400.0, seed=0)
    for row in range(12):
        race.record(row, 0, np.arange(25.0) % 3 > 0 if row < 10 else np.ones(1))
    return race


def test_a_row_that_joined_late_leads_once_it_has_answered_enough() -> None:
    race = joined_late()
    assert race.contenders.tolist() == list(range(10)) and race.leader < 10
    race.record(11, 0, np.ones(15))
    assert race.contenders.tolist() == [*range(10), 11] and race.leader == 11


def test_answers_that_rows_hold_already_eliminate_none() -> None:
    race = joined_late()
    for row in range(10, 12):
        race.record(row, 0, np.ones(max(int(race.round.upto[0]) - 1, 0)) if race.round else [])
    race.advance()
    # Nearly all of the budget is left for questions that all of them have not answered.
    assert len(race.alive) >= 11
