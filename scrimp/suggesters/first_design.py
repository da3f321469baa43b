"""The configurations a model-based method begins with: the user's guess, then an even spread."""

import numpy as np

from scrimp.errors import ConfigError, MethodError
from scrimp.history.events import Config
from scrimp.history.history import History
from scrimp.history.notes import Notes
from scrimp.space.space import Pool, Space
from scrimp.suggesters.known_configs import KNOWN
from scrimp.suggesters.quasi_random import QuasiRandomSuggester
from scrimp.suggesters.random import draw_fresh
from scrimp.suggesters.suggester import Request, Suggestion

__all__ = ["DESIGNS", "check_design", "first_configs", "guess", "spread_instead"]

DESIGNS = ("sobol", "random")


def check_design(design: str) -> None:
    """Refuse a first design that does not exist."""
    if design not in DESIGNS:
        raise MethodError(f"design is {design!r}; it must be one of {', '.join(DESIGNS)}")


def guess(history: History) -> Config | None:
    """What the user believes to be good: the priors of the parameters, completed; None when no
    parameter has one."""
    space = history.problem.space
    believed = {
        name: parameter.prior[0] for name, parameter in space.items() if parameter.prior is not None
    }
    if not believed:
        return None
    if isinstance(space, Pool):
        return min(space.configs, key=lambda config: _distance(space, config, believed))
    rng = np.random.default_rng(history.problem.seed)
    try:
        return space.complete(believed, rng)  # draws parents under which all of them exist
    except ConfigError:
        kept = {
            name: value
            for name, value in believed.items()
            if name in space.active(space.defaults | believed)
        }
        return space.complete(kept, rng)


def _distance(space: Space, config: Config, believed: Config) -> float:
    """How far a configuration is from the guess; a parameter that it does not have counts as far as
    can be."""
    gaps = [
        abs(space[name].to_unit(config[name]) - space[name].to_unit(value))
        if name in config
        else 1.0
        for name, value in believed.items()
    ]
    return float(sum(gaps))


def first_configs(
    history: History, lacking: int, count: int, rng: np.random.Generator, design: str = "sobol"
) -> list[Config]:
    """At most ``count`` of the ``lacking`` first configurations, none of them known already: the
    study's ``sobol`` sequence, or ``random`` draws."""
    wanted = min(lacking, count)
    if wanted <= 0:
        return []
    configs: list[Config] = []
    believed = guess(history)
    if believed is not None and believed not in history.derive(KNOWN):
        configs.append(believed)
    if design == "random":
        return configs + draw_fresh(history.derive(KNOWN), wanted - len(configs), rng, configs)
    if len(configs) < wanted:
        spread = QuasiRandomSuggester().suggest(history, Request(1.0), wanted - len(configs), rng)
        configs += spread.configs
    return configs


def spread_instead(
    history: History, count: int, rng: np.random.Generator, error: Exception
) -> Suggestion:
    """What a method suggests whose model failed. Never silently random: the note makes it a
    degraded decision that everybody sees."""
    spread = first_configs(history, count, count, rng)
    return Suggestion(
        tuple(spread), Notes(degraded=f"the model failed ({error}); quasi-random instead")
    )
