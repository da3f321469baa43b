"""The answers of a race: orders of questions, prefixes, scores, margins, repeated answers."""

import numpy as np
import pytest

from scrimp.checkpoint_selection.answer_book import (
    MAX_QUESTIONS,
    AnswerBook,
    Questions,
    mixed_order,
    pack_levels,
)
from scrimp.errors import StudyError
from tests.checkpoint_selection.test_question_race import answers, new_race, play


def test_paired_scores_compare_rows_on_their_own_questions() -> None:
    sizes = (60, 90)
    race = play(new_race(Questions(sizes), 12, 300.0, seed=0), answers(4, sizes))
    score, variance = race.book.paired_scores(race.contenders, race.noise)
    row = int(np.argmin(race.counts.sum(1)))
    counts = race.counts[row]
    seen = counts > 0
    own, others = [], []
    for task in np.flatnonzero(seen):
        block = race.book.block(np.arange(12), task, counts[task])
        own.append(block[row].mean())
        others.append(block[race.alive].mean())
    assert score[row] == pytest.approx(np.mean(own) - np.mean(others))
    assert variance[row] > variance[race.leader]


def test_a_row_without_answers_is_unknown_and_changes_no_other() -> None:
    sizes, table = (60, 90), answers(4, (60, 90))
    race = play(new_race(Questions(sizes), 12, 300.0, seed=0), table)
    more = AnswerBook(Questions(sizes), 13, seed=0)
    for row, task in np.argwhere(race.counts > 0):
        more.record(row, task, race.book.answers(np.array([row]), task, race.counts[row, task])[0])
    known = race.book.paired_scores(race.contenders, race.noise)
    score, variance = more.paired_scores(race.contenders, race.noise)
    np.testing.assert_allclose(score[:12], known[0])
    np.testing.assert_allclose(variance[:12], known[1])
    assert score[12] == 0.0 and variance[12] == 1.0


def test_the_order_of_questions_depends_on_the_seed_alone() -> None:
    first, again, other = (Questions((50, 20)).orders(seed) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert sorted(first[0]) == list(range(50))


def test_all_questions_come_before_any_is_repeated() -> None:
    questions = Questions((6, 1), repeats=3)
    order = questions.orders(0)
    assert questions.totals.tolist() == [18, 1]
    for start in (0, 6, 12):
        assert sorted(order[0][start : start + 6]) == list(range(6))
    assert order[1].tolist() == [0]


def test_margins_count_half_in_comparisons_and_not_in_the_answers() -> None:
    book = AnswerBook(Questions((5,)), 2, seed=0)
    book.record(0, 0, [1.0, 0.0], [2.0, -1.0])
    book.record(1, 0, [1.0, 0.0])
    rows = np.arange(2)
    # The median |m| is 1.5, so s = 0.75.
    smooth = 1.0 / (1.0 + np.exp(-np.array([2.0, -1.0]) / 0.75))
    np.testing.assert_allclose(book.block(rows, 0, 2)[0], (np.array([1.0, 0.0]) + smooth) / 2)
    assert book.block(rows, 0, 2)[1].tolist() == [1.0, 0.0]
    assert book.answers(rows, 0, 2)[0].tolist() == [1.0, 0.0]


def test_the_variance_of_an_eliminated_row_is_that_of_its_own_difference() -> None:
    rng = np.random.default_rng(0)
    book = AnswerBook(Questions((4000,)), 6, seed=0)
    for row in range(6):
        # The first two are alike, the others differ from them with a variance of one.
        book.record(
            row, 0, (0.1 if row < 2 else 1.0) * rng.standard_normal(400 if row > 1 else 2000)
        )
    noise, reference = np.array([0.01]), np.array([0, 1])
    _, alike = book.paired_scores(reference, noise, alike=True)
    _, own = book.paired_scores(reference, noise)
    np.testing.assert_allclose(alike[2:], 0.01 / 400 * 0.9)
    np.testing.assert_allclose(own[2:], 1.0 / 400 * 0.9, rtol=0.1)
    np.testing.assert_allclose(own[:2], alike[:2])


def test_earlier_answers_mix_easy_and_hard_questions_in_every_prefix() -> None:
    levels = np.random.default_rng(0).random(500)
    mixed, random = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        order = mixed_order(levels, rng)
        assert sorted(order) == list(range(500))
        mixed.append(levels[order[:20]].mean())
        random.append(levels[rng.permutation(500)[:20]].mean())
    assert np.std(mixed) < 0.5 * np.std(random)
    assert np.mean(mixed) == pytest.approx(levels.mean(), abs=0.02)


def test_levels_that_mean_nothing_leave_every_question_alike() -> None:
    """With equal levels, each question is as likely as any other to be among the first."""
    first = np.zeros(12)
    for seed in range(600):
        first[mixed_order(np.zeros(12), np.random.default_rng(seed))[:3]] += 1
    # 150 are expected each, with a standard deviation of 11.
    assert first.min() > 105 and first.max() < 195


def test_packed_levels_that_do_not_fit_are_ignored() -> None:
    plain = Questions((9, 20)).orders(3)
    for text in ("", "x", pack_levels(np.zeros(4))):
        same = Questions((9, 20), difficulty=(text, "")).orders(3)
        assert all((a == b).all() for a, b in zip(plain, same, strict=True))
    other = Questions((9, 20), difficulty=(pack_levels(np.linspace(0, 1, 9)), "")).orders(3)
    assert sorted(other[0]) == list(range(9))


@pytest.mark.parametrize("sizes", [(0, 5), (-3, 5), (MAX_QUESTIONS, 1)])
def test_tasks_have_questions_that_fit_into_memory(sizes: tuple[int, ...]) -> None:
    with pytest.raises(StudyError, match="at most 10,000,000"):
        Questions(sizes)
