"""The notes of a decision in plain sentences: why, from which data, and what came second.

`scrimp.history.notes` says what a decision may note. Each function here reads one part of it and
gives whole sentences, none where nothing was noted.
"""

import math
from collections.abc import Mapping

from scrimp.checks import nearly_equal
from scrimp.history.notes import (
    AheadOfHalf,
    BestCell,
    DrawnAtRandom,
    FirstCell,
    FirstDesign,
    FromDensity,
    FromPortfolio,
    Gain,
    Grant,
    Growth,
    Horizon,
    InBracket,
    Modelled,
    Notes,
    Promoted,
    Queued,
    Race,
    Reason,
    Recommended,
    Said,
    Scouted,
    Sides,
    Sources,
    SpreadOut,
    TakenUpAgain,
    Told,
)
from scrimp.history.problem import Problem
from scrimp.history.trial import Trial
from scrimp.json_values import JsonObject
from scrimp.showing.explanation import Competitor

__all__ = [
    "belief_lines",
    "by_chance",
    "chance",
    "competitors_of",
    "config_text",
    "counted",
    "other_lines",
    "score_lines",
    "score_words",
    "step_words",
    "why",
]

WORDS: Mapping[type, str] = {
    FirstDesign: "It belongs to the first design: configurations spread over the space before a"
    " model can learn anything.",
    Queued: "Somebody put it into the queue, and the queue comes before the method.",
    TakenUpAgain: "Its worker vanished, so it was taken up again where it stood.",
    FromPortfolio: "It belongs to the portfolio of past studies: what did well in them is tried"
    " first.",
    Recommended: "Past studies recommend it.",
    SpreadOut: "Nothing finite was reported yet, so there was no model: it is one more point spread"
    " over the space.",
    DrawnAtRandom: "It was drawn at random, as some decisions are.",
    Scouted: "It is a random scout: where many trials share the best value or its expected end,"
    " some decisions are left to chance.",
    AheadOfHalf: "It was in the better half of its level, so it went on to the next one without a"
    " model.",
    FirstCell: "It belongs to the method's first cells, which are spread over the run.",
    Told: "It was told by the user, not asked for.",
}
"""Reasons that are the same in every study, in whole sentences."""

MODELLESS = {
    "random": "It was drawn at random.",
    "sobol": "It is the next point of a Sobol sequence, which fills the space evenly.",
    "grid": "It is the next point of the grid.",
}

SCORES = {
    "log-ei": "the logarithm of the expected improvement in the model's units",
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


def score_words(notes: Notes, method: JsonObject, problem: Problem, failures: int = 0) -> str:
    """What the score of a decision is; empty where decisions of one study differ in that.

    After ``failures`` a process weighs its score by the probability of success, as it does by that
    of feasibility: such a product is a logarithm.
    """
    settings = method.get("settings")
    own = settings.get("acquisition") if isinstance(settings, Mapping) else None
    name = str(own or ACQUISITIONS.get(str(method["name"]), ""))
    if not name:
        return ""
    if name == "freeze-thaw" and problem.trade_off is not None:
        return "the logarithm of what it is expected to add to the front, as a share of its volume"
    if name == "freeze-thaw" and isinstance(asked := _question(notes), Gain):
        return "the logarithm of the expected improvement" + _per_unit(asked, problem)
    if name == "freeze-thaw":
        return SCORES["log-ei" if isinstance(asked, Race) else name]
    weights = ["the constraints"] * bool(problem.constraints) + ["the cost"] * bool(problem.cost)
    if failures and name != "thompson":
        weights.insert(0, "the probability that it does not fail")
    weighed = f", weighed by {' and '.join(weights)}" if weights else ""
    if weighed and name in ("ei", "pi", "ucb"):
        weighed += ", as a logarithm"
    return SCORES.get(name, f"the acquisition {name!r}") + weighed


def _per_unit(question: Gain, problem: Problem) -> str:
    """For each unit of training, or of what it costs, where a gain is asked for so."""
    if not question.per_unit or problem.budget is None:
        return ""
    if question.per_cost and problem.cost is not None:
        return f" for each unit of {problem.cost}"
    return f" for each {'second' if question.per_cost else problem.budget.name} of training"


def _question(notes: Notes) -> Race | Horizon | Gain | Growth | None:
    """What was asked of learning curves, where that decided."""
    return notes.reason.question if isinstance(notes.reason, Modelled) else None


def by_chance(notes: Notes) -> bool:
    """Whether the score is the distance, in standard deviations, from an aim: so a probability."""
    question = _question(notes)
    return isinstance(question, Horizon) and question.threshold is not None


def why(notes: Notes, problem: Problem, method: str, new: bool, budget: float) -> str:
    """The reason for the decision."""
    amount = "the whole training" if problem.budget is None else problem.budget.amount(budget)
    reason = notes.reason
    if isinstance(reason, Modelled) and reason.question is not None:
        return _asked(reason, problem)
    if new and isinstance(reason, FromDensity):
        return "It was drawn from a density of the good trials."
    for noted in (reason, notes.grant):
        words = WORDS.get(type(noted), "") or _particular(noted, amount)
        if words:
            return words
    match reason:
        case Modelled(exploring=True):
            return (
                "Nothing had improved for a while, so this decision looked elsewhere, by an"
                " optimistic bound of the model."
            )
        case Modelled():
            return (
                "A model of the values so far chose it: weighing what may come, it promised most."
            )
    if new and method in MODELLESS:
        return MODELLESS[method]
    return (
        f"The method chose it and gave it {amount}."
        if new
        else f"The method let it go on to {amount}."
    )


def _asked(reason: Modelled, problem: Problem) -> str:
    """What a model of learning curves was asked, and answered with this trial."""
    if isinstance(reason.question, Race):
        front = problem.trade_off is not None
        aim = "add most to the front" if front else "improve most on the best value"
        return (
            f"Early in the study the next slice of training goes to whoever is expected to {aim}"
            " at its next level: that was this one."
        )
    by = step_words(reason, problem)
    if isinstance(reason.question, Growth):
        return f"Weighing what may come of each by its chances, it promised to add most to the front{by}."
    if isinstance(reason.question, Gain):
        beaten = f"the best {problem.metric} so far"
        if reason.question.best is not None:
            beaten += f", {problem.sign * reason.question.best:.4g},"
        return (
            f"Weighing what may come of each by its chances, it promised the largest improvement on"
            f" {beaten}{by}{_per_unit(reason.question, problem)}."
        )
    if reason.question is None or reason.question.threshold is None:
        return f"It was the most likely of all to come close to feasible{by}."
    return f"It was the most likely of all to beat the best {problem.metric} so far{by}."


def step_words(reason: Modelled, problem: Problem) -> str:
    """By which step the model looked at it: counted from the beginning of the trial."""
    told = reason.expected or next(iter((reason.each or {}).values()), None)
    step = None if told is None else told.step
    return "" if problem.budget is None or step is None else f" by {problem.budget.name} {step:g}"


def _particular(noted: Reason | Grant | None, amount: str) -> str:
    """Reasons with something of this decision in them; empty for others."""
    match noted:
        case Promoted(level):
            return f"Its value was within the cutoff at {level:g}, so it was promoted to {amount}."
        case InBracket(bracket, level):
            at = "" if level is None else f", level {level:g}"
            return (
                "A worker was free and nobody could be promoted, so a new one began in bracket"
                f" {bracket}{at} with {amount}."
            )
        case BestCell(rule, value, opens):
            among = "among the tasks without a score" if opens else f"per unit of cost by {rule}"
            log = "" if value is None else f" (its logarithm is {value:.4g})"
            return f"It is the most valuable cell {among}{log}."
        case Said(text) if text:
            return f"{text[0].upper()}{text[1:]}."
    return ""


def belief_lines(
    notes: Notes, problem: Problem, trial: Trial, best: float | None = None
) -> list[str]:
    """What the model expected of the chosen one, and whether it came out so.

    Models of curves know no loss below the lowest one they have seen, mostly the ``best`` so far:
    an end that stands there means that value or better.
    """
    reason = notes.reason
    if not isinstance(reason, Modelled) or reason.expected is None:
        return []
    expected = reason.expected
    ends = [expected.loss if end is None else end for end in (expected.low, expected.high)]
    good, bad = min(ends), max(ends)
    step = reason.at if expected.step is None else expected.step
    after = ""
    if problem.budget is not None and step is not None:
        after = f" after {problem.budget.amount(step)}"
    value, worst = problem.sign * expected.loss, problem.sign * bad
    if reason.question is not None and _is_floor(good, reason, best):
        new = _at_best(good, best)
        floor = "a new best" if new else f"{problem.sign * good:.4g} or better"
        line = f"{problem.metric} {value:.4g}{after}, anything from {floor} to {worst:.4g}"
        if expected.loss <= good + SIX_DIGITS * abs(good):
            said = f"a new best {problem.metric}" if new else f"{problem.metric} {floor}"
            line = f"{said}{after}, and {worst:.4g} if it goes badly"
        return [f"The model expected {line} (two standard deviations)."]
    low, high = sorted((problem.sign * good, worst))
    band = f"between {low:.4g} and {high:.4g} (two standard deviations)"
    lines = [f"The model expected {problem.metric} {value:.4g}{after}, {band}."]
    if problem.budget is None and trial.loss is not None:
        came = problem.sign * trial.loss
        lines.append(
            f"It came out at {came:.4g}, {_compared(problem.sign * came, problem.sign, low, high)}."
        )
    return lines


SIX_DIGITS = 2e-6
"""How far a noted number may be off."""


def _at_best(loss: float, best: float | None) -> bool:
    """Whether a noted loss is the best one or beyond it."""
    return best is not None and loss <= best + SIX_DIGITS * abs(best)


def _is_floor(good: float, reason: Modelled, best: float | None) -> bool:
    """Whether the good end of a band is where the model's knowledge ends: at the best, at what it
    expects, or where others have theirs too."""
    others = (rival.expected.low for rival in reason.rivals or () if rival.expected is not None)
    assert reason.expected is not None
    known = [reason.expected.loss, *(low for low in others if low is not None)]
    return _at_best(good, best) or any(abs(low - good) <= SIX_DIGITS * abs(good) for low in known)


def _compared(loss: float, sign: float, low: float, high: float) -> str:
    best, worst = sorted((sign * low, sign * high))
    if best <= loss <= worst:
        return "as expected"
    return "better than expected" if loss < best else "worse than expected"


def competitors_of(notes: Notes, trial: Trial) -> list[Competitor]:
    """The others that were considered, best first; each once, and never the chosen one itself."""
    rivals = notes.reason.rivals if isinstance(notes.reason, Modelled) else None
    found: dict[str, float | None] = {}
    for rival in rivals or ():
        text = config_text(rival.config or {}) if rival.trial is None else f"trial {rival.trial}"
        if rival.trial != trial.id and not nearly_equal(rival.config or {}, trial.config):
            found.setdefault(text, rival.score)
    return [{"text": text, "score": score} for text, score in found.items()]


def score_lines(notes: Notes, words: str, trial: Trial) -> list[str]:
    """The score that decided, with `score_words` of it, and the runner-up with its score."""
    reason = notes.reason
    if not isinstance(reason, Modelled) or reason.score is None:
        return []
    what = f" ({words})" if words and not reason.exploring else ""
    odds = by_chance(notes)
    lines = [f"Its score was the highest: {reason.score:.4g}{what}."]
    if odds:
        lines = [f"Its chance was the best: {chance(reason.score)}."]
    if reason.sides is not None:
        return [*lines, *_side_lines(reason.sides)]
    ranked = competitors_of(notes, trial)
    if ranked:
        second = ranked[0]
        rated = "" if second["score"] is None else f", with {second['score']:.4g}"
        if odds and second["score"] is not None:
            rated = f", with {chance(second['score'])}"
        more = f"; {counted(len(ranked) - 1, 'more')} noted" if len(ranked) > 1 else ""
        lines.append(f"The runner-up was {second['text']}{rated}{more}.")
    elif reason.rivals is not None:
        lines.append(
            "There was no runner-up: every search for a better score ended at this configuration."
        )
    return lines


def _side_lines(sides: Sides) -> list[str]:
    named = (("paused trials", sides.paused), ("new configurations", sides.new))
    return [
        f"No {name[:-1]} was to choose from."
        if score is None
        else f"The best of the {name} had {score:.4g}."
        for name, score in named
    ]


def other_lines(notes: Notes) -> list[str]:
    """Notes of particular methods: densities, and the weights of past studies."""
    lines = []
    match notes.reason:
        case FromDensity(level, trials):
            lines.append(
                "There the good ones are dense and the others are not, among"
                f" {counted(trials, 'trial')} compared at budget {level:g}."
            )
        case FirstDesign(int() as needed):
            lines.append(f"No budget level has {needed} trials yet, which a density needs.")
    if notes.sources is None:
        return lines
    listed = sorted(notes.sources.weights.items(), key=lambda item: -item[1])
    shown = [f"{name} {weight:.0%}" for name, weight in listed if weight >= 0.005][:5]
    if shown:
        lines.append(f"What counted: {', '.join(shown)}.")
    return lines + _past_lines(notes.sources)


def _past_lines(sources: Sources) -> list[str]:
    """What the first decision says about past studies that could not be used, or not whole."""
    lines = [f"{line[:1].upper()}{line[1:]}." for line in sources.left_out]
    unlearnable = [repr(name) for name in sources.unlearnable]
    if unlearnable:
        more = f" and {len(unlearnable) - 5} more" if len(unlearnable) > 5 else ""
        lines.append(
            f"The values of past studies {', '.join(unlearnable[:5])}{more} cannot be predicted"
            " from their configurations: too few trials or too much noise. They do not count."
        )
    return lines


def chance(score: float) -> str:
    """Phi(score), the probability to come beyond an aim that lies so many deviations away.

    >>> chance(0.0), chance(0.1502), chance(-4.0)
    ('50%', '56%', 'under 1%')
    """
    share = 0.5 * math.erfc(-score / math.sqrt(2.0))
    return "under 1%" if share < 0.01 else "over 99%" if share > 0.99 else f"{share:.0%}"


def counted(count: float, noun: str) -> str:
    """
    >>> counted(1, "trial"), counted(2, "trial"), counted(2, "more")
    ('1 trial', '2 trials', '2 more')
    """
    return f"{count:g} {noun}{'' if count == 1 or noun == 'more' else 's'}"


def config_text(config: Mapping[str, object]) -> str:
    """A configuration on one line."""
    return ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in config.items()
    )
