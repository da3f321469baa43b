"""Fewer rows to train on, and the same ones whoever asks; those to judge by stay."""

import numpy as np
import pytest

from scrimp.integrations.sklearn import SubsampledFolds

KFold = pytest.importorskip("sklearn.model_selection").KFold


def test_training_rows_are_cut_and_judged_rows_stay() -> None:
    whole, rows = KFold(3), np.zeros((30, 2))
    cut = SubsampledFolds(whole, 0.25, seed=1)
    assert cut.get_n_splits() == 3
    for (few, judged), (all_rows, test) in zip(cut.split(rows), whole.split(rows), strict=True):
        assert len(few) == 5 and set(few) <= set(all_rows)
        assert judged.tolist() == test.tolist()


def test_everybody_gets_the_same_rows_and_more_of_them_with_a_larger_share() -> None:
    rows = np.zeros((30, 2))
    once, again, more = (
        [few.tolist() for few, _ in SubsampledFolds(KFold(3), share, seed=1).split(rows)]
        for share in (0.25, 0.25, 0.5)
    )
    assert once == again
    assert all(longer[: len(few)] == few for few, longer in zip(once, more, strict=True))
