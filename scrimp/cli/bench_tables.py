"""``scrimp bench make`` and ``scrimp bench convert``: tables to compare methods on."""

from pathlib import Path
from typing import Annotated

import typer

from scrimp.cli.say import echo

__all__ = ["convert_command", "make_command"]

_NEXT = {
    "curves": (
        "scrimp bench curves {files} --methods asha,mobster-joint,freeze-thaw --out"
        " {folder}/{name}.jsonl"
    ),
    "transfer": (
        "scrimp bench transfer {first} --methods auto,gp,rgpe,tst-r --out {folder}/{name}.jsonl"
    ),
    "checkpoints": (
        "scrimp bench checkpoints {files} --methods kg,ei,stride,last --out {folder}/{name}.jsonl"
    ),
}


def make_command(  # noqa: PLR0913 - the options of a command
    name: Annotated[str, typer.Argument(help="curves, transfer or checkpoints.")],
    out: Annotated[
        Path, typer.Option(help="The folder that gets the tables; what it holds is not made again.")
    ],
    workers: Annotated[int, typer.Option(min=1, help="Processes that train, one thread each.")] = 2,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same tables.")] = 0,
    configs: Annotated[
        int | None, typer.Option(min=2, help="How many configurations (256 for curves, 96 each).")
    ] = None,
    families: Annotated[
        str, typer.Option(help="transfer: model families, separated by commas, or all.")
    ] = "all",
    times: Annotated[
        bool, typer.Option("--times", help="curves: a level costs the seconds it took here.")
    ] = False,
    small: Annotated[
        bool, typer.Option("--small", help="A few rows and epochs: seconds, for a first look.")
    ] = False,
) -> None:
    """Train small models here, on data that scikit-learn carries, and write what they did as
    tables.

    curves: a network in many configurations, epoch by epoch; transfer: a table per model family
    over many tasks; checkpoints: scores of the checkpoints of three training runs. Needs
    scikit-learn, which the extra "bench" of scrimp brings.

    Example: scrimp bench make curves --out tables
    """
    from scrimp.bench.made_tables import CONFIGS, make_tables
    from scrimp.bench.making import MakingSettings

    count = (16 if small else CONFIGS.get(name, 0)) if configs is None else configs
    chosen = [part.strip() for part in families.split(",") if part.strip()]
    files = make_tables(name, out, MakingSettings(seed, count, small), workers, chosen, times)
    for file in files:
        echo(f"wrote {file}")
    shown = " ".join(str(file) for file in files)
    echo(f"next: {_NEXT[name].format(files=shown, first=files[0], folder=out, name=name)}")


def convert_command(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="lcbench, nasbench201, fcnet, taskset, hpob, yahpo or lm-eval."
        ),
    ],
    source: Annotated[Path, typer.Argument(help="The file or folder as it was published.")],
    target: Annotated[
        Path,
        typer.Argument(help="The table to write (.npz); for lm-eval a table of scores (.csv)."),
    ],
) -> None:
    """Turn published results into a table that scrimp bench reads.

    Example: scrimp bench convert lcbench data_2k_lw.json lcbench.npz
    """
    from scrimp.bench.converting import convert

    echo(f"wrote {target}: {convert(kind, source, target)}")
