"""The place of advice in decisions: a proposal instead of a configuration of the method.

When the method starts a new configuration, a proposal takes its place if

- an adviser is heard, by its record (`scrimp.study_log.advice`);
- advisers then have at most `MAX_SHARE_ADVISED` of all trials;
- the model of the method, if it has one, gives it a chance of at least `MIN_CHANCE` to beat the best
  result with all constraints met; with several metrics there is no such number.

The adviser with the fewest misses goes first, then the one with the fewest trials, so that each gets its
turn; its newest advice before older, in the order in which it was given: the adviser's own preference.
(Where the model chose among proposals by expected improvement, it chose the odd ones.) The budget and
the rest of the decision stay those of the method, and its model learns from the result like from any
other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from scrimp.errors import ConfigError, ScrimpError
from scrimp.json_values import Config
from scrimp.methods.policy import Decision, Policy, Start
from scrimp.study_log.advice import ADVICE, MAX_SHARE_ADVISED, AdviserRecord, adviser_records
from scrimp.study_log.decision_record import FromAdvice
from scrimp.study_log.history import History
from scrimp.suggesters.suggester import ForecastPoints
from scrimp.suggesters.untried_configs import KNOWN

MIN_CHANCE = 0.01
"""Probability of beating the best result below which a proposal is not tried; convention."""

QUANTILES = np.array([NormalDist().inv_cdf((i + 0.5) / 1000) for i in range(1000)])
"""Quantiles of a normal distribution, with which chances are computed."""


@dataclass(frozen=True)
class Candidate:
    """A proposal that may be tried, with its number and the record of its adviser."""

    number: int
    config: Config
    why: str
    adviser: AdviserRecord


def with_advice(policy: Policy, history: History, decision: Decision) -> Decision:
    """Return ``decision``, or with a proposal in place of its new configuration."""
    start, advice = decision.action, history.derive(ADVICE)
    if not advice.open or not isinstance(start, Start):
        return decision
    room = MAX_SHARE_ADVISED * (len(history.trials) + 1)
    if start.continue_from is not None or len(advice.tried) + 1 > room:
        return decision
    chosen, chance = _first_promising(policy, history, candidates(history))
    if chosen is None:
        return decision
    adviser = chosen.adviser
    reason = FromAdvice(
        by=adviser.by,
        proposal=chosen.number,
        said=chosen.why,
        tried=adviser.tried,
        progress=adviser.progress,
        own_tried=adviser.own_tried,
        own_progress=adviser.own_progress,
        chance=chance,
    )
    record = structs.replace(decision.record, reason=reason)
    return Decision(replace(start, config=chosen.config), record)


def candidates(history: History) -> list[Candidate]:
    """Return the open proposals of advisers that are heard, the first to try first, without those
    that were tried already or do not fit the space."""
    advisers = {record.by: record for record in adviser_records(history) if record.heard}
    known, space, found = history.derive(KNOWN), history.problem.space, []
    for number, proposal in history.derive(ADVICE).open.items():
        if proposal.by not in advisers:
            continue
        try:
            config = space.validate(proposal.config)
        except (ConfigError, TypeError):
            continue
        if config not in known or history.problem.noisy:
            adviser = advisers[proposal.by]
            order = adviser.misses, adviser.tried, -proposal.call, number
            found.append((order, Candidate(number, config, proposal.why, adviser)))
    return [candidate for _, candidate in sorted(found, key=lambda pair: pair[0])]


def _first_promising(
    policy: Policy, history: History, found: Sequence[Candidate]
) -> tuple[Candidate | None, float | None]:
    """Return the first candidate that the model does not rule out, with its chance."""
    if not found:
        return None, None
    chances = chances_to_beat_best(policy, history, [one.config for one in found])
    if chances is None:
        return found[0], None
    for candidate, chance in zip(found, chances.tolist(), strict=True):
        if chance >= MIN_CHANCE:
            return candidate, chance
    return None, None


def chances_to_beat_best(
    policy: Policy, history: History, configs: Sequence[Config]
) -> NDArray[np.float64] | None:
    """Return the probability (k,) that the noise-free loss of each configuration is below the best
    and all constraints are met; None without a model, or where the model fails."""
    problem, best = history.problem, history.best
    if best is None or best[1].loss is None:
        return None
    points = ForecastPoints(configs, np.full(len(configs), problem.full_budget))
    try:
        columns = policy.forecast(history, points, history.rng("advice"))
    except (ScrimpError, np.linalg.LinAlgError):
        return None
    chances = np.ones(len(configs))
    for column in columns:
        # The loss need not be normal in units of the metric.
        spread = np.sqrt(column.variance)[:, None] * QUANTILES
        values = column.natural(column.mean[:, None] + spread)
        if column.name == problem.metric:
            chances *= (problem.sign * values < best[1].loss).mean(axis=1)
        elif column.name in problem.constraints:
            rule = problem.constraints[column.name]
            low, high = rule.band
            # Deviations are linear in the metric.
            deviations = rule.deviation(0.0) + (rule.deviation(1.0) - rule.deviation(0.0)) * values
            chances *= ((low <= deviations) & (deviations <= high)).mean(axis=1)
    return chances if any(column.name == problem.metric for column in columns) else None
