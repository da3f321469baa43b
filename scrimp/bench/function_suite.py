"""``scrimp bench functions``: methods on test functions with known minima.

run_function(Cell("functions", "functions", "branin", "gp", seed=0, size=50))["regret"][-1]
"""

from scrimp.bench.described_space import described_space
from scrimp.bench.formulas import FORMULAS, Recorder
from scrimp.bench.kept_studies import kept_at
from scrimp.bench.playing import BenchQuestion, play_out
from scrimp.bench.results import Cell
from scrimp.errors import TableError
from scrimp.json_values import Json

__all__ = ["function_cells", "run_function", "stretched"]


def function_cells(
    methods: list[str], names: list[str], seeds: int, trials: int, workers: int = 1
) -> list[Cell]:
    """Every run of a comparison, seeds outermost, so that an interrupted one is still balanced."""
    for name in names:
        if name not in FORMULAS:
            raise TableError(f"there is no test function {name!r}; there are {', '.join(FORMULAS)}")
    return [
        Cell("functions", "functions", name, method, seed, trials, workers)
        for seed in range(seeds)
        for name in names
        for method in methods
    ]


def run_function(cell: Cell) -> dict[str, Json]:
    """One method on one function: the regret of the best configuration after each trial."""
    formula = FORMULAS[cell.task]
    recorder = Recorder(formula, cell.seed)
    question = BenchQuestion(
        described_space(formula.space), recorder.measure, noisy=formula.noise > 0
    )
    place = kept_at(cell, question.space)
    seconds, asks = play_out(question, cell.method, cell.seed, cell.size, cell.workers, place)
    return {
        **cell.head(),
        "decision_seconds": seconds,
        "decisions": asks,
        **stretched(recorder.regret, cell.size),
    }


def stretched(regret: list[float | None], size: int) -> dict[str, Json]:
    """``at`` 1, 2, ... and the regrets there; a study that ended early keeps its last one."""
    last = regret[-1] if regret else None
    return {"at": list(range(1, size + 1)), "regret": regret + [last] * (size - len(regret))}
