"""BoTorch's loop for several objectives: a Gaussian process per objective and constraint, and
qLogNoisyExpectedHypervolumeImprovement with BoTorch's inferred reference point, as its tutorial has
it. Sobol first, as many points as in `peer_botorch.py`."""

import warnings

import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from gpytorch.mlls import SumMarginalLogLikelihood
from objective_loop import Config, Space, main
from torch.quasirandom import SobolEngine

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class BoTorchLoop:
    """One study; losses are negated, since BoTorch maximises."""

    def __init__(self, method: str, space: Space, objectives: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.space, self.objectives = space, objectives
        self.start = min(max(2 * len(space), 5), 10)
        self.sobol = SobolEngine(len(space), scramble=True, seed=seed)
        self.points: list[list[float]] = []
        self.rows: list[list[float]] = []

    def ask(self) -> Config:
        few = len(self.points) < self.start
        unit = self.sobol.draw(1)[0].tolist() if few else self._improve()
        self.last = {
            p["name"]: p["low"] + u * (p["high"] - p["low"])
            for p, u in zip(self.space, unit, strict=True)
        }
        return self.last

    def tell(self, losses: list[float], violations: list[float]) -> None:
        unit = [(self.last[p["name"]] - p["low"]) / (p["high"] - p["low"]) for p in self.space]
        self.points.append(unit)
        self.rows.append([*(-loss for loss in losses), *violations])

    def add(self, config: Config, losses: list[float]) -> None:
        self.last = config
        self.tell(losses, [])

    def _improve(self) -> list[float]:
        x, y = torch.tensor(self.points), torch.tensor(self.rows)
        models = [
            SingleTaskGP(x, column.unsqueeze(-1), outcome_transform=Standardize(m=1))
            for column in y.T
        ]
        model = ModelListGP(*models)
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        goals, limits = y[:, : self.objectives], y[:, self.objectives :]
        holds = (limits <= 0).all(dim=-1)
        seen = goals[holds] if holds.any() else goals
        constraints = [lambda z, k=k: z[..., self.objectives + k] for k in range(limits.shape[-1])]
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            model=model,
            ref_point=infer_reference_point(seen[is_non_dominated(seen)]),
            X_baseline=x,
            sampler=SobolQMCNormalSampler(torch.Size([128])),
            objective=IdentityMCMultiOutputObjective(outcomes=list(range(self.objectives))),
            constraints=constraints or None,
            prune_baseline=True,
        )
        bounds = torch.tensor([[0.0] * len(self.space), [1.0] * len(self.space)])
        best, _ = optimize_acqf(
            acquisition, bounds, q=1, num_restarts=10, raw_samples=512,
            options={"batch_limit": 5, "maxiter": 200},
        )  # fmt: skip
        return best[0].tolist()


if __name__ == "__main__":
    main(BoTorchLoop, ["botorch-nehvi"])
