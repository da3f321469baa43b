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


def test_the_prediction_of_hyper_tune_is_told_with_its_budget() -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metric="loss",
        budget=scrimp.Budget("epoch", 1, 9),
        method="hypertune-indep:initial=3",
        storage="memory://",
        seed=0,
    )
    for _ in range(12):
        trial = study.ask()
        for step in range(int(trial.budget or 0) + 1, int(trial.granted) + 1):
            study.report(trial, step=step, loss=(trial.params["x"] - 0.3) ** 2 + 1.0 / step)
    told = [line for trial in study.trials for line in study.explain(trial.id).details.split("\n")]
    predicted = [line for line in told if "The model predicted loss" in line]
    assert predicted and all(" after 1 epoch (95% interval" in line for line in predicted)
