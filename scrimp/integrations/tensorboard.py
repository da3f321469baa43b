"""Studies in TensorBoard: a folder of events per trial, curves by step, and the HParams tab.

    track("digits", TensorBoardTracker("runs"), storage="sqlite:///scrimp.db")
    # tensorboard --logdir runs

`TensorBoardTracker` writes to ``runs/digits-1f6a02c8/trial-000007``, named after the study and its
identity. It needs TensorBoard only, not TensorFlow or PyTorch.
"""

import re
from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import RunTracker, TrialNews, finite_metrics, step_number
from scrimp.json_values import Scalar
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("tensorboard", "TensorBoardTracker"):
    from google.protobuf import struct_pb2
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter


class TensorBoardTracker(RunTracker):
    """Event files below ``folder``, one folder per study and trial."""

    def __init__(self, folder: str | Path = "runs") -> None:
        super().__init__()
        self._folder = Path(folder)

    @property
    def label(self) -> str:
        return f"TensorBoard in {str(self._folder)!r}"

    def cursor_path(self, history: History) -> Path:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", history.created.name)[:60]
        self._place = self._folder / f"{name}-{history.identity[:8]}"
        return self._place / "scrimp.json"

    def begin(self, history: History) -> int:
        shown = super().begin(history)
        if not shown:
            self._describe(history)
        return shown

    def open(self, trial: Trial) -> EventFileWriter:
        return EventFileWriter(str(self._place / f"trial-{trial.id:06d}"))

    def show(self, run: EventFileWriter, item: TrialNews) -> None:
        match item.kind:
            case "added":
                run.add_event(_start(item))
            case "reported":
                run.add_event(_point(item))
            case "ended":
                run.add_event(_end(item))
        run.flush()

    def end(self, run: EventFileWriter, status: str) -> None:
        run.close()

    def _describe(self, history: History) -> None:
        """Declare the parameters and the metric that the HParams tab shows."""
        named = [api_pb2.HParamInfo(name=name) for name in history.problem.space.searched]
        metric = api_pb2.MetricInfo(name=api_pb2.MetricName(tag=history.problem.metric))
        experiment = api_pb2.Experiment(hparam_infos=named, metric_infos=[metric])
        content = plugin_data_pb2.HParamsPluginData(experiment=experiment)
        writer = EventFileWriter(str(self._place))
        writer.add_event(_about_hparams(metadata.EXPERIMENT_TAG, content, history.created.time))
        writer.close()


def _start(item: TrialNews) -> Event:
    trial, time = item.trial, item.time
    start = plugin_data_pb2.SessionStartInfo(start_time_secs=time, group_name=str(trial.id))
    for name, value in trial.config.items():
        start.hparams[name].CopyFrom(_value(value))
    content = plugin_data_pb2.HParamsPluginData(session_start_info=start)
    return _about_hparams(metadata.SESSION_START_INFO_TAG, content, time)


def _point(item: TrialNews) -> Event:
    assert item.point is not None
    metrics = finite_metrics(item.point)
    values = [Summary.Value(tag=name, simple_value=value) for name, value in metrics.items()]
    step = step_number(item.trial, item.point)
    return Event(wall_time=item.time, step=step, summary=Summary(value=values))


def _end(item: TrialNews) -> Event:
    failed = item.trial.status == "failed"
    done = api_pb2.STATUS_FAILURE if failed else api_pb2.STATUS_SUCCESS
    end = plugin_data_pb2.SessionEndInfo(status=done, end_time_secs=item.time)
    content = plugin_data_pb2.HParamsPluginData(session_end_info=end)
    return _about_hparams(metadata.SESSION_END_INFO_TAG, content, item.time)


def _about_hparams(tag: str, content: plugin_data_pb2.HParamsPluginData, time: float) -> Event:
    """Return an event that the HParams tab reads."""
    about = metadata.create_summary_metadata(content)
    value = Summary.Value(tag=tag, metadata=about, tensor=metadata.NULL_TENSOR)
    return Event(wall_time=time, summary=Summary(value=[value]))


def _value(value: Scalar) -> struct_pb2.Value:
    """Return a value in the type of the HParams tab."""
    match value:
        case bool():
            return struct_pb2.Value(bool_value=value)
        case int() | float():
            return struct_pb2.Value(number_value=value)
        case _:
            return struct_pb2.Value(string_value=str(value))
