"""The picture of tasks that move together."""

import numpy as np

import scrimp


def test_alike_tasks_stand_together() -> None:
    tasks = ["up", "down<i>", "up too"]
    selection = scrimp.create_selection(
        "s", checkpoints=range(12), tasks=tasks, storage="memory://", seed=0
    )
    selection.run(lambda step, task: 0.5 + (0.02 if "up" in task else -0.02) * step, share=0.8)
    picture = scrimp.plots.selection_correlations(selection)
    (cells,) = picture.data
    assert cells.x == cells.y and cells.x[1] in ("up", "up too")  # the odd one stands at an end
    order = [["up", "down&lt;i&gt;", "up too"].index(name) for name in cells.x]
    np.testing.assert_array_equal(
        np.array(cells.z), selection.task_correlations()[np.ix_(order, order)]
    )
    assert "highest for up and up too" in picture.layout.meta["alternative"]


def test_one_task_alone() -> None:
    alone = scrimp.create_selection(
        "t", checkpoints=[1, 2], tasks=["a"], storage="memory://", seed=0
    )
    alone.tell(1, "a", 0.5)
    assert np.array(scrimp.plots.selection_correlations(alone, kernel=True).data[0].z).tolist() == [
        [1.0]
    ]
