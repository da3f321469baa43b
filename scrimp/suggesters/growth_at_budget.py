"""What a configuration is expected to add to the front of several metrics at one budget.

    bound = growth_at(trade_off, curves.models, share, Context(curves.configs))
    bound(x)                                             # log EHVI (m,)

Every multi-fidelity method that scores rung by rung takes it in place of expected improvement
where a study has several metrics.
"""

from collections.abc import Mapping

from scrimp.acquisition.context import Context
from scrimp.acquisition.hypervolume_improvement import BoundHypervolume, LogHypervolumeImprovement
from scrimp.errors import MethodError
from scrimp.history.problem import Problem
from scrimp.history.trade_off import TradeOff
from scrimp.surrogates.at_budget import AtBudget
from scrimp.surrogates.surrogate import FittedSurrogate

__all__ = ["check_of_one_metric", "growth_at"]


def growth_at(
    trade_off: TradeOff, models: Mapping[str, FittedSurrogate], share: float, context: Context
) -> BoundHypervolume:
    """Log EHVI over models of (x, share) of all metrics, at one ``share`` of the full budget."""
    views = {name: AtBudget(model, share) for name, model in models.items()}
    goals = trade_off.best_losses if trade_off.goals else None
    growth = LogHypervolumeImprovement(
        tuple(views), trade_off.reference_losses, goals, trade_off.beyond
    )
    return growth.bind(views, context)


def check_of_one_metric(problem: Problem, **settings: tuple[str, str]) -> None:
    """Refuse settings that are of one metric, (given, usual) each, where there are several."""
    for name, (given, usual) in settings.items():
        if problem.trade_off is not None and given != usual:
            raise MethodError(
                f"{name} is {given!r}, which is of one metric; with several, the expected growth"
                f" of the front decides: leave {name} out"
            )
