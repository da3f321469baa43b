"""The model and the new configurations of a history, as a decision makes them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scrimp.encoding.encoding import encoding_of
from scrimp.freeze_thaw.budget_left import BudgetLeft
from scrimp.freeze_thaw.curve_rows import CurveTable, RowList
from scrimp.freeze_thaw.new_configs import NewConfigs, new_configs_of, when_drawn
from scrimp.freeze_thaw.past_curves import NO_LESSONS, PastLessons
from scrimp.freeze_thaw.scoring import Situation
from scrimp.freeze_thaw.study_model import StudyModel, model_study
from scrimp.study_log.decision_record import CurveFit
from scrimp.study_log.history import History


class Modelled(NamedTuple):
    """What a decision has before it asks anything; ``record``: what the log would get."""

    model: StudyModel
    new: NewConfigs
    record: CurveFit
    situation: Situation

    @property
    def rows(self) -> RowList:
        return self.situation.rows


def modelled(
    history: History,
    pending: Sequence[tuple[int, float]] = (),
    lessons: PastLessons = NO_LESSONS,
    seed: int = 0,
) -> Modelled:
    rows, encoding = history.derive(CurveTable()), encoding_of(history.problem.space)
    model = model_study(history, rows, encoding, pending, np.random.default_rng(seed), lessons)
    drawn_at = when_drawn(history, model)
    new = new_configs_of(history, model, encoding, drawn_at)
    situation = Situation(
        history, rows, BudgetLeft.of(history, rows), model, list(rows.paused.values())
    )
    return Modelled(model, new, CurveFit(model.fits, model.rows, drawn_at), situation)
