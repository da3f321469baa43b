"""What a model saw, in words."""

import scrimp
from scrimp.explain.reason_words import depends_words, model_lines
from scrimp.freeze_thaw.curve_process import SHARED_PARAMETERS
from scrimp.study_log.decision_record import (
    EMPTY_RECORD,
    CurveFit,
    DecisionRecord,
    DrawnAt,
    Fit,
    MetricFit,
)
from scrimp.study_log.problem import Problem

STAGED = Problem(
    scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4)),
    metrics={"error": "minimize"},
    budget=scrimp.Budget("epoch", 1, 9),
)


def test_the_fit_of_any_model_is_read() -> None:
    fit = {"gp_multitask": Fit(12, {}, length_scales=(2.0, 0.1))}
    assert model_lines(DecisionRecord(fit=fit), STAGED) == [
        "The model was fitted for this decision, to 12 observations.",
        "By the model, error changes fastest along layers, slowest along lr.",
    ]
    assert len(model_lines(DecisionRecord(fit={"grid": Fit(3, {})}), STAGED)) == 1
    fastest = "By the model, error changes fastest along layers, then lr"
    assert (
        depends_words(DecisionRecord(fit=fit), STAGED) == fastest
        and depends_words(EMPTY_RECORD, STAGED) == ""
    )
    theta = (0.3, -1.2, *[0.0] * SHARED_PARAMETERS)
    curves = CurveFit((MetricFit(theta),), 3, DrawnAt(0, 0, 0))
    assert depends_words(DecisionRecord(curves=curves), STAGED) == fastest
