"""Run BoTorch on several objectives, as its tutorial shows it.

There is a Gaussian process per objective and constraint, and
qLogNoisyExpectedHypervolumeImprovement with BoTorch's inferred reference point. Sobol points come
first, as many as in `botorch_functions`. Choices are columns of their own; where all parameters are
discrete the best of 2,000 random configurations is taken, otherwise the best of the cube, rounded.
Failed trials are left out.
"""

import random
import warnings

import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
from botorch.acquisition.multi_objective.objective import IdentityMCMultiOutputObjective
from botorch.models import ModelListGP, SingleTaskGP
from botorch.models.transforms.outcome import Standardize
from botorch.optim import optimize_acqf, optimize_acqf_discrete
from botorch.sampling.normal import SobolQMCNormalSampler
from botorch.utils.multi_objective.hypervolume import infer_reference_point
from botorch.utils.multi_objective.pareto import is_non_dominated
from gpytorch.mlls import SumMarginalLogLikelihood
from torch.quasirandom import SobolEngine

from benchmarks.peers.objective_loop import Config, Space, UnitCube, main

warnings.filterwarnings("ignore")
torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)


class BoTorchLoop:
    """A study; losses are negated, since BoTorch maximises."""

    def __init__(self, method: str, space: Space, objectives: int, seed: int) -> None:
        torch.manual_seed(seed)
        self.cube, self.objectives = UnitCube(space), objectives
        self.dimension = sum(self.cube.widths)
        self.start = min(max(2 * len(space), 5), 10)
        self.sobol = SobolEngine(self.dimension, scramble=True, seed=seed)
        self.random = random.Random(seed)
        self.points: list[list[float]] = []
        self.rows: list[list[float]] = []

    def ask(self) -> Config:
        few = len(self.points) < self.start
        self.last = self.cube.decode(
            self.sobol.draw(1)[0].tolist() if few else self._improve().tolist()
        )
        return self.last

    def tell(self, losses: list[float] | None, violations: list[float]) -> None:
        if losses is not None:
            self.points.append(self.cube.encode(self.last))
            self.rows.append([*(-loss for loss in losses), *violations])

    def add(self, config: Config, losses: list[float]) -> None:
        self.last = config
        self.tell(losses, [])

    def _improve(self) -> torch.Tensor:
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
        if self.cube.discrete:
            best, _ = optimize_acqf_discrete(acquisition, q=1, choices=self._drawn(2000))
            return best[0]
        bounds = torch.tensor([[0.0] * self.dimension, [1.0] * self.dimension])
        best, _ = optimize_acqf(
            acquisition, bounds, q=1, num_restarts=10, raw_samples=512,
            options={"batch_limit": 5, "maxiter": 200},
        )  # fmt: skip
        return best[0]

    def _drawn(self, count: int) -> torch.Tensor:
        """Return random configurations of a discrete space that were not tried yet."""
        rows = [
            self.cube.encode({p["name"]: self.random.choice(p["choices"]) for p in self.cube.space})
            for _ in range(count)
        ]
        return torch.tensor([row for row in rows if row not in self.points])


if __name__ == "__main__":
    main(BoTorchLoop, ["botorch-nehvi"])
