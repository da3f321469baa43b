"""Executors, devices and stop rules of one run."""

from typing import Any

import pytest

from scrimp.errors import StudyError
from scrimp.tuning.running import Run, _devices
from scrimp.tuning.stopping import Seconds, Trials


def test_the_timeout_joins_the_stop_rule() -> None:
    assert Run(len).rule is None
    assert Run(len, timeout=5).rule == Seconds(5)
    rule = Run(len, timeout=5, until=Trials(3)).rule
    assert rule == Trials(3) | Seconds(5)


def test_devices_are_dealt_out_without_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert _devices(2, 2) == [{"CUDA_VISIBLE_DEVICES": "4,5"}, {"CUDA_VISIBLE_DEVICES": "6,7"}]
    assert _devices(3, 0) == [{}, {}, {}]
    with pytest.raises(StudyError, match="5 devices, and 4 are visible"):
        _devices(5, 1)


def test_workers_decide_the_executor() -> None:
    class Question:
        metric = "loss"
        cost = None

    question: Any = Question()
    assert type(Run(len, workers=1).executor(question)).__name__ == "InProcess"
    several = Run(len, workers=3).executor(question)
    assert type(several).__name__ == "Processes" and several.slots == 3
    several.close()
