"""What a model saw, in words."""

import scrimp
from scrimp.explaining.model_words import depends_words, model_lines
from scrimp.freeze_thaw.curve_gp import SHARED
from scrimp.history.notes import EMPTY, CurveFit, Fit, NewcomerPool, Notes
from scrimp.history.problem import Problem

STAGED = Problem(
    scrimp.Space(lr=scrimp.Float(1e-4, 1.0, log=True), layers=scrimp.Int(1, 4)),
    metric="error",
    budget=scrimp.Budget("epoch", 1, 9),
)


def test_the_fit_of_any_model_is_read() -> None:
    fit = {"gp_multitask": Fit(12, {}, length_scales=(2.0, 0.1))}
    assert model_lines(Notes(fit=fit), STAGED) == [
        "The model was fitted anew for this decision, to 12 observations.",
        "It saw error change fastest along layers, slowest along lr.",
    ]
    assert len(model_lines(Notes(fit={"grid": Fit(3, {})}), STAGED)) == 1
    fastest = ", which saw error change fastest along layers, then lr,"
    assert depends_words(Notes(fit=fit), STAGED) == fastest and depends_words(EMPTY, STAGED) == ""
    theta = (0.3, -1.2, *[0.0] * SHARED)
    curves = CurveFit(theta, 3, NewcomerPool(0, 0, 0))
    assert depends_words(Notes(curves=curves), STAGED) == fastest
