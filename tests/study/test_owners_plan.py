"""The plan of a study's owner names every difference from the log."""

from dataclasses import replace

import scrimp
from scrimp.study.owners_plan import OwnersPlan
from scrimp.study_log.events import StudyChanged


def test_a_new_study_is_what_its_owner_planned_and_changes_are_named() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), metric="error", method="gp", storage="memory://"
    )
    plan = study.plan
    assert plan is not None and plan.differences(study.history) == []
    assert replace(OwnersPlan.recorded(study.history), seeded=False) == plan
    other = replace(study.history.problem, seed=7, features={"rows": 9.0})
    study._ledger.append([StudyChanged(problem=other.to_json(), method={"name": "random"})])
    method, features = plan.differences(study.history)
    assert method.startswith("method is {'name': 'random'} in the log and {'name': 'gp'")
    assert features == "features is {'rows': 9.0} in the log and {} in the plan"
    assert len(replace(plan, seeded=True).differences(study.history)) == 3


def test_a_loaded_study_has_no_plan() -> None:
    storage = scrimp.storage.memory.MemoryStorage()
    scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), storage=storage)
    assert scrimp.load_study("s", storage=storage).plan is None
