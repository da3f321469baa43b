"""Tasks out of what scikit-learn carries."""

import builtins

import numpy as np
import pytest

from scrimp.bench.made_data import CLASSIFICATION, REGRESSION, need_sklearn, split
from scrimp.errors import TableError


@pytest.mark.parametrize("name", [*CLASSIFICATION, *REGRESSION])
def test_every_task_can_be_learned_from(name):
    task = split(name, 300, 0)
    assert len(task.x) == len(task.y) == len(task.x_valid) == len(task.y_valid) <= 300
    assert np.isfinite(task.x).all() and task.x.ndim == 2 and len(task.x) >= 70
    assert task.classification == (name in CLASSIFICATION)
    if task.classification:
        classes = np.unique(task.y)
        assert classes.tolist() == list(range(len(classes))) and len(classes) >= 2
    else:
        assert task.y.std() == pytest.approx(1.0)
    assert len(task.features) == 5 and np.isfinite(task.features).all()
    again = split(name, 300, 0)
    assert (again.x == task.x).all() and (again.y == task.y).all()


def test_there_are_enough_of_them():
    assert len(CLASSIFICATION) >= 20 and len(REGRESSION) >= 5


def test_rows_are_judged_that_were_not_trained_on():
    task = split("digits", 300, 1)
    trained = {row.tobytes() for row in task.x}
    assert sum(row.tobytes() in trained for row in task.x_valid) == 0
    assert not (split("digits", 300, 2).x == task.x).all()


def test_without_scikit_learn_the_remedy_is_told(monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name == "sklearn":
            raise ModuleNotFoundError(name="sklearn")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(TableError, match=r"pip install 'scrimp\[bench\]'"):
        need_sklearn()
