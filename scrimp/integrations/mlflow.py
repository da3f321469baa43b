"""Studies in MLflow: a parent run per study, a nested run per trial, curves by step.

    track("digits", MlflowTracker("http://mlflow.example:5000"), storage="sqlite:///scrimp.db")

The cursor is a tag of the parent run. A trial that was stopped early is a run that was killed, in
MLflow's words. Times are those of the log, so that what is written twice after a crash is the same.
"""

from collections.abc import Sequence

try:
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag
except ModuleNotFoundError as error:
    raise ImportError(
        f"MlflowTracker needs {error.name}, not installed here; pip install 'scrimp[mlflow]'"
    ) from None

from scrimp.history.history import History
from scrimp.history.trial import Trial
from scrimp.integrations.tracker import Tracker, TrialNews, finite_metrics, step_number
from scrimp.showing.standing import is_over

__all__ = ["MlflowTracker"]

STUDY, TRIAL, CURSOR, PARENT = "scrimp.study", "scrimp.trial", "scrimp.cursor", "mlflow.parentRunId"
STATUSES = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
MOST = 100  # parameters in one call


class MlflowTracker(Tracker):
    """Runs in an ``experiment`` of the tracking server at ``uri``, by MLflow's own rules if left
    out (``MLFLOW_TRACKING_URI``)."""

    def __init__(self, uri: str | None = None, *, experiment: str = "scrimp") -> None:
        self._uri, self._experiment = uri, experiment
        self._client: MlflowClient | None = None
        self._where = self._parent = ""
        self._runs: dict[int, str] = {}

    @property
    def label(self) -> str:
        return f"MLflow at {self._uri}" if self._uri else "MLflow"

    def begin(self, history: History) -> int:
        client = self._client = MlflowClient(self._uri)
        known = client.get_experiment_by_name(self._experiment)
        name = self._experiment
        where = client.create_experiment(name) if known is None else known.experiment_id
        self._where = str(where)
        found = client.search_runs([where], f"tags.`{STUDY}` = '{history.identity}'")
        parents = [run for run in found if PARENT not in run.data.tags]
        if not parents:
            self._parent = self._new_parent(client, history)
            self._runs = {}
            return 0
        self._parent = str(parents[0].info.run_id)
        self._runs = self._children(client)
        return int(parents[0].data.tags.get(CURSOR, "0"))

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        client = self._client
        assert client is not None, "begin comes first"
        for item in news:
            match item.kind:
                case "added":
                    self._add(client, item.trial, item.time)
                case "reported":
                    self._report(client, item)
                case "ended":
                    self._end(client, item)
                case "reopened":
                    client.update_run(self._runs[item.trial.id], status="RUNNING")
        if any(item.kind == "ended" for item in news):
            self._show_best(client, history)
        client.set_tag(self._parent, CURSOR, str(history.length))
        over = is_over(history)
        client.update_run(self._parent, status="FINISHED" if over else "RUNNING")

    def close(self) -> None:
        self._client = None

    def _new_parent(self, client: MlflowClient, history: History) -> str:
        created, problem = history.created, history.problem
        tags = {STUDY: history.identity, CURSOR: "0"}
        start = _milliseconds(created.time)
        run = client.create_run(self._where, start_time=start, tags=tags, run_name=created.name)
        parent = str(run.info.run_id)
        said = {"metric": problem.metric, "direction": problem.direction}
        said["method"] = str(history.method.get("name", ""))
        client.log_batch(parent, params=[Param(name, value) for name, value in said.items()])
        return parent

    def _children(self, client: MlflowClient) -> dict[int, str]:
        """Runs of trials that are there already."""
        runs: dict[int, str] = {}
        token = None
        while True:
            query = f"tags.`{PARENT}` = '{self._parent}'"
            page = client.search_runs([self._where], query, max_results=1000, page_token=token)
            runs |= {int(run.data.tags[TRIAL]): str(run.info.run_id) for run in page}
            token = page.token
            if not token:
                return runs

    def _add(self, client: MlflowClient, trial: Trial, time: float) -> None:
        if trial.id not in self._runs:
            tags = {PARENT: self._parent, TRIAL: str(trial.id)}
            name, start = f"trial {trial.id}", _milliseconds(time)
            run = client.create_run(self._where, start_time=start, tags=tags, run_name=name)
            self._runs[trial.id] = str(run.info.run_id)
        params = [Param(name, str(value)) for name, value in trial.config.items()]
        for first in range(0, len(params), MOST):
            client.log_batch(self._runs[trial.id], params=params[first : first + MOST])

    def _report(self, client: MlflowClient, item: TrialNews) -> None:
        assert item.point is not None
        step, time = step_number(item.trial, item.point), _milliseconds(item.time)
        metrics = [
            Metric(name, value, time, step) for name, value in finite_metrics(item.point).items()
        ]
        client.log_batch(self._runs[item.trial.id], metrics=metrics)

    def _end(self, client: MlflowClient, item: TrialNews) -> None:
        run, trial = self._runs[item.trial.id], item.trial
        if trial.message:
            client.log_batch(run, tags=[RunTag("scrimp.message", trial.message[:5000])])
        client.set_terminated(run, STATUSES[trial.status], _milliseconds(item.time))

    def _show_best(self, client: MlflowClient, history: History) -> None:
        """The best value so far, by the number of trials that have ended."""
        if history.best is None:
            return
        trial, point = history.best
        ended = sum(known.finished for known in history.trials)
        name, value = f"best_{history.problem.metric}", history.problem.value(point.loss)
        best = Metric(name, value, _milliseconds(history.time), ended)
        client.log_batch(self._parent, metrics=[best])
        client.set_tag(self._parent, "scrimp.best_trial", str(trial.id))


def _milliseconds(seconds: float) -> int:
    return round(1000 * seconds)
