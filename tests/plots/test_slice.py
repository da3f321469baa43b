"""One panel per parameter, with the trials in which it exists."""

import pytest

import scrimp
from scrimp.errors import StudyError


def test_panels_hold_the_trials(staged: scrimp.Study) -> None:
    picture = scrimp.plots.slice(staged)
    assert [trace.name for trace in picture.data] == [
        "lr",
        "layers",
        "width",
        "optimizer",
        "momentum",
    ]
    lr, momentum = picture.data[0], picture.data[4]
    known = [trial for trial in staged.trials if trial.value is not None]
    assert list(lr.x) == [trial.params["lr"] for trial in known] and list(lr.y) == [
        trial.value for trial in known
    ]
    assert len(momentum.x) == sum("momentum" in trial.params for trial in known) < len(known)
    assert picture.layout.xaxis.type == "log" and picture.layout.xaxis4.type == "category"


def test_a_wrong_name_is_said(staged: scrimp.Study) -> None:
    with pytest.raises(StudyError, match="'rate'"):
        scrimp.plots.slice(staged, ["rate"])
