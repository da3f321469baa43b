"""Studies in Weights & Biases: a group per study, a run per trial, curves by step.

    track("digits", WandbTracker("my-project"), storage="sqlite:///scrimp.db")

W&B's own settings apply: with ``WANDB_MODE=offline`` runs are written to a folder for ``wandb
sync``. The cursor is in ``scrimp-wandb`` below ``folder``. A trial that continues later resumes its
run; offline, each stretch of it is a folder with the same run id, which ``wandb sync --append``
joins.
"""

from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import RunTracker, TrialNews, finite_metrics, step_number
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("wandb", "WandbTracker"):
    import wandb


class WandbTracker(RunTracker):
    """Runs of a ``project``; W&B's files are below ``folder``."""

    def __init__(self, project: str = "scrimp", *, folder: str | Path = ".") -> None:
        super().__init__()
        self._project, self._folder = project, Path(folder)

    @property
    def label(self) -> str:
        return f"Weights & Biases, project {self._project!r}"

    def cursor_path(self, history: History) -> Path:
        return self._folder / "scrimp-wandb" / f"{history.identity}.json"

    def open(self, trial: Trial) -> "wandb.Run":
        return wandb.init(
            project=self._project,
            group=self._study,
            id=f"{self._identity[:12]}-{trial.id}",
            name=f"{self._study} {trial.id}",
            config=dict(trial.config),
            dir=str(self._folder),
            resume="allow",
            reinit="create_new",
        )

    def show(self, run: "wandb.Run", item: TrialNews) -> None:
        if item.kind == "reported" and item.point is not None:
            run.log(finite_metrics(item.point), step=step_number(item.trial, item.point))
        elif item.kind == "ended":
            run.summary["status"] = item.trial.status
            run.summary["best"] = item.trial.best

    def end(self, run: "wandb.Run", status: str) -> None:
        run.finish(exit_code=1 if status == "failed" else 0)
