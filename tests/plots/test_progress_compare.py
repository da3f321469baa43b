"""Lines of several studies end at their best values."""

import pytest

import scrimp
from scrimp.errors import StudyError


def test_lines_end_at_the_best(staged: scrimp.Study, whole: scrimp.Study) -> None:
    picture = scrimp.plots.compare(staged, whole, over="budget")
    first, second = picture.data
    assert first.y[-1] == staged.best_value and second.y[-1] == whole.best_value
    assert first.x[-1] == staged.history.spent and first.name == "&lt;i&gt;staged&lt;/i&gt;"
    assert f"{staged.best_value:.6g}" in picture.layout.meta["alternative"]
    with pytest.raises(StudyError, match="no study"):
        scrimp.plots.compare()
