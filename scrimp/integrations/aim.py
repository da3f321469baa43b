"""Studies in Aim: an experiment per study, a run per trial, curves by step.

    track("digits", AimTracker("runs"), storage="sqlite:///scrimp.db")

The cursor, with the run of each trial, is in ``scrimp`` in the repository's folder.
"""

from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import RunTracker, TrialNews, finite_metrics, step_number
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("aim", "AimTracker"):
    import aim


class AimTracker(RunTracker):
    """Runs in the Aim repository in ``folder``, which is created if it does not exist."""

    def __init__(self, folder: str | Path = ".") -> None:
        super().__init__()
        self._folder = Path(folder)

    @property
    def label(self) -> str:
        return f"Aim in {str(self._folder)!r}"

    def cursor_path(self, history: History) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder / "scrimp" / f"{history.identity}.json"

    def open(self, trial: Trial) -> aim.Run:
        known = self.texts.get(str(trial.id))
        run = aim.Run(
            run_hash=known,
            repo=str(self._folder),
            experiment=None if known else self._study,
            system_tracking_interval=None,
            capture_terminal_logs=False,
        )
        if known is None:
            run.name = f"{self._study} {trial.id}"
            run["hparams"] = dict(trial.config)
            run["trial"] = trial.id
            self.texts[str(trial.id)] = str(run.hash)
        return run

    def show(self, run: aim.Run, item: TrialNews) -> None:
        if item.kind == "reported" and item.point is not None:
            step = step_number(item.trial, item.point)
            for name, value in finite_metrics(item.point).items():
                run.track(value, name=name, step=step)
        elif item.kind == "ended":
            run["status"] = item.trial.status
            run["best"] = item.trial.best

    def end(self, run: aim.Run, status: str) -> None:
        run.close()
