"""Trackers by name."""

import sys

import pytest

from scrimp.errors import StudyError
from scrimp.integrations.tracker import TRACKERS, tracker_of


def test_a_name_that_is_not_known_is_told() -> None:
    with pytest.raises(StudyError, match="no tracker 'mlfow'; did you mean 'mlflow'"):
        tracker_of("mlfow")
    with pytest.raises(StudyError, match="there are mlflow, wandb, tensorboard, aim"):
        tracker_of("neptune")


@pytest.mark.parametrize("name", TRACKERS)
def test_a_library_that_is_not_there_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = {"tensorboard": "google.protobuf"}.get(name, name)
    monkeypatch.setitem(sys.modules, needs, None)
    monkeypatch.delitem(sys.modules, TRACKERS[name][0], raising=False)
    with pytest.raises(StudyError, match=rf"needs .*; pip install 'scrimp\[{name}\]'"):
        tracker_of(name)
