"""Studies in TensorBoard: a folder of events per trial, curves by step, and the HParams tab.

    track("digits", TensorBoardTracker("runs"), storage="sqlite:///scrimp.db")
    # tensorboard --logdir runs

`TensorBoardTracker` writes to ``runs/digits-1f6a02c8/trial-000007``, named after the study and its
identity. It needs TensorBoard only, not TensorFlow or PyTorch.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from scrimp.integrations.extras import extra
from scrimp.integrations.tracker import CursorFile, Tracker, TrialNews, finite_metrics, step_number
from scrimp.json_values import Scalar
from scrimp.study_log.history import History
from scrimp.study_log.trial import Trial

with extra("tensorboard", "TensorBoardTracker"):
    from google.protobuf import struct_pb2
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter


class TensorBoardTracker(Tracker):
    """Event files below ``folder``, one folder per study and trial."""

    def __init__(self, folder: str | Path = "runs") -> None:
        self._folder = Path(folder)
        self._writers: dict[int, EventFileWriter] = {}
        self._identity = ""

    @property
    def label(self) -> str:
        return f"TensorBoard in {str(self._folder)!r}"

    def begin(self, history: History) -> int:
        self.close()
        self._identity = history.identity
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", history.created.name)[:60]
        self._place = self._folder / f"{name}-{history.identity[:8]}"
        self._cursor = CursorFile(self._place / "scrimp.json")
        shown, _ = self._cursor.read(history.identity)
        if not shown:
            self._describe(history)
        return shown

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        for item in news:
            match item.kind:
                case "added":
                    self._add(item.trial, item.time)
                case "reported":
                    self._report(item)
                case "ended":
                    self._end(item.trial, item.time)
                case "reopened":
                    pass
        for number in list(self._writers):
            self._writers[number].flush()
            if history.trials[number].status != "running":
                self._writers.pop(number).close()
        self._cursor.write(self._identity, history.length, {})

    def close(self) -> None:
        while self._writers:
            self._writers.popitem()[1].close()

    def _writer(self, trial: Trial) -> EventFileWriter:
        if trial.id not in self._writers:
            folder = self._place / f"trial-{trial.id:06d}"
            self._writers[trial.id] = EventFileWriter(str(folder))
        return self._writers[trial.id]

    def _describe(self, history: History) -> None:
        """Declare the parameters and the metric that the HParams tab shows."""
        named = [api_pb2.HParamInfo(name=name) for name in history.problem.space.searched]
        metric = api_pb2.MetricName(tag=history.problem.metric)
        content = plugin_data_pb2.HParamsPluginData(
            experiment=api_pb2.Experiment(
                hparam_infos=named, metric_infos=[api_pb2.MetricInfo(name=metric)]
            )
        )
        writer = EventFileWriter(str(self._place))
        writer.add_event(_about_hparams(metadata.EXPERIMENT_TAG, content, history.created.time))
        writer.close()

    def _add(self, trial: Trial, time: float) -> None:
        start = plugin_data_pb2.SessionStartInfo(start_time_secs=time, group_name=str(trial.id))
        for name, value in trial.config.items():
            start.hparams[name].CopyFrom(_value(value))
        content = plugin_data_pb2.HParamsPluginData(session_start_info=start)
        self._writer(trial).add_event(
            _about_hparams(metadata.SESSION_START_INFO_TAG, content, time)
        )

    def _report(self, item: TrialNews) -> None:
        assert item.point is not None
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in finite_metrics(item.point).items()
        ]
        step = step_number(item.trial, item.point)
        event = Event(wall_time=item.time, step=step, summary=Summary(value=values))
        self._writer(item.trial).add_event(event)

    def _end(self, trial: Trial, time: float) -> None:
        done = api_pb2.STATUS_FAILURE if trial.status == "failed" else api_pb2.STATUS_SUCCESS
        end = plugin_data_pb2.SessionEndInfo(status=done, end_time_secs=time)
        content = plugin_data_pb2.HParamsPluginData(session_end_info=end)
        self._writer(trial).add_event(_about_hparams(metadata.SESSION_END_INFO_TAG, content, time))


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
