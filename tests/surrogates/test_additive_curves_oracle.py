"""Models of learning curves beside recorded numbers of Syne Tune 0.13.0; oracle_curves.json says
how they were made.

Its Matern kernel adds 1e-9 under the root, so values agree to about 1e-9 and likelihoods to 1e-7.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from scrimp.gp.budget_priors import RESOURCE_KERNELS, budget_prior
from scrimp.gp.columns import Column
from scrimp.gp.hyperparameters import ParameterVector
from scrimp.gp.kernel import Scaled
from scrimp.gp.process import MeanAndKernel
from scrimp.gp.residual import DecayResidual, InnovationResidual
from scrimp.gp.stationary import Matern52
from scrimp.surrogates.additive_curves import AdditiveCurves
from scrimp.surrogates.budget_levels import IndependentGPs, pairwise_loss
from scrimp.surrogates.surrogate import Data

ORACLE = json.loads((Path(__file__).parent / "oracle_curves.json").read_text(encoding="utf-8"))
COLUMNS = (Column(), Column())


def flat(vector, named):
    """The parameter vector of values by name; a plain number stands for a list of one."""
    values = vector.from_json(
        {name: np.atleast_1d(value).tolist() for name, value in named.items()}
    )
    assert values is not None
    return values


def named_values(kernel):
    """Our parameters from theirs: length-scales are inverse bandwidths."""
    theirs = kernel["parameters"]
    scales = [
        1 / value
        for key, value in sorted(theirs.items())
        if "inv_bw" in key and not key.startswith("kernelr")
    ]
    scale = next(
        value
        for key, value in theirs.items()
        if key.endswith("covariance_scale") and "kernelr" not in key
    )
    if kernel["name"] == "cross-validation":
        residual = {"right.length_scale": 1 / theirs["kernelr_inv_bw"]}
        residual["right.output_scale"] = theirs["kernelr_covariance_scale"]
        return {"mean": 0.4, "left.length_scale": scales, "left.output_scale": scale, **residual}
    named = {"mean": 0.4, "length_scale": scales, "output_scale": scale}
    for ours, key in (
        ("decay_shape", "alpha"),
        ("decay_rate", "mean_lam"),
        ("decay_size", "gamma"),
        ("decay_share", "delta"),
        ("warping_a", "warping_power_a"),
        ("warping_b", "warping_power_b"),
    ):
        if key in theirs:
            named[ours] = theirs[key]
    return named


@pytest.mark.parametrize(
    "kernel", ORACLE["kernels"], ids=[kernel["name"] for kernel in ORACLE["kernels"]]
)
def test_resource_kernels(kernel):
    prior = budget_prior(kernel["name"], COLUMNS, folds=ORACLE["folds"])
    prior = prior.with_values(flat(ParameterVector(prior.parameters), named_values(kernel)))
    x = np.column_stack([ORACLE["x"], np.array(ORACLE["levels"]) / ORACLE["folds"]])
    np.testing.assert_allclose(prior.mean(x), kernel["mean"], rtol=1e-8)
    np.testing.assert_allclose(prior.covariance(x, x), kernel["covariance"], rtol=1e-8, atol=1e-8)


def test_all_kernels_are_recorded():
    """A kernel that is added later need not be recorded: Syne Tune does not have it."""
    recorded = [kernel["name"] for kernel in ORACLE["kernels"]]
    assert set(recorded) <= set(RESOURCE_KERNELS) and len(recorded) == 7


def test_one_process_per_rung():
    recorded = ORACLE["independent"]
    model = IndependentGPs(Matern52(COLUMNS), tuple(level / 9 for level in (1, 3, 9)))
    named = {
        "mean": recorded["means"],
        "level_scale": recorded["scales"],
        "noise": recorded["noise"],
    }
    values = flat(model.vector, {**named, "length_scale": [1 / 1.3, 1 / 0.6]})
    x = np.column_stack([ORACLE["x"], np.array(ORACLE["levels"]) / 9])
    posterior = model.log_posterior(Data(x, np.array(ORACLE["y"])))
    likelihood = posterior.log_density(values) - model.vector.log_density_and_gradient(values)[0]
    assert -likelihood == pytest.approx(recorded["nlml"], rel=1e-7)


def additive(residual, parameters, curves):
    """The negative log marginal likelihood of our additive model on raw steps."""
    last = ORACLE["last"]
    steps = tuple((np.arange(1, last + 1) / last).tolist())
    model = AdditiveCurves(MeanAndKernel(Scaled(Matern52(COLUMNS))), residual, steps, unit=last)
    base, recorded = ORACLE["base"], ORACLE["additive"]
    named = {
        "mean": recorded["mean"],
        "noise": recorded["noise"],
        "output_scale": base["covariance_scale"],
    }
    values = flat(
        model.vector,
        {**named, "length_scale": [1 / base["inv_bw0"], 1 / base["inv_bw1"]], **parameters},
    )
    rows = [
        [*ORACLE["configs"][i], steps[j]]
        for i, curve in enumerate(curves)
        for j in range(len(curve))
    ]
    data = Data(np.array(rows), np.concatenate(curves))
    return -model.restore(
        data, {"parameters": model.vector.to_json(values), "explored": 1}
    ).log_marginal_likelihood


def test_additive_exponential_decay():
    recorded = ORACLE["additive"]["decay"]
    named = {
        "decay_shape": recorded["alpha"],
        "decay_rate": recorded["mean_lam"],
        "decay_size": recorded["gamma"],
    }
    assert additive(DecayResidual(), named, ORACLE["curves"]) == pytest.approx(
        recorded["nlml"], rel=1e-7
    )


def test_additive_innovations_on_whole_curves():
    recorded = ORACLE["additive"]["innovations"]
    named = {name: recorded[name] for name in ("power", "log_amplitude", "bend")}
    curves = ORACLE["curves"][: recorded["curves"]]
    assert additive(InnovationResidual(), named, curves) == pytest.approx(
        recorded["nlml"], rel=1e-7
    )


def test_ranking_losses():
    recorded = ORACLE["ranking"]
    found = pairwise_loss(np.array(recorded["draws"]), np.array(recorded["targets"]))
    np.testing.assert_allclose(found, recorded["losses"], rtol=1e-12)
