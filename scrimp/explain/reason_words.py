"""The record of a decision in sentences: its reason, its data, and the runner-up.

`scrimp.study_log.decision_record` lists what a decision may record. Each function reads one part of
it and returns whole sentences, none if nothing was recorded.
"""

import math
from collections.abc import Mapping, Sequence
from operator import itemgetter

import msgspec

from scrimp.checks import nearly_equal
from scrimp.display.explanation import Competitor
from scrimp.display.figures import config_words
from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS
from scrimp.json_values import JsonObject
from scrimp.methods.named_methods import Method, chosen_settings
from scrimp.study_log.decision_record import (
    AheadOfHalf,
    AskedInRound,
    BestCell,
    DecisionRecord,
    DrawnAtRandom,
    FirstCell,
    FirstDesign,
    Fit,
    FromAdvice,
    FromDensity,
    FromPortfolio,
    Gain,
    Grant,
    Growth,
    Horizon,
    InBracket,
    LeadsItsLevel,
    Modelled,
    Promoted,
    Queued,
    Race,
    Reason,
    Recommended,
    Said,
    Scouted,
    Sources,
    SpreadOut,
    TakenUpAgain,
    Told,
    WholeTraining,
)
from scrimp.study_log.problem import Losses, Problem
from scrimp.study_log.trial import Trial

WORDS: Mapping[type, str] = {
    FirstDesign: "It belongs to the first design: configurations spread over the space before there"
    " are enough results to learn from.",
    Queued: "A user queued it, and the queue comes before the method.",
    TakenUpAgain: "Its last attempt was interrupted or failed, so it was tried again.",
    FromPortfolio: "It belongs to the portfolio of past studies: configurations that did well in"
    " them are tried first.",
    Recommended: "Past studies recommend it.",
    SpreadOut: "No finite value had been reported yet, so there was no model: it is another point"
    " spread over the space.",
    DrawnAtRandom: "It was drawn at random, as some decisions are.",
    Scouted: "It is a random configuration: when many trials share the best value or are predicted"
    " to reach it, some decisions are random.",
    AheadOfHalf: "Some decisions are made without the model: by its values so far, it was the next to"
    " continue.",
    LeadsItsLevel: "No other trial had a better value with as much training or less, so it continued"
    " before the first design was complete.",
    FirstCell: "It belongs to the method's first cells, which are chosen without a model.",
    Told: "A user entered its result without asking for the trial.",
}
"""Reasons that read the same in every study."""

EXPLORING = (
    "There had been little progress, so an optimistic bound of the model chose it, to explore where"
    " the model knew little."
)
IN_REGION = (
    "A model of the region around the best trials chose it, because more progress was expected of"
    " that model than of the model of the whole space."
)
ELSEWHERE = (
    "Another trial with the discrete values of the best one could only have polished it, so the model"
    " chose the most promising configuration with other discrete values."
)
BY_MODEL = "A model of the values so far chose it as the most promising configuration."

WITHOUT_THE_MODEL: Mapping[type, str] = {
    Scouted: "The model failed, so it is a random configuration.",
    AheadOfHalf: "The model failed; by its values so far, it was the next to continue.",
}
"""The reasons of `Scouted` and `AheadOfHalf` without a probability."""

MODELLESS = {
    "random": "It was drawn at random.",
    "sobol": "It is the next point of a Sobol sequence, which fills the space evenly.",
    "grid": "It is the next point of the grid.",
    "median": "It was drawn at random.",
}
"""Reasons of methods without a model."""

SCORES = {
    "log-ei": "the logarithm of the expected improvement in the model's units",
    "ei": "the expected improvement in the model's units",
    "pi": "the logarithm of the probability of improvement",
    "ucb": "the optimistic bound in the model's units",
    "task-prior": "the logarithm of the expected improvement with what past studies add to it",
    "freeze-thaw": "the number of standard deviations by which its prediction exceeds the target",
}
"""Descriptions of scores, by acquisition; freeze-thaw has its own."""

ACQUISITIONS = {"task-prior": "task-prior", "freeze-thaw": "freeze-thaw"}
"""The acquisition of a method whose settings do not name one."""

EXPERTS = {
    "model": "the model of the whole space",
    "region": "the model of the best region",
    "density": "the density of good trials",
    "bound": "the optimistic bound",
}
"""Names of the experts that take turns (`scrimp.suggesters.experts`)."""

OF_CURVES = ("mobster", "sync-mobster", "hypertune", "dyhpo")
"""First letters of the methods that model the loss alone; violated constraints count as its worst
values."""


def score_words(
    record: DecisionRecord,
    method: JsonObject,
    problem: Problem,
    failures: int = 0,
    infeasible: bool = False,
) -> str:
    """Describe the score of a decision; empty if decisions of one study use different scores.

    After ``failures`` a Gaussian process multiplies its score by the probability of success, as by
    that of feasibility, and the product is a logarithm. While all trials are ``infeasible``, only
    these probabilities count.
    """
    settings = method.get("settings")
    given = settings if isinstance(settings, Mapping) else {}
    own = chosen_settings(Method(str(method["name"]), **given)).get("acquisition")
    name = str(own or ACQUISITIONS.get(str(method["name"]), ""))
    if not name:
        return ""
    alone = record.sources is not None and len(record.sources.weights) == 1  # this study
    if isinstance(record.grant, WholeTraining) or (alone and name == "task-prior"):
        name = "log-ei"
    if name == "freeze-thaw":
        return _curve_score_words(record, problem, infeasible)
    score, reason = SCORES.get(name, f"the acquisition {name!r}"), record.reason
    if isinstance(reason, Modelled) and reason.each is not None:
        score = "the logarithm of its expected addition to the front"
    elif isinstance(reason, Modelled) and reason.weights is not None:
        # Scores of other acquisitions may be logarithms here.
        score = f"{score}, " if name == "log-ei" else ""
        score += "for one trade-off of the metrics"
    if str(method["name"]).startswith(OF_CURVES):
        return score
    cost = problem.cost is not None or given.get("cost_function") is not None
    if infeasible and name != "thompson":
        score = "the logarithm of the probability that all constraints are satisfied"
    weights = ["the constraints"] * (bool(problem.constraints) and not infeasible)
    weights += ["the cost"] * cost
    if failures and name != "thompson":
        weights.insert(0, "the probability that it does not fail")
    guessed = any(parameter.prior is not None for parameter in problem.space.values())
    if guessed and name != "thompson" and str(method["name"]) != "task-prior":
        weights.append("the guesses of the user")
    weighed = f", weighted by {' and '.join(weights)}" if weights else ""
    if weighed and name in ("ei", "pi", "ucb") and not infeasible:
        score = score.removeprefix("the logarithm of ")
        weighed += ", as a logarithm"
    return score + weighed


def _curve_score_words(record: DecisionRecord, problem: Problem, infeasible: bool) -> str:
    """Describe the score of freeze-thaw, which has its own."""
    asked = _question(record)
    if isinstance(asked, Gain):
        gain = "improvement" if asked.best is not None else "progress towards feasibility"
        return f"the logarithm of the expected {gain}" + _per_unit(asked, problem)
    if isinstance(asked, Race) and infeasible:
        return "the logarithm of the expected progress towards feasibility in the model's units"
    if problem.several:
        return "the logarithm of its expected addition to the front, as a share of the hypervolume"
    return SCORES["log-ei" if isinstance(asked, Race) else "freeze-thaw"]


def _per_unit(question: Gain, problem: Problem) -> str:
    """Describe the unit that a gain is divided by; empty without one."""
    if not question.per_unit or problem.budget is None:
        return ""
    if question.per_cost and problem.cost is not None:
        return f" per unit of {problem.cost}"
    return " per second of training" if question.per_cost else f" per {problem.budget.name}"


def _question(record: DecisionRecord) -> Race | Horizon | Gain | Growth | None:
    """Return the criterion of a learning-curve method, if one decided."""
    return record.reason.question if isinstance(record.reason, Modelled) else None


def by_chance(record: DecisionRecord) -> bool:
    """Return True if the score is a number of deviations, and so a probability."""
    question = _question(record)
    return isinstance(question, Horizon) and question.threshold is not None


def why(
    record: DecisionRecord,
    problem: Problem,
    method: str,
    new: bool,
    budget: float,
    front: Sequence[tuple[Losses, int, float]] = (),
) -> str:
    """Return the reason for a decision, as a sentence; ``front``: the best reports so far."""
    amount = "the whole training" if problem.budget is None else problem.budget.amount(budget)
    reason = record.reason
    if isinstance(record.grant, WholeTraining):
        chosen = "Of the trials that waited, it was expected to end best."
        if new:
            rest = msgspec.structs.replace(record, grant=None)
            chosen = why(rest, problem, method, new, budget, front)
        return f"{whole_training_words(record)}. {chosen}"
    if isinstance(reason, Modelled) and reason.question is not None:
        return _asked(reason, problem, front)
    if isinstance(reason, Scouted | AheadOfHalf) and reason.probability is None:
        return WITHOUT_THE_MODEL[type(reason)]
    if new and isinstance(reason, FromDensity):
        return "It was drawn from a density of the good trials."
    if isinstance(reason, Told) and reason.what == "confirmation":
        return "It repeats a configuration to confirm a verdict (is the best better than noise?)."
    if isinstance(reason, FirstDesign) and reason.guessed:
        return "It is the user's guess, which is tried before anything is learned from results."
    if isinstance(reason, FirstDesign) and reason.centre:
        return "It begins the first design, at the defaults or the middle of each range."
    if isinstance(reason, FirstDesign) and reason.step:
        return "It belongs to the first design: a random step from the best trial so far."
    for said in (reason, record.grant):
        whole = budget >= problem.full_budget
        words = WORDS.get(type(said), "") or _particular(said, amount, new, whole)
        if words:
            return words
    if isinstance(reason, Modelled):
        if reason.elsewhere:
            return ELSEWHERE
        return EXPLORING if reason.exploring else IN_REGION if reason.region else BY_MODEL
    chose = f"The method chose it and gave it {amount}."
    return MODELLESS.get(method, chose) if new else f"The method continued it to {amount}."


def whole_training_words(record: DecisionRecord) -> str:
    """Describe how little was foretold where a whole training was granted; empty otherwise."""
    if not isinstance(record.grant, WholeTraining):
        return ""
    return (
        f"The values of the first levels explain {share_words(record.grant.foretold)} of the differences"
        " between the ends of runs, so it was trained to its end"
    )


def _asked(reason: Modelled, problem: Problem, front: Sequence[tuple[Losses, int, float]]) -> str:
    """Return the reason of a learning-curve method. Where values scatter, its model does not learn
    from the best value so far."""
    if isinstance(reason.question, Race):
        infeasible = bool(problem.constraints) and not front
        aim = "addition to the front" if problem.several else "improvement on the best value"
        aim = "progress towards feasibility" if infeasible else aim
        return (
            "Early in the study, training goes to the trial with the largest expected"
            f" {aim} at its next level: this one."
        )
    by = step_words(reason, problem)
    if isinstance(reason.question, Growth):
        return f"It had the largest expected addition to the front{by}."
    if isinstance(reason.question, Gain):
        unit, best = _per_unit(reason.question, problem), reason.question.best
        if best is None:
            return f"It had the highest expected progress towards feasibility{unit}{by}."
        known = (
            "so far"
            if not front or _at_best(best, front[0][0][0])
            else "that the model learns from"
        )
        beaten = f"the best {problem.metric} {known} ({problem.sign * best:.4g})"
        return f"It had the highest expected improvement{unit} over {beaten}{by}."
    if reason.question is None or reason.question.threshold is None:
        return f"It was the most likely to come close to feasible{by}."
    return f"It was the most likely to beat the best {problem.metric} so far{by}."


def step_words(reason: Modelled, problem: Problem) -> str:
    """Describe the step of the model's prediction, counted from the start of the trial."""
    told = reason.expected or next(iter((reason.each or {}).values()), None)
    step = None if told is None else told.step
    return "" if problem.budget is None or step is None else f" by {problem.budget.name} {step:g}"


def _particular(said: Reason | Grant | None, amount: str, new: bool, whole: bool) -> str:
    """Return a reason that has values of this decision; empty for others. ``whole``: the trial may
    train to the end."""
    match said:
        case Promoted(level):
            return f"Its value was within the cutoff at {level:g}, so it was promoted to {amount}."
        case InBracket(bracket, None):
            where = f" in bracket {bracket}" if bracket else ""
            if whole:
                # Where trials are stopped, nothing waits for a promotion.
                return f"A worker was free, so a new trial started{where} with {amount}."
            return (
                "A worker was free and no trial could be promoted, so a new one started"
                f"{where} with {amount}."
            )
        case InBracket(bracket, level) if new:
            return (
                f"Level {level:g} of bracket {bracket} had a free place, so a new trial started"
                f" with {amount}."
            )
        case InBracket(bracket):
            return (
                f"It was among the best of its rung in bracket {bracket}: it continued to {amount}."
            )
        case BestCell(rule="random"):
            return "It was drawn at random."
        case BestCell(rule, value, opens):
            among = "among the tasks without a score" if opens else f"per unit of cost by {rule}"
            log = "" if value is None else f" (its logarithm is {value:.4g})"
            return f"It is the most valuable cell {among}{log}."
        case AskedInRound(round=number, alive=alive, checkpoints=checkpoints):
            return (
                f"Round {number}: the {alive} checkpoints still in the race, of {checkpoints}, answer"
                " the same questions."
            )
        case FromAdvice():
            return _advice(said)
        case Said(text) if text:
            return f"{text[0].upper()}{text[1:]}."
    return ""


def _advice(reason: FromAdvice) -> str:
    """Return the reason of a proposal: whose idea it was, and what supported it."""
    said = f', with the reason "{reason.said}"' if reason.said else ""
    record = "It was this adviser's first trial."
    if reason.tried:
        record = (
            f"So far {reason.progress} of this adviser's {counted(reason.tried, 'trial')} brought"
            f" progress, and {reason.own_progress} of the study's own {reason.own_tried}."
        )
    chance = ""
    if reason.chance is not None:
        shown = share_words(reason.chance)
        chance = f" The model gave it a {shown} chance of beating the best value."
    return f"{reason.by} proposed it{said}. {record}{chance}"


def belief_lines(
    record: DecisionRecord, problem: Problem, trial: Trial, best: float | None = None
) -> list[str]:
    """Compare the prediction of the model with the result.

    Models of curves predict no loss below the lowest one they have seen, mostly the ``best`` so far:
    a band that ends there means that value or better.
    """
    reason = record.reason
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
        line = f"{problem.metric} {value:.4g}{after} (95% interval: {floor} to {worst:.4g})"
        if expected.loss <= good + ROUNDING_TOLERANCE * abs(good):
            said = f"a new best {problem.metric}" if new else f"{problem.metric} {floor}"
            line = f"{said}{after} (95% interval: up to {worst:.4g})"
        return [f"The model predicted {line}."]
    band = interval_words(*sorted((problem.sign * good, worst)))
    lines = [f"The model predicted {problem.metric} {value:.4g}{after} ({band})."]
    if problem.budget is None and trial.loss is not None:
        outside = "better" if trial.loss < good else "worse"
        place = f"{outside} than predicted (noise not counted)"
        if good <= trial.loss <= bad:
            place = "inside the interval"
        lines.append(f"The result was {problem.sign * trial.loss:.4g}, {place}.")
    return lines


def interval_words(low: float, high: float) -> str:
    """Return an interval of two standard deviations of the noise-free value to both sides.

    >>> interval_words(-3.652, 10.91)
    '95% interval -3.652 to 10.91, noise excluded'
    """
    return f"95% interval {low:.4g} to {high:.4g}, noise excluded"


ROUNDING_TOLERANCE = 6e-6
"""Relative rounding error of recorded numbers: six digits leave up to 5e-6."""


def _at_best(loss: float, best: float | None) -> bool:
    """Return True if a recorded loss is at least as good as the best one."""
    return best is not None and loss <= best + ROUNDING_TOLERANCE * abs(best)


def _is_floor(good: float, reason: Modelled, best: float | None) -> bool:
    """Return True if the good end of a band is the lowest loss that the model knows: the best, its
    own prediction, or where the bands of others end too."""
    others = (rival.expected.low for rival in reason.rivals or () if rival.expected is not None)
    assert reason.expected is not None
    known = [reason.expected.loss, *(low for low in others if low is not None)]
    return _at_best(good, best) or any(
        abs(low - good) <= ROUNDING_TOLERANCE * abs(good) for low in known
    )


def _own_fit(record: DecisionRecord) -> Fit | None:
    """Return the recorded fit; None if it is not of the model that chose: that of a region, of one
    trade-off, or of past studies."""
    reason = record.reason
    part = isinstance(reason, Modelled) and (reason.region or reason.weights is not None)
    past = record.sources is not None and bool(record.sources.weights)
    return None if part or past else next(iter((record.fit or {}).values()), None)


def model_lines(record: DecisionRecord, problem: Problem) -> list[str]:
    """Describe the fit, and along which parameters the metric changes fast and slowly."""
    fit = _own_fit(record)
    if fit is None:
        return []
    lines = [f"The model was fitted for this decision, to {counted(fit.n, 'observation')}."]
    order = _fastest_first(fit.length_scales, problem)
    if len(order) > 1:
        lines.append(
            f"By the model, {problem.metric} changes fastest along {order[0]}, slowest along"
            f" {order[-1]}."
        )
    return lines


def depends_words(record: DecisionRecord, problem: Problem) -> str:
    """Say along which two parameters the metric changes fastest; empty if unknown."""
    fit = _own_fit(record)
    scales: Sequence[float | None] = () if fit is None else fit.length_scales
    theta = () if record.curves is None else record.curves.fits[0].theta
    if len(theta) == len(problem.space.searched) + SHARED_PARAMETERS:
        # The logarithms of the length-scales come first.
        scales = theta[: len(problem.space.searched)]
    order = _fastest_first(scales, problem)
    if len(order) < 2:
        return ""
    return f"By the model, {problem.metric} changes fastest along {order[0]}, then {order[1]}"


def _fastest_first(scales: Sequence[float | None], problem: Problem) -> list[str]:
    """Return the parameters with a recorded length-scale, the shortest first."""
    names = problem.space.searched
    if len(scales) != len(names):
        return []
    pairs = [(scale, name) for scale, name in zip(scales, names, strict=True) if scale is not None]
    return [name for _, name in sorted(pairs, key=itemgetter(0))]


def competitors_of(record: DecisionRecord, trial: Trial) -> list[Competitor]:
    """Return the other candidates, best first, each once, without the chosen one."""
    rivals = record.reason.rivals if isinstance(record.reason, Modelled) else None
    found: dict[str, float | None] = {}
    for rival in rivals or ():
        new = rival.trial is None
        text = config_words(rival.config or {}) if new else f"trial {rival.trial}"
        if rival.trial != trial.id and not nearly_equal(rival.config or {}, trial.config):
            found.setdefault(text, rival.score)
    return [{"text": text, "score": score} for text, score in found.items()]


def score_lines(record: DecisionRecord, words: str, trial: Trial) -> list[str]:
    """Return the score of the decision with its description, and the runner-up."""
    reason = record.reason
    if not isinstance(reason, Modelled) or reason.score is None:
        return []
    what = f" ({words})" if words and not reason.exploring else ""
    odds = by_chance(record)
    lines = [f"It had the highest score: {reason.score:.4g}{what}."]
    if odds:
        lines = [f"It had the highest chance: {chance(reason.score)}."]
    if (sides := reason.sides) is not None:
        none_paused = (
            "No paused trial competed: what halving would train was used up or kept for new trials."
            if sides.spent
            else "There was no paused trial to choose from."
        )
        no_new, best = "There was no new configuration to choose from.", "The best of the"
        return [
            *lines,
            none_paused
            if sides.paused is None
            else f"{best} paused trials had {sides.paused:.4g}.",
            no_new if sides.new is None else f"{best} new configurations had {sides.new:.4g}.",
        ]
    ranked = competitors_of(record, trial)
    if ranked:
        score, rated = ranked[0]["score"], ""
        if score is not None:
            rated = f", with {chance(score) if odds else f'{score:.4g}'}"
        more = f"; {counted(len(ranked) - 1, 'more')} recorded" if len(ranked) > 1 else ""
        lines.append(f"Runner-up: {ranked[0]['text']}{rated}{more}.")
    elif reason.rivals is not None:
        lines.append(
            "There was no runner-up: every search for a better score ended at this configuration."
        )
    return lines


def other_lines(record: DecisionRecord, problem: Problem) -> list[str]:
    """Return sentences on densities and on the weights of past studies."""
    lines = []
    match record.reason:
        case FromDensity(level, trials):
            among = f"{counted(trials, 'trial')} compared at budget {level:g}"
            if problem.budget is None:
                among = counted(trials, "finished trial")
            lines.append(
                "Of the candidates, its density of good trials was highest relative to that of the"
                f" others, among {among}."
            )
        case FirstDesign(int() as needed):
            lines.append(f"The method needs {needed} comparable trials before it learns from them.")
    if record.experts:
        ranked = sorted(record.experts.items(), key=lambda item: -item[1])
        shares = ", ".join(f"{EXPERTS.get(name, name)} {share:.0%}" for name, share in ranked)
        elsewhere = isinstance(record.reason, Modelled) and record.reason.elsewhere
        decides = "would have decided" if elsewhere else "decides"
        lines.append(
            f"Expected share of turns that bring progress (the highest {decides}): {shares}."
        )
    if record.sources is None:
        return lines
    listed = sorted(record.sources.weights.items(), key=lambda item: -item[1])
    shown = [f"{name} {share_words(weight)}" for name, weight in listed if weight >= 0.005][:5]
    if shown:
        lines.append(f"Weights of studies: {', '.join(shown)}.")
    return lines + _past_lines(record.sources)


def _past_lines(sources: Sources) -> list[str]:
    """Return sentences on past studies that could not be used, or only in part."""
    lines = [f"{line[:1].upper()}{line[1:]}." for line in sources.left_out]
    unlearnable = [repr(name) for name in sources.unlearnable]
    if unlearnable:
        more = f" and {len(unlearnable) - 5} more" if len(unlearnable) > 5 else ""
        lines.append(
            f"The values of past studies {', '.join(unlearnable[:5])}{more} cannot be predicted"
            " from their configurations (too few trials or too much noise), so they do not count."
        )
    return lines


def chance(score: float) -> str:
    """Return Phi(score), the probability of exceeding a target ``score`` deviations away.

    >>> chance(0.0), chance(0.1502), chance(-4.0)
    ('50%', '56%', 'under 1%')
    """
    share = 0.5 * math.erfc(-score / math.sqrt(2.0))
    return "under 1%" if share < 0.01 else "over 99%" if share > 0.99 else f"{share:.0%}"


def share_words(weight: float) -> str:
    """Format a weight in percent, as all or nothing only if it is.

    >>> share_words(0.9987), share_words(1.0), share_words(0.002)
    ('over 99%', '100%', 'below 1%')
    """
    if 0.995 <= weight < 1.0 - 1e-9:
        return "over 99%"
    return "below 1%" if 0.0 < weight < 0.005 else f"{weight:.0%}"


def counted(count: float, noun: str) -> str:
    """Format a count with its noun.

    >>> counted(1, "trial"), counted(2, "trial"), counted(2, "more")
    ('1 trial', '2 trials', '2 more')
    """
    return f"{count:g} {noun}{'' if count == 1 or noun == 'more' else 's'}"
