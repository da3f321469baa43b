"""Record numbers of Syne Tune 0.13.0 that the tests of scrimp's curve models compare with.

    .venvs/syne-tune/bin/python benchmarks/run.py oracle_curves oracle_curves.json

The record has the seven resource kernels and their means, the likelihood of one GP per rung, the
likelihoods of both additive models, and ranking losses. The innovations model is recorded for whole
curves only: for curves that are cut, that release assumes unit variance for the steps to come.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

logging.disable(logging.WARNING)  # before the import, which logs much

import numpy as np  # noqa: E402
from syne_tune.optimizer.schedulers.searchers.bayesopt.gpautograd.hypertune import (  # noqa: E402
    utils as hypertune,
)
from syne_tune.optimizer.schedulers.searchers.bayesopt.gpautograd.independent.posterior_state import (  # noqa: E402
    IndependentGPPerResourcePosteriorState,
)
from syne_tune.optimizer.schedulers.searchers.bayesopt.gpautograd.kernel import Matern52  # noqa: E402
from syne_tune.optimizer.schedulers.searchers.bayesopt.gpautograd.learncurve import (  # noqa: E402
    freeze_thaw,
    issm,
)
from syne_tune.optimizer.schedulers.searchers.bayesopt.gpautograd.mean import ScalarMeanFunction  # noqa: E402
from syne_tune.optimizer.schedulers.searchers.bayesopt.models.kernel_factory import (  # noqa: E402
    resource_kernel_factory,
)

FOLDS = 9
NAMES = (
    "exp-decay-sum", "exp-decay-combined", "exp-decay-delta1", "freeze-thaw", "matern52", "matern52-res-warp",
    "cross-validation",
)  # fmt: skip
BASE = {"inv_bw0": 1.3, "inv_bw1": 0.6, "covariance_scale": 1.7}
DECAY = {"alpha": 1.4, "mean_lam": 0.9, "gamma": 0.6}


def base_kernel(dimension: int = 2, **parameters: float) -> Any:
    """Return an ARD Matern kernel with these parameters."""
    kernel = Matern52(dimension=dimension, ARD=dimension > 1 or None)
    kernel.collect_params().initialize()
    kernel.set_params(parameters)
    return kernel


def constant(value: float) -> Any:
    """Return a constant mean."""
    mean = ScalarMeanFunction()
    mean.collect_params().initialize()
    mean.set_params({"mean_value": value})
    return mean


def kernels(x: np.ndarray, levels: np.ndarray) -> list[dict[str, Any]]:
    """Return covariance and mean of every resource kernel on rows (x, level)."""
    found = []
    for name in NAMES:
        kernel, mean = resource_kernel_factory(
            name, base_kernel(**BASE), constant(0.4), num_folds=FOLDS
        )
        kernel.collect_params().initialize()
        parameters = kernel.get_params()
        for key, value in {**BASE, "inv_bw2": 2.1}.items():
            for prefix in ("", "kernelx_", "kernelm_", "kernel_"):
                if prefix + key in parameters:
                    parameters[prefix + key] = value
        for key, value in {
            **DECAY,
            "delta": 0.3,
            "meanx_mean_value": 0.4,
            "meanm_mean_value": 0.4,
        }.items():
            if key in parameters:
                parameters[key] = value
        for key in parameters:
            if key.startswith("kernelr_"):
                parameters[key] = {"kernelr_inv_bw": 0.8, "kernelr_covariance_scale": 0.7}[key]
            if "power_a" in key or "power_b" in key:
                parameters[key] = 1.5 if "power_a" in key else 0.7
        kernel.set_params(parameters)
        share = (levels - 0.5) / FOLDS if name == "cross-validation" else levels / FOLDS
        rows = np.column_stack([x, share])
        found.append({
            "name": name, "parameters": {key: float(np.ravel(value)[0]) for key, value in parameters.items()},
            "covariance": np.array(kernel(rows, rows)).tolist(), "mean": np.ravel(mean(rows)).tolist(),
        })  # fmt: skip
    return found


def additive(x: np.ndarray, curves: list[np.ndarray], last: int) -> dict[str, Any]:
    """Return negative log marginal likelihoods; curves are sorted from long to short."""
    kernel, mean, noise = base_kernel(**BASE), constant(0.2), 0.05
    targets = [curve.reshape(-1, 1) for curve in curves]
    decay = freeze_thaw.ExponentialDecayBaseKernelFunction(r_max=last, r_min=1)
    decay.collect_params().initialize()
    inner = decay.get_params()
    inner.update({key: value for key, value in DECAY.items() if key in inner})
    decay.set_params(inner)
    before = freeze_thaw.resource_kernel_likelihood_precomputations(targets)
    likelihood = freeze_thaw.resource_kernel_likelihood_computations(before, decay, noise)
    state = issm.posterior_computations(x, mean, kernel, likelihood, noise)
    total = float(state["criterion"]) + float(freeze_thaw.logdet_cholfact_cov_resource(likelihood))
    whole = [curve for curve in targets if len(curve) == last]
    power = {"alpha": -0.8 * np.ones(len(whole)), "beta": -0.3 * np.ones(len(whole)), "gamma": 1.4}
    before = issm.issm_likelihood_precomputations(whole, 1)
    likelihood = issm.issm_likelihood_computations(before, power, 1, last)
    innovations = issm.posterior_computations(x[: len(whole)], mean, kernel, likelihood, noise)
    return {
        "mean": 0.2, "noise": noise, "decay": {**DECAY, "nlml": total},
        "innovations": {"power": 0.8, "log_amplitude": -0.3, "bend": 1.4, "curves": len(whole),
                        "nlml": float(innovations["criterion"])},
    }  # fmt: skip


def independent(x: np.ndarray, levels: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Return the negative log marginal likelihood of one GP per rung."""
    kernel = Matern52(dimension=2, ARD=True, has_covariance_scale=False)
    kernel.collect_params().initialize()
    kernel.set_params({"inv_bw0": 1.3, "inv_bw1": 0.6})
    means, scales = {1: 0.1, 3: -0.2, 9: 0.3}, {1: 1.5, 3: 0.8, 9: 0.4}
    share = (levels - 0.5) / FOLDS
    state = IndependentGPPerResourcePosteriorState(
        features=np.column_stack([x, share]), targets=y.reshape(-1, 1), kernel=kernel,
        mean={level: constant(value) for level, value in means.items()},
        covariance_scale={level: np.array([value]) for level, value in scales.items()},
        noise_variance=np.array([0.05]), resource_attr_range=(1, FOLDS),
    )  # fmt: skip
    return {"means": list(means.values()), "scales": list(scales.values()), "noise": 0.05,
            "nlml": float(np.ravel(state.neg_log_likelihood())[0])}  # fmt: skip


class Fixed:
    """A posterior with given joint draws."""

    num_fantasies = 1

    def __init__(self, draws: np.ndarray) -> None:
        self.draws = draws

    def sample_joint(self, **_: Any) -> np.ndarray:
        return self.draws


def main(out: Path) -> None:
    rng = np.random.default_rng(0)
    configs = rng.random((5, 2)).round(4)
    places = [(0, 1), (0, 3), (0, 9), (1, 1), (1, 3), (2, 1), (3, 1), (3, 3), (3, 9), (4, 1)]
    x, levels = configs[[i for i, _ in places]], np.array([float(level) for _, level in places])
    y = rng.standard_normal(len(x)).round(4)
    curves = [rng.standard_normal(size).round(4) for size in (6, 6, 4, 2, 1)]
    draws, targets = rng.standard_normal((7, 4)).round(4), rng.standard_normal(7).round(4)
    losses = hypertune._losses_for_rung(
        Fixed(draws), {"features": None, "targets": targets}, 4, None
    )
    record = {
        "made_by": "syne-tune 0.13.0, benchmarks/curves/oracle_curves.py",
        "folds": FOLDS, "x": x.tolist(), "levels": levels.tolist(),
        "y": y.tolist(), "base": BASE, "kernels": kernels(x, levels), "independent": independent(x, levels, y),
        "configs": configs.tolist(), "curves": [curve.tolist() for curve in curves], "last": 6,
        "additive": additive(configs, curves, 6),
        "ranking": {"draws": draws.T.tolist(), "targets": targets.tolist(), "losses": losses.tolist()},
    }  # fmt: skip
    out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
