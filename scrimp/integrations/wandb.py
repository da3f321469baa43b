"""Studies in Weights & Biases: a group per study, a run per trial, curves by step.

    track("digits", WandbTracker("my-project"), storage="sqlite:///scrimp.db")

W&B's own settings apply: with ``WANDB_MODE=offline`` runs are written to a folder for ``wandb
sync``. The cursor is in ``scrimp-wandb`` below ``folder``. A trial that continues later resumes its
run; offline, each stretch of it is a folder with the same run id, which ``wandb sync --append``
joins.
"""

from collections.abc import Sequence
from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import CursorFile, Tracker, TrialNews, finite_metrics, step_number
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("wandb", "WandbTracker"):
    import wandb


class WandbTracker(Tracker):
    """Runs of a ``project``; W&B's files are below ``folder``."""

    def __init__(self, project: str = "scrimp", *, folder: str | Path = ".") -> None:
        self._project, self._folder = project, Path(folder)
        self._runs: dict[int, wandb.Run] = {}
        self._study = self._identity = ""

    @property
    def label(self) -> str:
        return f"Weights & Biases, project {self._project!r}"

    def begin(self, history: History) -> int:
        self.close()
        self._study, self._identity = history.created.name, history.identity
        self._cursor = CursorFile(self._folder / "scrimp-wandb" / f"{history.identity}.json")
        return self._cursor.read(history.identity)[0]

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        for item in news:
            run = self._run(item.trial)
            if item.kind == "reported" and item.point is not None:
                metrics = finite_metrics(item.point)
                run.log(metrics, step=step_number(item.trial, item.point))
            elif item.kind == "ended":
                run.summary["status"] = item.trial.status
                run.summary["best"] = item.trial.best
        # Runs of paused trials are closed too: there may be many.
        for number in list(self._runs):
            trial = history.trials[number]
            if trial.status != "running":
                self._runs.pop(number).finish(exit_code=1 if trial.status == "failed" else 0)
        self._cursor.write(self._identity, history.length, {})

    def close(self) -> None:
        while self._runs:
            self._runs.popitem()[1].finish()

    def _run(self, trial: Trial) -> "wandb.Run":
        if trial.id not in self._runs:
            self._runs[trial.id] = wandb.init(
                project=self._project,
                group=self._study,
                id=f"{self._identity[:12]}-{trial.id}",
                name=f"{self._study} {trial.id}",
                config=dict(trial.config),
                dir=str(self._folder),
                resume="allow",
                reinit="create_new",
            )
        return self._runs[trial.id]
