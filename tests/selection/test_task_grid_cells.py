"""Cells sorted by task, in groups of similar length."""

import numpy as np

from scrimp.selection.task_grid_cells import GridCells, group_cells


def test_groups_hold_tasks_of_similar_length():
    counts = np.array([0, 1, 2, 3, 4, 5, 9, 9, 1])
    tasks = np.repeat(np.arange(9), counts)
    rows = np.concatenate([np.arange(count) for count in counts])
    cells = group_cells(rows, tasks, np.zeros(len(rows)), np.zeros(len(rows)), 9)
    assert [(group.tolist(), width) for group, width in cells.groups] == [
        ([1, 8], 1),
        ([2], 2),
        ([3, 4], 4),
        ([5], 8),
        ([6, 7], 9),
    ]
    nothing = group_cells(
        np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0), np.zeros(0), 3
    )
    assert nothing.groups == []


def test_grouping_keeps_every_cell():
    cells: GridCells = group_cells(
        np.array([4, 1, 2]),
        np.array([2, 0, 2]),
        np.array([1.0, 2.0, 3.0]),
        np.array([0.1, 0.2, 0.3]),
        3,
    )
    assert cells.counts.tolist() == [1, 0, 2]
    assert cells.rows.tolist() == [[1, 0], [0, 0], [2, 4]]
    assert cells.values.tolist() == [[2.0, 0.0], [0.0, 0.0], [3.0, 1.0]]
    assert cells.mask.sum() == 3
