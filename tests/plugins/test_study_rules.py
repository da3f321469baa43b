"""Rules that say in which studies a setting has an effect."""

from typing import Any

import pytest

from scrimp.plugins import study_rules
from scrimp.plugins.study_rules import (
    MAX_METRICS_BY_GROWTH,
    StudyFacts,
    StudyRule,
    draws_trade_off,
    of_one_loss,
)

GROWING = {"acquisition": "log-ei", "trade_off": "hypervolume"}
TWO = StudyFacts(metrics=2)


@pytest.mark.parametrize(
    ("study", "changes", "drawn"),
    [
        (StudyFacts(), {"trade_off": "chebyshev"}, False),
        (TWO, {}, False),
        (TWO, {"trade_off": "chebyshev"}, True),
        (TWO, {"acquisition": "ei"}, True),
        (StudyFacts(metrics=MAX_METRICS_BY_GROWTH), {}, False),
        (StudyFacts(metrics=MAX_METRICS_BY_GROWTH + 1), {}, True),
    ],
)
def test_one_trade_off_is_drawn_where_no_front_can_grow(
    study: StudyFacts, changes: dict[str, Any], drawn: bool
) -> None:
    assert draws_trade_off(study, {**GROWING, **changes}) is drawn
    assert of_one_loss(study, {**GROWING, **changes}) is (drawn or study.metrics == 1)


def test_methods_without_trade_offs_draw_none() -> None:
    assert not draws_trade_off(StudyFacts(metrics=9), {"acquisition": "log-ei"})
    assert not of_one_loss(TWO, {})


def test_every_rule_says_what_is_lacking_in_a_study_that_breaks_it() -> None:
    """As part of a sentence, so that it can be read in a warning."""
    found = [value for value in vars(study_rules).values() if isinstance(value, StudyRule)]
    found += study_rules.WITH_FRONT
    assert len(found) >= 10
    settings = {**GROWING, "acquisition": "thompson", "margin": 0.1, "patience": 3}
    settings["combine"] = "portfolio"
    odd = StudyFacts(metrics=1, noisy=True, parameters=1, numbers=False)
    listed = StudyFacts(metrics=2, noisy=True, past=True, listed=True)
    for rule in found:
        growing = {**settings, "acquisition": "log-ei"}
        broken = [
            not rule.holds(odd, settings),
            not rule.holds(listed, settings),
            not rule.holds(TWO, growing),
        ]
        assert any(broken), rule
        assert rule.lacking[0].islower() and not rule.lacking.endswith(".")
