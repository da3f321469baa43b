"""What studies and selections have in common."""

import scrimp
from scrimp.executors.clock import wall_clock
from scrimp.storage.memory import MemoryStorage
from scrimp.tuning.ledger import Ledger
from scrimp.tuning.logged import Logged

SPACE = scrimp.Space(x=scrimp.Float(0.0, 1.0))


def test_the_log_says_name_method_and_what_others_appended() -> None:
    storage = MemoryStorage()
    study = scrimp.create_study("one", SPACE, method="random", storage=storage, seed=0)
    logged = Logged(Ledger(storage.open("one"), wall_clock))
    assert (logged.name, logged.method) == ("one", "random")
    study.ask()
    assert len(logged.history.trials) == 1


def test_studies_and_selections_are_logged() -> None:
    assert issubclass(scrimp.Study, Logged) and issubclass(scrimp.Selection, Logged)
