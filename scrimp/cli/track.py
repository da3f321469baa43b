"""``scrimp track``: show a study in MLflow, Weights & Biases, TensorBoard or Aim."""

import time
from typing import Annotated

import typer

from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption, StudyArgument
from scrimp.tuning.studies import DEFAULT_URL, storage_at

__all__ = ["track_command"]


def track_command(
    tracker: Annotated[
        str, typer.Argument(metavar="TRACKER", help="mlflow, wandb, tensorboard or aim.")
    ],
    study: StudyArgument,
    to: Annotated[
        str | None,
        typer.Option(
            help="Where: a tracking URI (mlflow), a project (wandb), a folder (tensorboard, aim)."
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on until the study is over or Ctrl-C.")
    ] = False,
    storage: StorageOption = DEFAULT_URL,
) -> None:
    """Show what happened in a study in a tracker, from where the tracker is; beside the run with
    --follow, or at any time later.

    Example: scrimp track tensorboard digits --to runs --follow
    """
    from scrimp.integrations.following import follow as follow_study
    from scrimp.integrations.tracker import Follower
    from scrimp.integrations.trackers import tracker_of

    follower = Follower(storage_at(storage).open(study), tracker_of(tracker, to))
    try:
        handed = follower.catch_up() if not follow else 0
        if follow:
            follow_study(follower, _pause, say=lambda words: echo(f"scrimp: {words}", err=True))
        shown = follower.history
    finally:
        follower.close()
    count = 0 if shown is None else len(shown.trials)
    news = "" if follow else f", {handed} new events"
    echo(f"{follower.tracker.label} shows {count} trials of study {study!r}{news}")


def _pause(seconds: float) -> bool:
    """Wait; it is never time to end, Ctrl-C apart."""
    time.sleep(seconds)
    return False
