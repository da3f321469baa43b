"""Boxes cover what they should, each place once."""

import numpy as np
import pytest

from scrimp.fronts.boxes import dominated_boxes, front_below, open_boxes


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
