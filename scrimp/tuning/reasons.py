"""Why a trial got its configuration and its budgets, in plain words, from the notes that its decisions left in the log.

Every grant was a decision; each noted what it saw and why it chose. Nothing is computed again, except for a study that learned
from others: what the same model would have chosen without them.

    for decision in explain(study.history, 7).decisions: print(*decision.lines, sep="\n")
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from scrimp.errors import ScrimpError, StudyError
from scrimp.history.events import BudgetGranted, Config, Noted, Reported, TrialAdded
from scrimp.history.history import History
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.policies.policy import Start
from scrimp.tuning.catalog import Method, build_policy
from scrimp.tuning.decisions import next_decision

__all__ = ["DecisionReason", "Explanation", "config_text", "explain"]

WORDS = {
    "first design": "It belongs to the first design: configurations spread over the space before a model can learn anything.",
    "enqueued by the user": "Somebody put it into the queue, and the queue comes before the method.",
    "its worker vanished; taken up again": "Its worker vanished, so it was taken up again where it stood.",
    "portfolio of past studies": "It belongs to the portfolio of past studies: what did well in them is tried first.",
    "race": "Early in the study the slice goes to whoever is expected to improve most on the best value at its next level.",
    "horizon": "The slice goes to whoever is most likely to beat the best value so far within a horizon drawn for this decision.",
}
"""Reasons as methods note them, in whole sentences."""


@dataclass(frozen=True)
class DecisionReason:
    """One decision about a trial: its number, the budget it granted, what it rested on, and all that in sentences."""

    decision: int
    budget: float
    new: bool
    reason: str
    trials_seen: int
    reports_seen: int
    degraded: str
    notes: Mapping[str, Any]
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """Everything there is to say about how a trial came about."""

    trial: int
    status: str
    params: Config
    value: float | None
    budget: float
    method: str
    method_reason: str
    decisions: tuple[DecisionReason, ...] = field(default_factory=tuple)
    without_sources: Config | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain JSON form."""
        return asdict(self)

    @property
    def text(self) -> str:
        """All of it in plain words."""
        shown = "no value yet" if self.value is None else f"value {self.value:.6g}"
        lines = [
            f"Trial {self.trial}: {self.status}, {shown} at budget {self.budget:g}",
            f"  {config_text(self.params)}",
            f"Method: {self.method}" + (f" ({self.method_reason})" if self.method_reason else ""),
        ]
        for decision in self.decisions:
            what = "a new configuration, granted" if decision.new else "granted more, in all"
            lines.append(f"Decision {decision.decision}: {what} {decision.budget:g}")
            lines += [f"  {line}" for line in decision.lines]
        if self.without_sources is not None:
            lines.append(f"Without the past studies the model would have chosen {config_text(self.without_sources)}")
        return "\n".join(lines)


def explain(history: History, trial: int) -> Explanation:
    """Why trial number ``trial`` was chosen and how it came to its budget."""
    if isinstance(trial, bool) or not 0 <= trial < len(history.trials):
        raise StudyError(f"there is no trial {trial}; the study has {len(history.trials)}, counted from 0")
    shown = history.trials[trial]
    decided = _decisions(history, trial)
    reasons = tuple(_reason(history, shown, noted, grant, new) for noted, grant, new in decided)
    return Explanation(
        trial=trial,
        status=shown.status,
        params=dict(shown.config),
        value=shown.value,
        budget=shown.budget,
        method=str(history.method["name"]),
        method_reason=str(history.method.get("reason", "")),
        decisions=reasons,
        without_sources=_without_sources(history, decided),
    )


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration on one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in config.items()
    )


def _decisions(history: History, trial: int) -> list[tuple[Noted, BudgetGranted, bool]]:
    """The notes and grants of every decision about the trial, and whether it added it."""
    found: list[tuple[Noted, BudgetGranted, bool]] = []
    noted: Noted | None = None
    new = False
    for event in history.events:
        match event:
            case Noted():
                noted, new = event, False
            case TrialAdded():
                new = event.trial == trial
            case BudgetGranted() if event.trial == trial and noted is not None:
                found.append((noted, event, new))
    return found


def _reason(history: History, trial: Trial, noted: Noted, grant: BudgetGranted, new: bool) -> DecisionReason:
    notes = noted.notes
    prefix = history.events[: noted.seen]
    trials = sum(isinstance(event, TrialAdded) for event in prefix)
    reports = sum(isinstance(event, Reported) for event in prefix)
    reason, degraded = str(notes.get("reason", "")), str(notes.get("degraded", ""))
    lines = [_why(reason, new, _amount(history.problem, grant.budget))]
    lines.append(f"It could see {_counted(reports, 'report')} of {_counted(trials, 'trial')}.")
    lines += _model_lines(notes, history.problem)
    lines += _belief_lines(notes, history.problem, trial)
    lines += _competitor_lines(notes)
    lines += _other_lines(notes)
    if degraded:
        lines.append(f"Degraded: {degraded}.")
    kept = {key: value for key, value in notes.items() if key not in ("fit", "freeze_thaw")}
    return DecisionReason(noted.decision, grant.budget, new, reason, trials, reports, degraded, kept, tuple(lines))


def _counted(count: float, noun: str) -> str:
    """
    >>> _counted(1, "trial"), _counted(2, "trial")
    ('1 trial', '2 trials')
    """
    return f"{count:g} {noun}{'' if count == 1 else 's'}"


def _amount(problem: Problem, budget: float) -> str:
    return "the whole training" if problem.budget is None else _counted(budget, problem.budget.name)


def _why(reason: str, new: bool, budget: str) -> str:
    if reason in WORDS:
        return WORDS[reason]
    if reason.startswith("within the cutoff at"):
        return f"Its value was {reason}, so it was promoted to {budget}."
    if reason.startswith("bracket"):
        return f"A worker was free and nobody could be promoted, so a new one began in {reason} with {budget}."
    if reason:
        return f"{reason[0].upper()}{reason[1:]}."
    return f"The method chose it and gave it {budget}." if new else f"The method let it go on to {budget}."


def _model_lines(notes: Mapping[str, Any], problem: Problem) -> list[str]:
    """How long the model has been fitted, and along which parameters it sees the loss change fastest."""
    fit = notes.get("fit")
    loss = fit.get("loss") if isinstance(fit, Mapping) else None
    if not isinstance(loss, Mapping):
        return []
    lines = [f"The model was fitted anew for this decision, to {loss.get('n')} observations."]
    scales = _lookup(loss, "length_scale")
    names = problem.space.searched
    if isinstance(scales, Sequence) and len(scales) == len(names) > 1:
        order = sorted(range(len(names)), key=lambda place: float(scales[place]))
        lines.append(f"It saw the loss change fastest along {names[order[0]]}, slowest along {names[order[-1]]}.")
    return lines


def _lookup(record: Any, key: str) -> Any:
    if isinstance(record, Mapping):
        if key in record:
            return record[key]
        for value in record.values():
            found = _lookup(value, key)
            if found is not None:
                return found
    return None


def _belief_lines(notes: Mapping[str, Any], problem: Problem, trial: Trial) -> list[str]:
    believed = notes.get("believed")
    if not isinstance(believed, Mapping) or "loss" not in believed:
        return []
    value, low, high = (problem.sign * float(believed.get(key, believed["loss"])) for key in ("loss", "low", "high"))
    low, high = min(low, high), max(low, high)
    where = "" if problem.budget is None else " at the budget it looked at"
    band = f"between {low:.4g} and {high:.4g} (two standard deviations)"
    lines = [f"The model believed in {problem.metric} {value:.4g}{where}, {band}."]
    if problem.budget is None and trial.loss is not None:
        came = problem.sign * trial.loss
        lines.append(f"It came out at {came:.4g}, {'as' if low <= came <= high else 'outside what it'} believed.")
    return lines


def _competitor_lines(notes: Mapping[str, Any]) -> list[str]:
    score, others = notes.get("acquisition"), notes.get("competitors")
    lines = [f"Its acquisition score was {score:.4g}."] if isinstance(score, int | float) else []
    if isinstance(others, Mapping):
        sides = [f"{name} {value:.4g}" for name, value in others.items() if isinstance(value, int | float)]
        lines.append(f"Best scores on either side: {', '.join(sides)}.")
    elif isinstance(others, Sequence) and others and isinstance(others[0], Mapping):
        runner = others[0]
        rated = f", with score {runner['score']:.4g}" if isinstance(runner.get("score"), int | float) else ""
        named = f"trial {runner['trial']}" if "trial" in runner else config_text(runner.get("config", {}))
        lines.append(f"The runner-up was {named}{rated}; {_counted(len(others), 'competitor')} noted.")
    return lines


def _other_lines(notes: Mapping[str, Any]) -> list[str]:
    """Notes of particular methods: horizons, rung weights, densities, sources."""
    lines = []
    if "horizon" in notes:
        lines.append(f"The horizon was {notes['horizon']:g} further steps.")
    density = notes.get("density")
    if isinstance(density, Mapping) and "level" in density:
        lines.append(
            f"Two densities compared {density['trials']} trials at budget {density['level']:g}, good ones and the others."
        )
    elif isinstance(density, Mapping) and "reason" in density:
        lines.append(f"{str(density['reason']).capitalize()}.")
    weights = notes.get("weights")
    if isinstance(weights, Mapping) and weights:
        listed = sorted(weights.items(), key=lambda item: -float(item[1]))
        lines.append(
            "It learned from " + ", ".join(f"{name} ({float(weight):.2f})" for name, weight in listed[:5]) + "."
        )
    return lines


def _without_sources(history: History, decided: Sequence[tuple[Noted, BudgetGranted, bool]]) -> Config | None:
    """What plain ``gp`` would have chosen at the decision that added the trial; None unless the study learned from others."""
    added = [noted for noted, _, new in decided if new]
    if not history.sources or not added:
        return None
    before = History.of(history.events[: added[0].seen])
    try:
        action = next_decision(build_policy(before.problem, Method("gp")), before).action
    except ScrimpError:
        return None
    return dict(action.config) if isinstance(action, Start) else None
