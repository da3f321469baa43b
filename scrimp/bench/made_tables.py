"""``scrimp bench make``: real tables, made on this machine; what was interrupted goes on where it
was.

    # [Path("tables/curves.npz")]
    make_tables("curves", Path("tables"), MakingSettings(configs=256), workers=2)

Every finished piece of work is a line of ``work.jsonl`` in the folder, so a kill costs what each
worker had in hand.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from scrimp.bench.made_checkpoints import CheckpointWork, checkpoint_work, write_checkpoints
from scrimp.bench.made_curves import CurveWork, curve_work, write_curves
from scrimp.bench.made_data import need_sklearn
from scrimp.bench.made_transfer import TransferWork, chosen_families, transfer_work, write_transfer
from scrimp.bench.making import MakingSettings
from scrimp.bench.runner import run_cells
from scrimp.errors import TableError

__all__ = ["CONFIGS", "MAKERS", "make_tables"]

MAKERS = ("curves", "transfer", "checkpoints")

CONFIGS = {"curves": 256, "transfer": 96, "checkpoints": 0}
"""How many configurations are made, where nobody says otherwise."""


def make_tables(
    name: str,
    folder: Path,
    settings: MakingSettings,
    workers: int = 2,
    families: Sequence[str] = ("all",),
    times: bool = False,
) -> list[Path]:
    """Make the tables of that name in ``folder``; their paths."""
    if name not in MAKERS:
        raise TableError(f"there is no maker of {name!r}; there are {', '.join(MAKERS)}")
    chosen = chosen_families(families)
    need_sklearn()
    folder.mkdir(parents=True, exist_ok=True)
    work = folder / "work.jsonl"
    if name == "checkpoints":
        done = run_cells(checkpoint_work(settings), work, workers)
        return write_checkpoints(folder, cast("list[CheckpointWork]", done))
    if name == "curves":
        done = run_cells(curve_work(settings), work, workers)
        write_curves(folder / "curves.npz", settings, cast("list[CurveWork]", done), times)
        return [folder / "curves.npz"]
    cells = [cell for family in chosen for cell in transfer_work(family, settings)]
    records = cast("list[TransferWork]", run_cells(cells, work, workers))
    for family in chosen:
        own = [record for record in records if record["table"] == family]
        write_transfer(folder / f"{family}.npz", family, settings, own)
    return [folder / f"{family}.npz" for family in chosen]
