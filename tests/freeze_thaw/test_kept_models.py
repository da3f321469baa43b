"""What is kept is gone when rows may have gone, and only then."""

import scrimp
from scrimp.freeze_thaw.kept_models import WhileRowsLast
from scrimp.storage.memory import MemoryStorage


class Kept:
    def __init__(self) -> None:
        self.rows = 7

    def clear(self) -> None:
        self.rows = 0


def test_another_try_of_a_trial_clears_what_is_kept_and_a_report_does_not() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("kept", space, storage=MemoryStorage(), seed=0)
    fold = WhileRowsLast(Kept)
    trial = study.ask()
    assert study.history.derive(fold).rows == 7
    study.tell(trial, 0.5)
    assert study.history.derive(fold).rows == 7
    failed = study.ask()
    study.tell(failed, state="failed", message="no memory")
    assert study.history.derive(fold).rows == 7
    assert study.retry_failed() == 1
    assert study.history.derive(fold).rows == 0
