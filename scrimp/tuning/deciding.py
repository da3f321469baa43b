"""The policy that decides in a study, with the plugins it is made of: what runs, replays, pictures
and pages share.

policy_of(study.history)
"""

from typing import TYPE_CHECKING

from scrimp.catalogs.plugins import load_recorded
from scrimp.history.history import History
from scrimp.policies.policy import Policy
from scrimp.tuning.catalog import Method, build_policy
from scrimp.tuning.threads import one_thread

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.transfer.past import Past

__all__ = ["policy_of"]


def policy_of(history: History, past: "Past | None" = None) -> Policy:
    """The policy of a study; `PluginError` when it needs a plugin that is neither installed nor
    named here."""
    load_recorded(history.plugins, history.created.name)
    with one_thread():  # past studies may be fitted here
        return build_policy(history.problem, Method.from_json(history.method), past)
