"""Recompute every recorded decision from the log, and say whether each one is the same.

A decision records how much of the log it saw; everything else follows from that prefix: derived
randomness, recorded fits, the state of rungs. Numeric parameters may differ by 1e-6 of their range,
since factors are rebuilt in another order of additions; everything discrete must be equal. Another
version of scrimp or NumPy is reported, not failed.

    for outcome in replay(study.history.events): print(outcome)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrimp.errors import ScrimpError
from scrimp.history.events import BudgetGranted, Config, Event, Noted, TrialAdded
from scrimp.history.history import History
from scrimp.history.notes import Told
from scrimp.json_values import JsonObject
from scrimp.policies.policy import Policy, Resume, Start
from scrimp.selection.cell_policy import CellPolicy
from scrimp.space.space import Space
from scrimp.tuning.deciding import policy_of
from scrimp.tuning.decisions import next_decision
from scrimp.tuning.studies import present_versions

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.transfer.past import Past

__all__ = ["TOLERANCE", "Replayed", "other_versions", "replay"]

TOLERANCE = 1e-6
"""How far apart two values of a numeric parameter may lie, as a share of its range, and still count
as the same."""


@dataclass(frozen=True)
class Replayed:
    """Decision number ``decision``: what was recorded, and how the recomputed one differs; no
    difference when it is the same."""

    decision: int
    recorded: str
    difference: str = ""

    @property
    def same(self) -> bool:
        """Whether the decision was reproduced."""
        return not self.difference


def replay(
    events: Sequence[Event], past: "Callable[[History], Past | None] | None" = None
) -> Iterator[Replayed]:
    """Recompute each decision in turn; one outcome per decision, as soon as it is known. ``past``
    reads the past studies."""
    history = History.of(events[:1])
    policy: Policy | None = None
    method: JsonObject | None = None
    for place, event in enumerate(events):
        if not isinstance(event, Noted) or isinstance(
            event.notes.reason, Told
        ):  # what a user told was nobody's decision
            continue
        history = history.with_events(events[history.length : event.seen])
        if policy is None or method is not history.method:
            policy, method = _policy(history, past), history.method
        yield _compared(event, events[place + 1 : place + 3], history, policy)


def _policy(history: History, past: "Callable[[History], Past | None] | None") -> Policy:
    if history.is_selection:
        return CellPolicy()
    return policy_of(history, None if past is None else past(history))


def other_versions(events: Sequence[Event]) -> list[str]:
    """Packages whose version differs from the one the study was created with."""
    recorded = History.of(events[:1]).created.versions
    present = present_versions()
    return [
        f"{name} {recorded[name]} then, {present[name]} now"
        for name in present
        if name in recorded and recorded[name] != present[name]
    ]


def _compared(
    noted: Noted, following: Sequence[Event], history: History, policy: Policy
) -> Replayed:
    recorded = _recorded(following)
    if recorded is None:
        return Replayed(noted.decision, "nothing", "the log holds no action for this decision")
    try:
        action = next_decision(policy, history).action
    except ScrimpError as error:
        return Replayed(noted.decision, _words(recorded), f"recomputing it failed: {error}")
    if not isinstance(action, Start | Resume):
        return Replayed(noted.decision, _words(recorded), f"now it would be {action}")
    return Replayed(
        noted.decision, _words(recorded), _difference(recorded, action, history.problem.space)
    )


def _recorded(following: Sequence[Event]) -> Start | Resume | None:
    """The action that a decision's batch records."""
    match list(following):
        case [TrialAdded() as added, BudgetGranted() as granted, *_]:
            return Start(added.config, granted.budget, added.tag, added.continue_from)
        case [BudgetGranted() as granted, *_]:
            return Resume(granted.trial, granted.budget)
    return None


def _difference(recorded: Start | Resume, now: Start | Resume, space: Space) -> str:
    """How the two actions differ, in words; empty when they are the same."""
    if type(recorded) is not type(now):
        return f"now it would be {_words(now)}"
    if recorded.budget != now.budget:
        return f"the budget was {recorded.budget:g} and would be {now.budget:g}"
    if isinstance(recorded, Resume) and isinstance(now, Resume):
        return (
            ""
            if recorded.trial == now.trial
            else f"trial {now.trial} would go on instead of {recorded.trial}"
        )
    assert isinstance(recorded, Start) and isinstance(now, Start)
    if dict(recorded.tag) != dict(now.tag) or recorded.continue_from != now.continue_from:
        return f"the tag was {dict(recorded.tag)} and would be {dict(now.tag)}"
    return _config_difference(recorded.config, now.config, space)


def _config_difference(recorded: Config, now: Config, space: Space) -> str:
    if set(recorded) != set(now):
        return f"the parameters were {sorted(recorded)} and would be {sorted(now)}"
    for name, value in recorded.items():
        other = now[name]
        if value == other and type(value) is type(other):
            continue
        if isinstance(value, float) and isinstance(other, float):
            parameter = space[name]
            if abs(parameter.to_unit(value) - parameter.to_unit(other)) <= TOLERANCE:
                continue
        return f"{name} was {value!r} and would be {other!r}"
    return ""


def _words(action: Start | Resume) -> str:
    if isinstance(action, Resume):
        return f"trial {action.trial} goes on to {action.budget:g}"
    return f"a new trial with budget {action.budget:g}: {action.config}"
