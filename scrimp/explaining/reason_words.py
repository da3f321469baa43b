"""The notes of a decision in plain sentences: why, from which data, what the model expected, and
what came second.

Methods note what they used, under names they share: ``reason``, ``fit``, ``believed``,
``acquisition``, ``competitors``, ``weights``, ``density``. Each function here reads one of them and
gives whole sentences, none where the note is missing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from scrimp.history.problem import Problem
from scrimp.history.trial import Trial

__all__ = [
    "belief_lines",
    "competitors_of",
    "config_text",
    "counted",
    "model_lines",
    "other_lines",
    "score_lines",
    "score_words",
    "why",
]

WORDS = {
    "first design": (
        "It belongs to the first design: configurations spread over the space before a model can"
        " learn anything."
    ),
    "enqueued by the user": (
        "Somebody put it into the queue, and the queue comes before the method."
    ),
    "its worker vanished; taken up again": (
        "Its worker vanished, so it was taken up again where it stood."
    ),
    "portfolio of past studies": (
        "It belongs to the portfolio of past studies: what did well in them is tried first."
    ),
    "nothing finite yet": (
        "Nothing finite was reported yet, so there was no model: it is one more point spread over"
        " the space."
    ),
    "a random scout": (
        "It is a random scout: where many trials share the best value, some decisions are left to"
        " chance."
    ),
    "in the better half of its level": (
        "It was in the better half of its level, so it went on to the next one without a model."
    ),
    "the largest expected improvement at its next level": (
        "Early in the study the next slice of training goes to whoever is "
        "expected to improve most on the best value at its next level: that was this one."
    ),
}
"""Reasons as methods note them, in whole sentences."""

MODELLESS = {
    "random": "It was drawn at random.",
    "sobol": "It is the next point of a Sobol sequence, which fills the space evenly.",
    "grid": "It is the next point of the grid.",
}

SCORES = {
    "log-ei": "the logarithm of the expected improvement",
    "ei": "the expected improvement",
    "pi": "the probability of improvement",
    "ucb": "the optimistic bound",
    "freeze-thaw": "how many standard deviations its prediction lies beyond the aim",
}
"""What a score is, by acquisition; freeze-thaw has its own."""

ACQUISITIONS = {
    "gp": "log-ei",
    "gp-ei": "ei",
    "gp-pi": "pi",
    "gp-ucb": "ucb",
    "task-prior": "log-ei",
    "freeze-thaw": "freeze-thaw",
}
"""The acquisition of a method, where that is always the same unless its settings name another."""


def score_words(method: Mapping[str, Any], problem: Problem) -> str:
    """What the score of a method is; empty where decisions of one study differ in that."""
    name = method.get("settings", {}).get("acquisition", ACQUISITIONS.get(str(method["name"])))
    if name is None:
        return ""
    weights = ["the constraints"] * bool(problem.constraints) + ["the cost"] * bool(problem.cost)
    weighed = f", weighed by {' and '.join(weights)}" if weights and name != "freeze-thaw" else ""
    if weighed and name in ("ei", "pi", "ucb"):
        weighed += ", as a logarithm"
    return SCORES.get(name, f"the acquisition {name!r}") + weighed


def why(notes: Mapping[str, Any], problem: Problem, method: str, new: bool, budget: float) -> str:
    """The reason for the decision."""
    reason = str(notes.get("reason", ""))
    amount = "the whole training" if problem.budget is None else problem.budget.amount(budget)
    if notes.get("phase") == "horizon" and problem.budget is not None and "threshold" in notes:
        aim, steps = (
            problem.sign * float(notes["threshold"]),
            problem.budget.amount(float(notes["horizon"])),
        )
        beyond = "below" if problem.sign > 0 else "above"
        return (
            f"It was the most likely of all to come {beyond} {problem.metric} {aim:.4g} within"
            f" {steps} more."
        )
    if reason in WORDS:
        return WORDS[reason]
    if reason.startswith("within the cutoff at"):
        return f"Its value was {reason}, so it was promoted to {amount}."
    if reason.startswith("bracket"):
        return (
            f"A worker was free and nobody could be promoted, so a new one began in {reason} with"
            f" {amount}."
        )
    if reason:
        return f"{reason[0].upper()}{reason[1:]}."
    if notes.get("exploring"):
        return (
            "Nothing had improved for a while, so this decision looked elsewhere, by an optimistic"
            " bound of the model."
        )
    if "acquisition" in notes:
        return "A model of the values so far chose it: it promised most."
    if "density" in notes:
        return "It was drawn from a density of the good trials."
    if new and method in MODELLESS:
        return MODELLESS[method]
    return (
        f"The method chose it and gave it {amount}."
        if new
        else f"The method let it go on to {amount}."
    )


def model_lines(notes: Mapping[str, Any], problem: Problem) -> list[str]:
    """What the model was fitted to, and along which parameters it sees the value change fastest."""
    fits = notes.get("fit")
    fit = (
        next((each for each in fits.values() if _is_fit(each)), None)
        if isinstance(fits, Mapping)
        else None
    )
    if fit is None:
        return []
    lines = [f"The model was fitted anew for this decision, to {fit['n']} observations."]
    order = [name for _, name in sorted(_scales_by_name(fit, problem), key=lambda pair: pair[0])]
    if len(order) > 1:
        lines.append(
            f"It saw {problem.metric} change fastest along {order[0]}, slowest along {order[-1]}."
        )
    return lines


def _scales_by_name(fit: Mapping[str, Any], problem: Problem) -> list[tuple[float, str]]:
    """The noted length-scale of each parameter that has one; logs from before they were noted have
    it in the state."""
    scales = fit["length_scales"] if "length_scales" in fit else _lookup(fit, "length_scale")
    names = problem.space.searched
    if not isinstance(scales, Sequence) or len(scales) != len(names):
        return []
    return [
        (float(scale), name) for scale, name in zip(scales, names, strict=True) if scale is not None
    ]


def _is_fit(record: Any) -> bool:
    return isinstance(record, Mapping) and "n" in record


def _lookup(record: Any, key: str) -> Any:
    """The first value of ``key`` anywhere in a record of an earlier version."""
    if isinstance(record, Mapping):
        if key in record:
            return record[key]
        for value in record.values():
            found = _lookup(value, key)
            if found is not None:
                return found
    return None


def belief_lines(notes: Mapping[str, Any], problem: Problem, trial: Trial) -> list[str]:
    """What the model expected of the chosen one, and whether it came out so."""
    believed = notes.get("believed")
    if not isinstance(believed, Mapping) or "loss" not in believed:
        return []
    value, *ends = (
        problem.sign * float(believed.get(key, believed["loss"])) for key in ("loss", "low", "high")
    )
    low, high = min(ends), max(ends)
    step = believed.get("step", notes.get("r_acq"))
    after = (
        f" after {problem.budget.amount(float(step))}"
        if problem.budget is not None and step is not None
        else ""
    )
    band = f"between {low:.4g} and {high:.4g} (two standard deviations)"
    lines = [f"The model expected {problem.metric} {value:.4g}{after}, {band}."]
    if problem.budget is None and trial.loss is not None:
        came = problem.sign * trial.loss
        lines.append(
            f"It came out at {came:.4g}, {_compared(problem.sign * came, problem.sign, low, high)}."
        )
    return lines


def _compared(loss: float, sign: float, low: float, high: float) -> str:
    best, worst = sorted((sign * low, sign * high))
    if best <= loss <= worst:
        return "as expected"
    return "better than expected" if loss < best else "worse than expected"


def competitors_of(notes: Mapping[str, Any], trial: Trial) -> list[dict[str, Any]]:
    """The others that were considered, as ``text`` and ``score``, best first; each once, and never
    the chosen one itself."""
    others = notes.get("competitors")
    if not isinstance(others, Sequence) or isinstance(others, str):
        return []
    found: dict[str, Any] = {}
    for other in others:
        if isinstance(other, Mapping):
            number = other.get("trial")
            text = (
                f"trial {number}" if number is not None else config_text(other.get("config") or {})
            )
            if number != trial.id and text != config_text(trial.config):
                found.setdefault(text, other.get("score"))
    return [{"text": text, "score": score} for text, score in found.items()]


def score_lines(notes: Mapping[str, Any], words: str, trial: Trial) -> list[str]:
    """The score that decided, with `score_words` of it, the runner-up, and how far behind it
    was."""
    score, others = notes.get("acquisition"), notes.get("competitors")
    if not isinstance(score, int | float):
        return []
    what = f" ({words})" if words and not notes.get("exploring") else ""
    lines = [f"Its score was the highest: {score:.4g}{what}."]
    if isinstance(others, Mapping):
        return [*lines, *_side_lines(others)]
    ranked = competitors_of(notes, trial)
    if ranked:
        second = ranked[0]
        rated = f", with {second['score']:.4g}" if isinstance(second["score"], int | float) else ""
        more = f"; {counted(len(ranked) - 1, 'more')} noted" if len(ranked) > 1 else ""
        lines.append(f"The runner-up was {second['text']}{rated}{more}.")
    elif isinstance(others, Sequence):
        lines.append(
            "There was no runner-up: every search for a better score ended at this configuration."
        )
    return lines


def _side_lines(sides: Mapping[str, Any]) -> list[str]:
    names = {"paused": "paused trials", "new": "new configurations"}
    return [
        (
            f"The best of the {names[side]} had {value:.4g}."
            if isinstance(value, int | float)
            else f"No {names[side][:-1]} was to choose from."
        )
        for side, value in sides.items()
        if side in names
    ]


def other_lines(notes: Mapping[str, Any]) -> list[str]:
    """Notes of particular methods: densities, and the weights of past studies."""
    lines = []
    density = notes.get("density")
    if isinstance(density, Mapping) and "level" in density:
        lines.append(
            "There the good ones are dense and the others are not, among"
            f" {counted(density['trials'], 'trial')} compared at budget {density['level']:g}."
        )
    elif isinstance(density, Mapping) and "reason" in density:
        lines.append(f"{str(density['reason']).capitalize()}.")
    weights = notes.get("weights")
    if isinstance(weights, Mapping) and weights:
        listed = sorted(
            ((name, float(weight)) for name, weight in weights.items()), key=lambda item: -item[1]
        )
        shown = [f"{name} {weight:.0%}" for name, weight in listed if weight >= 0.005][:5]
        lines.append(f"What counted: {', '.join(shown)}.")
    return lines + _past_lines(notes)


def _past_lines(notes: Mapping[str, Any]) -> list[str]:
    """What the first decision says about past studies that could not be used, or not whole."""
    lines = [f"{str(line)[:1].upper()}{str(line)[1:]}." for line in notes.get("left_out", ())]
    unlearnable = [repr(name) for name in notes.get("unlearnable", ())]
    if unlearnable:
        more = f" and {len(unlearnable) - 5} more" if len(unlearnable) > 5 else ""
        lines.append(
            f"The values of past studies {', '.join(unlearnable[:5])}{more} cannot be predicted"
            " from their configurations: too few trials or too much noise. They do not count."
        )
    return lines


def counted(count: float, noun: str) -> str:
    """
    >>> counted(1, "trial"), counted(2, "trial"), counted(2, "more")
    ('1 trial', '2 trials', '2 more')
    """
    return f"{count:g} {noun}{'' if count == 1 or noun == 'more' else 's'}"


def config_text(config: Mapping[str, Any]) -> str:
    """A configuration on one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    )
