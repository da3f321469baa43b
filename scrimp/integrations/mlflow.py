"""Studies in MLflow: a parent run per study, a nested run per trial, curves by step.

    track("digits", MlflowTracker("http://mlflow.example:5000"), storage="sqlite:///scrimp.db")

The cursor is a tag of the parent run. A trial that was stopped early is a run with MLflow's status
KILLED. Times are those of the log, so writing an event again after a crash changes nothing.
"""

from collections.abc import Sequence

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import Tracker, TrialNews, finite_metrics, step_number
from scrimp.study_log.history import History
from scrimp.study_log.record import is_over
from scrimp.study_log.trial import Trial

with extra("mlflow", "MlflowTracker"):
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param, RunTag

STUDY, TRIAL, CURSOR, PARENT = "scrimp.study", "scrimp.trial", "scrimp.cursor", "mlflow.parentRunId"
STATUSES = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
MAX_PARAMETERS_PER_CALL = 100
"""Limit of MLflow's log_batch."""


class MlflowTracker(Tracker):
    """Runs in an ``experiment`` of the tracking server at ``uri``; the default is MLflow's own
    (``MLFLOW_TRACKING_URI``)."""

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
        name = self._experiment
        known = client.get_experiment_by_name(name)
        self._where = str(client.create_experiment(name) if known is None else known.experiment_id)
        found = client.search_runs([self._where], f"tags.`{STUDY}` = '{history.identity}'")
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
        client.update_run(self._parent, status="FINISHED" if is_over(history) else "RUNNING")

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
        """Return the runs of trials that exist already."""
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
        for first in range(0, len(params), MAX_PARAMETERS_PER_CALL):
            client.log_batch(
                self._runs[trial.id], params=params[first : first + MAX_PARAMETERS_PER_CALL]
            )

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
        """Log the best value so far, at the number of trials that have ended."""
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
