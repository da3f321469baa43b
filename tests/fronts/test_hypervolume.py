"""Hypervolumes against inclusion and exclusion, in 2 to 6 objectives."""

from itertools import combinations

import numpy as np
import pytest

from scrimp.fronts.hypervolume import (
    contributions,
    default_reference,
    dominated_boxes,
    front_below,
    hypervolume,
    open_boxes,
    order_of_standing,
)


def by_inclusion_and_exclusion(losses, reference) -> float:
    """The volume of a union: the sum over all subsets, with alternating signs, of what they
    share."""
    inside = losses[(losses < reference).all(axis=1)]
    return sum(
        (-1) ** (size + 1) * float((reference - inside[list(chosen)].max(axis=0)).prod())
        for size in range(1, len(inside) + 1)
        for chosen in combinations(range(len(inside)), size)
    )


def examples(m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    directions = np.abs(rng.standard_normal((9, m)))
    sphere = 1.0 - directions / np.linalg.norm(directions, axis=1, keepdims=True)
    return [rng.random((9, m)), rng.integers(0, 4, (9, m)) / 4, sphere, np.zeros((1, m))]


@pytest.mark.parametrize("m", range(1, 7))
def test_the_volume_is_that_of_the_union(m):
    for losses in examples(m):
        reference = np.linspace(0.9, 1.1, m)
        exact = by_inclusion_and_exclusion(losses, reference)
        assert hypervolume(losses, reference) == pytest.approx(exact, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("m", range(2, 7))
def test_a_contribution_is_what_is_lost_without_the_point(m):
    for losses in examples(m):
        reference = np.full(m, 1.05)
        whole = by_inclusion_and_exclusion(losses, reference)
        without = [
            by_inclusion_and_exclusion(np.delete(losses, place, axis=0), reference)
            for place in range(len(losses))
        ]
        np.testing.assert_allclose(
            contributions(losses, reference), whole - np.array(without), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("m", range(1, 4))
def test_the_volume_of_a_sphere(m):
    """The part of the unit ball in the positive corner, by many points on its surface: the volume
    that these do not dominate, from below."""
    directions = np.abs(np.random.default_rng(0).standard_normal((400, m)))
    surface = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    dominated = hypervolume(surface, np.ones(m))
    ball = [1.0, 1.0, np.pi / 4, np.pi / 6][m]
    assert dominated < 1.0 - ball + 1e-12
    assert dominated == pytest.approx(1.0 - ball, abs=0.03 * m)


@pytest.mark.parametrize("m", range(1, 5))
def test_nothing_beats_the_reference(m):
    reference = np.zeros(m)
    for losses in (np.zeros((0, m)), np.zeros((2, m)), np.full((1, m), np.nan)):
        assert hypervolume(losses, reference) == 0.0
        assert contributions(losses, reference).tolist() == [0.0] * len(losses)


def test_an_infinitely_bad_loss_counts_nothing():
    losses = np.array([[0.0, 1.0], [-1.0, np.inf]])
    assert hypervolume(losses, np.full(2, 2.0)) == 2.0


class TestDefaultReference:
    def test_it_lies_a_tenth_beyond_the_front(self):
        losses = np.array([[0.0, 10.0], [1.0, 0.0], [5.0, 50.0]])
        np.testing.assert_allclose(default_reference(losses), [1.1, 11.0])

    def test_a_single_best_point_is_measured_by_the_others(self):
        np.testing.assert_allclose(
            default_reference(np.array([[0.0, 1.0], [2.0, 5.0]])), [2.2, 5.4]
        )

    def test_all_equal(self):
        np.testing.assert_allclose(default_reference(np.array([[0.0, -5.0]] * 3)), [0.1, -4.5])

    def test_infinite_and_missing_losses_say_nothing(self):
        losses = np.array([[0.0, np.inf], [1.0, 0.0], [np.nan, 7.0]])
        np.testing.assert_allclose(default_reference(losses), [1.1, 7.7])
        np.testing.assert_allclose(default_reference(np.zeros((0, 2))), [1.0, 1.0])

    def test_every_point_of_the_front_counts(self):
        losses = np.random.default_rng(0).random((20, 3))
        assert (contributions(losses, default_reference(losses)) > 0).sum() > 3


def test_standing_goes_by_front_and_then_by_contribution():
    losses = np.array([[3.0, 3.0], [0.0, 2.0], [1.9, 0.1], [2.0, 0.0], [np.nan, 0.0], [1.0, 1.0]])
    assert order_of_standing(losses, np.array([3.0, 3.0])).tolist() == [1, 5, 3, 2, 0, 4]


def fronts(m: int) -> list[np.ndarray]:
    rng = np.random.default_rng(m)
    return [
        rng.random((12, m)),
        rng.integers(0, 3, (12, m)) / 3,
        np.full((3, m), 0.5),
        np.zeros((0, m)),
        np.full((2, m), 2.0),  # beyond the reference
    ]


@pytest.mark.parametrize("m", range(1, 7))
def test_every_place_is_in_one_box_of_its_own_region(m):
    reference, places = np.ones(m), np.random.default_rng(0).uniform(-0.5, 1.0, (400, m))
    for losses in fronts(m):
        dominated = (losses[:, None] <= places).all(axis=2).any(axis=0)
        for boxes, expected in (
            (dominated_boxes(losses, reference), dominated),
            (open_boxes(losses, reference), ~dominated),
        ):
            inside = (boxes.lower[:, None] <= places) & (places < boxes.upper[:, None])
            assert (inside.all(axis=2).sum(axis=0) == expected).all()
            assert (boxes.lower < boxes.upper).all()


def test_two_objectives_leave_one_strip_per_step_and_one_more():
    boxes = open_boxes(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
    assert boxes.upper.tolist() == [[0.0, 3.0], [1.0, 1.0], [2.0, 0.0]]
    assert boxes.lower[:, 0].tolist() == [-np.inf, 0.0, 1.0]


def test_three_objectives_leave_twice_as_many_boxes_and_one_more():
    directions = np.abs(np.random.default_rng(0).standard_normal((40, 3)))
    losses = 1.0 - directions / np.linalg.norm(directions, axis=1, keepdims=True)
    assert len(open_boxes(losses, np.ones(3))) == 81


def test_the_front_below_a_reference_is_sorted_and_has_no_repeats():
    losses = np.array([[2.0, 0.0], [0.5, 0.5], [0.2, 0.8], [0.5, 0.5], [0.6, 0.6]])
    assert front_below(losses, np.ones(2)).tolist() == [[0.2, 0.8], [0.5, 0.5]]
