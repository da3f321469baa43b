"""``scrimp.simulate``: a method on the training runs of a table, played through on a virtual clock.

    study = scrimp.simulate("lcbench.npz", "mobster-joint", task="adult", workers=4, fulls=20, seed=0)
    scrimp.plots.curves(study)

It is the run that ``scrimp bench curves`` makes with the same arguments, as a study: hours of
several workers in seconds, with virtual seconds as its times. Trials that were under way when the
clock ended are stopped.
"""

from collections.abc import Mapping
from pathlib import Path

from scrimp.bench.curve_files import open_curves
from scrimp.bench.curve_suite import Timed, own_seed, play_curves, training_runs
from scrimp.bench.results import Cell
from scrimp.checks import is_whole
from scrimp.errors import StudyError, TableError
from scrimp.storage.store import Storage
from scrimp.tuning.catalog import Method, parse_method
from scrimp.tuning.studies import load_study, storage_at
from scrimp.tuning.study import Study

__all__ = ["simulate"]


def simulate(  # noqa: PLR0913 - a front door: every argument is a keyword a user may want
    table: str | Path,
    method: str | Method | Mapping[str, object] = "auto",
    *,
    task: str | None = None,
    workers: int = 4,
    fulls: int = 20,
    seed: int = 0,
    unit_cost: bool = False,
    name: str | None = None,
    storage: str | Storage = "memory://",
) -> Study:
    """The finished study of ``method`` on a ``task`` of a table with budgets, or of a surrogate of
    training runs.

    ``workers`` run trials at the same time; all of them together may pay for ``fulls`` full
    trainings. ``task`` may be left out where there is one only. ``unit_cost``: every level of a
    surrogate costs one unit instead of its seconds.
    """
    for label, value in (("workers", workers), ("fulls", fulls)):
        if not is_whole(value, 1):
            raise StudyError(f"{label} is {value!r}; it must be a whole number of at least 1")
    chosen, runs = parse_method(method), open_curves(table, unit_cost)
    if task is None and len(runs.tasks) > 1:
        raise TableError(
            f"{str(table)!r} has {len(runs.tasks)} tasks; choose one, such as"
            f" task={runs.tasks[0]!r}"
        )
    which = runs.tasks[0] if task is None else task
    runs.check(which)
    called = name if name is not None else f"{runs.name}/{which}/{chosen.name}/{seed}"
    cell = Cell("curves", runs.name, which, chosen.name, seed, fulls, workers, source=str(table))
    replayed, place = training_runs(cell), storage_at(storage)
    play_curves(replayed, Timed(chosen, replayed, own_seed(cell)), cell, called, place)
    return load_study(called, storage=place)
