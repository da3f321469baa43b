"""Recompute every recorded decision from the log, and compare.

A decision records how much of the log it saw; everything else follows from that part: derived
randomness, recorded fits, the state of rungs. Numeric parameters may differ by 1e-6 of their range,
since sums are computed in another order; everything discrete must be equal. Another version of
scrimp or NumPy is reported, but is no failure.

    for outcome in replay(study.history.events): print(outcome)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrimp.checkpoint_selection.cell_policy import CellPolicy
from scrimp.errors import ScrimpError
from scrimp.json_values import Config, JsonObject
from scrimp.methods.policy import Policy, Start
from scrimp.schedulers.scheduler import Resume
from scrimp.space.space import Space
from scrimp.study.decisions import next_decision, policy_of
from scrimp.study.studies import present_versions
from scrimp.study_log.decision_record import Told
from scrimp.study_log.events import BudgetGranted, Decided, Event, TrialAdded
from scrimp.study_log.history import History

if TYPE_CHECKING:  # loading it takes SciPy
    from scrimp.transfer.past import Past


VALUE_TOLERANCE = 1e-6
"""Difference of two values of a numeric parameter that count as equal, as a share of its range."""


@dataclass(frozen=True)
class Replayed:
    """The comparison of one decision: what was recorded, and the difference; empty if equal."""

    decision: int
    recorded: str
    difference: str = ""

    @property
    def same(self) -> bool:
        """True if the decision was reproduced."""
        return not self.difference


def replay(
    events: Sequence[Event], past: "Callable[[History], Past | None] | None" = None
) -> Iterator[Replayed]:
    """Recompute the decisions one by one; ``past`` reads the past studies."""
    history = History.of(events[:1])
    policy: Policy | None = None
    method: JsonObject | None = None
    for place, event in enumerate(events):
        # A result that a user told is not a decision.
        if not isinstance(event, Decided) or isinstance(event.record.reason, Told):
            continue
        history = history.with_events(events[history.length : event.seen])
        if policy is None or method is not history.method:
            reader = None if past is None or history.is_selection else past(history)
            policy = CellPolicy() if history.is_selection else policy_of(history, reader)
            method = history.method
        yield _compared(event, events[place + 1 : place + 3], history, policy)


def other_versions(events: Sequence[Event]) -> list[str]:
    """List the packages whose version differs from the one that created the study."""
    recorded = History.of(events[:1]).created.versions
    present = present_versions()
    return [
        f"{name} {recorded[name]} then, {present[name]} now"
        for name in present
        if name in recorded and recorded[name] != present[name]
    ]


def _compared(
    decided: Decided, following: Sequence[Event], history: History, policy: Policy
) -> Replayed:
    recorded, number = _recorded(following), decided.decision
    if recorded is None:
        return Replayed(number, "nothing", "the log holds no action for this decision")
    try:
        action = next_decision(policy, history).action
    except ScrimpError as error:
        return Replayed(number, _words(recorded), f"recomputing it failed: {error}")
    difference = f"now it would be {action}"
    if isinstance(action, Start | Resume):
        difference = _difference(recorded, action, history.problem.space)
    return Replayed(number, _words(recorded), difference)


def _recorded(following: Sequence[Event]) -> Start | Resume | None:
    """Return the action that the events of a decision record."""
    match list(following):
        case [TrialAdded() as added, BudgetGranted() as granted, *_]:
            return Start(added.config, granted.budget, added.tag, added.continue_from)
        case [BudgetGranted() as granted, *_]:
            return Resume(granted.trial, granted.budget)
    return None


def _difference(recorded: Start | Resume, now: Start | Resume, space: Space) -> str:
    """Describe the difference of two actions; empty if they are equal."""
    if type(recorded) is not type(now):
        return f"now it would be {_words(now)}"
    if recorded.budget != now.budget:
        return f"the budget was {recorded.budget:g} and would be {now.budget:g}"
    if isinstance(recorded, Resume) and isinstance(now, Resume):
        other = f"trial {now.trial} would continue instead of {recorded.trial}"
        return "" if recorded.trial == now.trial else other
    assert isinstance(recorded, Start) and isinstance(now, Start)
    if recorded.continue_from != now.continue_from:
        return f"it continued trial {recorded.continue_from} and would continue {now.continue_from}"
    if dict(recorded.tag) != dict(now.tag):
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
            if abs(parameter.to_unit(value) - parameter.to_unit(other)) <= VALUE_TOLERANCE:
                continue
        return f"{name} was {value!r} and would be {other!r}"
    return ""


def _words(action: Start | Resume) -> str:
    if isinstance(action, Resume):
        return f"trial {action.trial} continues to {action.budget:g}"
    return f"a new trial with budget {action.budget:g}: {action.config}"
