"""The empirical distribution against its definition."""

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError


def test_shares_are_counts(staged: scrimp.Study, whole: scrimp.Study) -> None:
    (line,) = scrimp.plots.edf(staged).data
    values = np.array([trial.value for trial in staged.trials if trial.value is not None])
    for value, share in zip(line.x, line.y, strict=True):
        assert share == pytest.approx((values <= value).mean())
    (high,) = scrimp.plots.edf(whole).data
    scores = np.array([trial.value for trial in whole.trials])
    for value, share in zip(high.x, high.y, strict=True):
        assert share == pytest.approx((scores >= value).mean())


def test_studies_are_compared(staged: scrimp.Study) -> None:
    assert len(scrimp.plots.edf(staged, staged).data) == 2
    with pytest.raises(StudyError, match="no study"):
        scrimp.plots.edf()
