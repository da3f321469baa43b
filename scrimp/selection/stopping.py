"""When a selection has seen enough: its budget is spent, or what is left to gain is not worth the
cost of finding it.

    rule = StopRule(share=0.1, loss=0.001)
    # a sentence, or None
    stop_reason(rule, table, check=LossCheck(cells=120, loss=0.0004), earlier=[LossCheck(105, 0.0005)])

The loss is the expected loss of the recommendation. Small ones are stated too small on real tables
(chosen cells flatter the model that chose them), so twice the loss must lie below the threshold, at
two checks with a tenth more cells between them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scrimp.errors import MethodError
from scrimp.history.notes import LossCheck
from scrimp.selection.score_table import ScoreTable

__all__ = ["CHECKS_APART", "CellStopRule", "stop_reason"]

_CAUTION = 2.0
CHECKS_APART = 1.1


@dataclass(frozen=True)
class CellStopRule:
    """``share`` of all cells, ``budget`` in units of cost, ``loss`` in units of the score,
    ``loss_per_cost`` of what remains.

    The first that holds ends the selection; without any it ends when every cell has been measured.
    """

    share: float | None = None
    budget: float | None = None
    loss: float | None = None
    loss_per_cost: float | None = None

    def __post_init__(self) -> None:
        for name in ("share", "budget", "loss", "loss_per_cost"):
            value = getattr(self, name)
            if value is not None and not value > 0.0:
                raise MethodError(
                    f"{name}={value} never ends a selection sensibly; it must be above zero"
                )
        if self.share is not None and self.share > 1.0:
            raise MethodError(
                f"share={self.share} is more than all cells; give a share between 0 and 1"
            )


def stop_reason(
    rule: CellStopRule,
    table: ScoreTable,
    check: LossCheck | None,
    earlier: Sequence[LossCheck] = (),
) -> str | None:
    """Why to stop now, or None. ``check`` is the present one, None where the method states no
    loss."""
    tried = int((table.seen | table.failed).sum())
    if tried == table.scores.size:
        return "every cell has been measured"
    if rule.share is not None and tried >= rule.share * table.scores.size:
        return f"{tried} of {table.scores.size} cells have been measured, the share {rule.share:g}"
    if rule.budget is not None and table.spent >= rule.budget:
        return f"{table.spent:g} of the budget {rule.budget:g} are spent"
    if check is None:
        return None
    total = float(table.costs.sum()) * table.shape[0]
    remaining = (total if rule.budget is None else min(rule.budget, total)) - table.spent
    limits = [rule.loss] if rule.loss is not None else []
    if rule.loss_per_cost is not None:
        limits.append(rule.loss_per_cost * remaining)
    for limit in limits:
        before = [past for past in earlier if past.cells * CHECKS_APART <= check.cells]
        if _CAUTION * check.loss < limit and before and _CAUTION * before[-1].loss < limit:
            return f"the expected loss {check.loss:.2g} is small at two checks, against {limit:.2g}"
    return None
