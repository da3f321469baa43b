"""Studies in which a setting has an effect: rules that stand beside its field.

    cost_exponent: float = setting(1.0, at_least(0), only_with=WITH_COST)

A rule looks at the facts of a study and at the values of all settings of the method. In any other
study the user is warned when it is created (`scrimp.plugins.settings.idle_in_study`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_METRICS_BY_GROWTH = 6
"""Metrics up to which the growth of their front is computed. Beyond it a front leaves thousands of
boxes open, and nearly every trial is on it: weights are drawn instead. Convention."""


@dataclass(frozen=True)
class StudyFacts:
    """The facts of a study that settings may need.

    ``metrics``: their number. ``cost``, ``past``: it has a cost, past studies. ``listed``: its space
    is a list of configurations. ``parameters`` that are searched, and whether one of them has
    ``numbers``, not only categories.
    """

    metrics: int = 1
    noisy: bool = False
    cost: bool = False
    past: bool = False
    listed: bool = False
    parameters: int = 2
    numbers: bool = True


Values = Mapping[str, object]
"""The values of all settings of a method by name."""


@dataclass(frozen=True)
class StudyRule:
    """Studies in which a setting has an effect: those for which ``holds``. For any other, ``lacking``
    completes "setting 'x' has no effect: ...", and ``remedy`` says what else can be done about it."""

    lacking: str
    holds: Callable[[StudyFacts, Values], bool]
    remedy: str = ""


def draws_trade_off(study: StudyFacts, values: Values) -> bool:
    """Return True if a gp method draws one trade-off of all metrics for each decision."""
    if study.metrics == 1 or "trade_off" not in values:
        return False
    return values["trade_off"] == "chebyshev" or not may_grow_front(study, values)


def may_grow_front(study: StudyFacts, values: Values) -> bool:
    """Return True if a gp method can choose by the growth of a front."""
    return values["acquisition"] == "log-ei" and study.metrics <= MAX_METRICS_BY_GROWTH


def of_one_loss(study: StudyFacts, values: Values) -> bool:
    """Return True if decisions are about one loss: one metric, or one trade-off of several."""
    return study.metrics == 1 or draws_trade_off(study, values)


BY_GROWTH = "with several metrics the expected growth of the front decides"

WITH_COST = StudyRule(
    "the study has no cost",
    lambda study, values: study.cost or values.get("cost_function") is not None,
    "give cost='seconds' or the name of a reported metric",
)
WITH_PAST = StudyRule(
    "the study has no past studies", lambda study, _: study.past, "name some with learn_from="
)
WITH_FRONT = (
    StudyRule(
        "the study has one metric",
        lambda study, _: study.metrics > 1,
        "give several as metrics={'val_error': 'minimize', ...}",
    ),
    StudyRule(
        f"with another acquisition than log-ei, or more than {MAX_METRICS_BY_GROWTH} metrics, one"
        " trade-off is drawn for each decision",
        lambda study, values: may_grow_front(study, values) or values["trade_off"] == "chebyshev",
    ),
)
WITH_ONE_METRIC = StudyRule(BY_GROWTH, lambda study, _: study.metrics == 1)
WITH_INCUMBENT = StudyRule(
    "a draw of Thompson sampling is compared with the best so far only where costs count",
    lambda study, values: study.cost or values["acquisition"] != "thompson",
)
OVER_INCUMBENT = StudyRule(
    BY_GROWTH, lambda study, values: of_one_loss(study, values) or values["margin"] == 0
)
WITHOUT_NOISE = StudyRule(
    "with noisy=True or several metrics the model alone decides",
    lambda study, values: (study.metrics == 1 and not study.noisy) or values["patience"] == 0,
)
WITHOUT_LIST = StudyRule("the space is a list of configurations", lambda study, _: not study.listed)
WITH_LIST = StudyRule(
    "it is the number of rows of a list that are scored, and the space is no list",
    lambda study, _: study.listed,
)
WITHOUT_PORTFOLIO = StudyRule(
    "the portfolio alone decides while past studies have a configuration left",
    lambda study, values: values.get("combine") != "portfolio" or not study.past,
)
WITH_NUMBERS = StudyRule("all parameters are categories", lambda study, _: study.numbers)
WITH_TWO_PARAMETERS = StudyRule(
    "the space has one parameter", lambda study, _: study.parameters > 1
)
