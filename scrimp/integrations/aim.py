"""Studies in Aim: an experiment per study, a run per trial, curves by step.

    track("digits", AimTracker("runs"), storage="sqlite:///scrimp.db")

The cursor, with the run of each trial, is in ``scrimp`` in the repository's folder.
"""

from collections.abc import Sequence
from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import CursorFile, Tracker, TrialNews, finite_metrics, step_number
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("aim", "AimTracker"):
    import aim


class AimTracker(Tracker):
    """Runs in the Aim repository in ``folder``, which is created if it does not exist."""

    def __init__(self, folder: str | Path = ".") -> None:
        self._folder = Path(folder)
        self._runs: dict[int, aim.Run] = {}
        self._hashes: dict[str, str] = {}
        self._study = self._identity = ""

    @property
    def label(self) -> str:
        return f"Aim in {str(self._folder)!r}"

    def begin(self, history: History) -> int:
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._study, self._identity = history.created.name, history.identity
        self._cursor = CursorFile(self._folder / "scrimp" / f"{history.identity}.json")
        shown, self._hashes = self._cursor.read(history.identity)
        return shown

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        for item in news:
            run = self._run(item.trial)
            if item.kind == "reported" and item.point is not None:
                step = step_number(item.trial, item.point)
                for name, value in finite_metrics(item.point).items():
                    run.track(value, name=name, step=step)
            elif item.kind == "ended":
                run["status"] = item.trial.status
                run["best"] = item.trial.best
        # Runs of paused trials are closed too: there may be many.
        for number in list(self._runs):
            if history.trials[number].status != "running":
                self._runs.pop(number).close()
        self._cursor.write(self._identity, history.length, self._hashes)

    def close(self) -> None:
        while self._runs:
            self._runs.popitem()[1].close()

    def _run(self, trial: Trial) -> aim.Run:
        if trial.id not in self._runs:
            known = self._hashes.get(str(trial.id))
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
                self._hashes[str(trial.id)] = str(run.hash)
            self._runs[trial.id] = run
        return self._runs[trial.id]
