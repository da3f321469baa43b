"""``scrimp retry``: failed trials are tried again, once what made them fail is mended."""

from scrimp.cli.say import command_to_copy, echo
from scrimp.cli.show import StorageOption, StudyArgument
from scrimp.errors import BrokenObjective
from scrimp.tuning.studies import DEFAULT_URL, load_study

__all__ = ["retry_command", "say_broken"]


def retry_command(study: StudyArgument, storage: StorageOption = DEFAULT_URL) -> None:
    """Let the failed trials of a study be tried again, before anything new: they do not count a
    second time.

    Run it when what made them fail is mended; `scrimp run` and `scrimp worker` then take them up.

    Example: scrimp retry digits
    """
    count = load_study(study, storage=storage).retry_failed()
    if not count:
        echo(f"study {study!r} has no failed trials; nothing to try again")
        return
    echo(
        f"{count} failed trial{'s' * (count > 1)} of {study!r} will be tried again; go on as"
        " before, with  scrimp run  or  study.optimize"
    )


def say_broken(error: BrokenObjective, study: str, url: str) -> None:
    """Why a run stopped, and the command that goes on once it is mended."""
    details = f"\n{error.details.strip()}" if "\n" in error.details.strip() else ""
    again = command_to_copy(["scrimp", "retry", study, "--storage", url])
    echo(
        f"scrimp: {error.words}{details}\nMend it, then let these trials be tried again:  {again}",
        err=True,
    )
