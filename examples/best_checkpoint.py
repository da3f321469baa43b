"""Which checkpoint has the best average over many benchmarks? A multi-task Gaussian process and
expected improvement of the sum.

The model is K_x (x) K_t over pairs of checkpoint and task: a squared exponential over the place in
the run, and a task matrix K_t = L L' that is learned. The next pair is the one with the largest
(S_i - S*) Phi(u) + sigma_ij phi(u), where u = (S_i - S*) / sigma_ij and S_i is the sum of the
posterior means of checkpoint i. The answer is the arg max of the posterior mean of the average.

    python examples/best_checkpoint.py [share of the pairs to evaluate] [method, such as kg or ei-icm:rank=full,diagonal=true]
"""

import sys

import numpy as np

import scrimp

CHECKPOINTS = list(range(1, 31))
TASKS = [f"task{number}" for number in range(12)]


def learning_curves(seed: int = 0) -> np.ndarray:
    """Scores (checkpoints, tasks) that rise and later fall: two kinds of tasks, levels of their
    own, and noise."""
    rng = np.random.default_rng(seed)
    x = np.linspace(0.0, 1.0, len(CHECKPOINTS))[:, None]
    early, late = x * (1.1 - x), x * (1.7 - x)
    share = rng.random(len(TASKS))
    curves = 0.2 + 0.4 * rng.random(len(TASKS)) + 0.4 * (share * early + (1.0 - share) * late)
    return curves + 0.003 * rng.normal(size=curves.shape)


def main() -> None:
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    method = sys.argv[2] if len(sys.argv) > 2 else "ei-icm:rank=2"
    scores = learning_curves()
    selection = scrimp.create_selection(
        "run", checkpoints=CHECKPOINTS, tasks=TASKS, method=method, storage="memory://", seed=0
    )
    selection.stop_when(share=share)
    while not selection.finished:
        checkpoint, task = selection.ask()  # 1. which pair to evaluate
        score = scores[
            CHECKPOINTS.index(checkpoint), TASKS.index(task)
        ]  # 2. here an evaluation of minutes would run
        selection.tell(checkpoint, task, score)  # 3. the model is updated
    belief = (
        selection.posterior()
    )  # mean, std: (checkpoints, tasks); average_mean, average_std: (checkpoints,)
    print(belief)
    print(selection.recommend())
    print("correlations of the first tasks:", selection.task_correlations()[0, :4].round(2))
    average = scores.mean(axis=1)
    answer = CHECKPOINTS.index(selection.recommend().checkpoint)
    print(
        f"all pairs say checkpoint {CHECKPOINTS[int(average.argmax())]}; lost:"
        f" {average.max() - average[answer]:.4f}"
    )


if __name__ == "__main__":
    main()
