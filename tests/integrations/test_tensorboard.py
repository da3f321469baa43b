"""Studies in TensorBoard, read back by TensorBoard's own readers."""

from pathlib import Path

import pytest

pytest.importorskip(
    "tensorboard", reason="TensorBoard is not installed: make test-integrations brings it"
)

from msgspec.structs import replace
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2

import scrimp
from scrimp.integrations.tensorboard import TensorBoardTracker
from scrimp.integrations.tracker import track
from scrimp.storage.memory import MemoryStorage

pytestmark = pytest.mark.filterwarnings("ignore")


def read(folder: Path) -> EventAccumulator:
    found = EventAccumulator(str(folder))
    found.Reload()
    return found


def hparams(found: EventAccumulator) -> dict[str, plugin_data_pb2.HParamsPluginData]:
    return {
        tag: plugin_data_pb2.HParamsPluginData.FromString(content)
        for tag, content in found.PluginTagToContent("hparams").items()
    }


def test_curves_and_the_hparams_tab(study: scrimp.Study, url: str, tmp_path: Path) -> None:
    track("digits", TensorBoardTracker(tmp_path / "runs"), storage=url)
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name == f"digits-{study.history.identity[:8]}"
    first = read(folder / "trial-000000")
    points = [(point.step, point.value) for point in first.Scalars("error")]
    assert points == [(1, 0.5), (2, 0.25), (3, 0.125)]
    session = hparams(first)
    start = session["_hparams_/session_start_info"].session_start_info
    assert start.hparams["lr"].number_value == 0.0 and start.hparams["kind"].string_value == "a"
    assert session["_hparams_/session_end_info"].session_end_info.status == api_pb2.STATUS_SUCCESS
    failed = hparams(read(folder / "trial-000002"))["_hparams_/session_end_info"]
    assert failed.session_end_info.status == api_pb2.STATUS_FAILURE
    experiment = hparams(read(folder))["_hparams_/experiment"].experiment
    assert [info.name for info in experiment.hparam_infos] == ["lr", "kind"]
    assert [info.name.tag for info in experiment.metric_infos] == ["error"]


def test_another_process_goes_on(study: scrimp.Study, url: str, tmp_path: Path) -> None:
    track("digits", TensorBoardTracker(tmp_path / "runs"), storage=url)
    study.report(1, step=2, error=0.5)
    assert track("digits", TensorBoardTracker(tmp_path / "runs"), storage=url) == 1
    (folder,) = (tmp_path / "runs").iterdir()
    points = read(folder / "trial-000001").Scalars("error")
    assert sorted((point.step, point.value) for point in points) == [(1, 0.75), (2, 0.5)]


@pytest.mark.parametrize("identity", ["/../../o", "../../up/x", "/absolute/path"])
def test_nothing_is_written_outside_the_folder(
    study: scrimp.Study, tmp_path: Path, identity: str
) -> None:
    storage = MemoryStorage()
    first, *rest = study.history.events
    storage.create("digits", [replace(first, identity=identity), *rest])
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    track("digits", TensorBoardTracker(tmp_path / "in" / "runs"), storage=storage)
    written = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert written and all(path.is_relative_to(tmp_path / "in" / "runs") for path in written)
