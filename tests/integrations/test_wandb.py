"""Studies in Weights & Biases, offline, read back from its files."""

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

wandb = pytest.importorskip(
    "wandb", reason="Weights & Biases is not installed: make test-integrations brings it"
)

from wandb.proto import wandb_internal_pb2

import scrimp
from scrimp.integrations.tracker import track
from scrimp.integrations.wandb import WandbTracker

pytestmark = pytest.mark.filterwarnings("ignore")


BLOCK, HEADER = 32768, 7


def pieces(data: bytes) -> Iterator[bytes]:
    """The records of a file in the format of LevelDB's logs, in blocks of 32 kB: after 7 bytes of
    W&B's own, each piece has a checksum, a length and a kind (whole, first, middle, last)."""
    place, begun = HEADER, b""
    while place < len(data):
        if BLOCK - place % BLOCK < HEADER:
            place += BLOCK - place % BLOCK
            continue
        length, kind = struct.unpack("<HB", data[place + 4 : place + HEADER])
        begun += data[place + HEADER : place + HEADER + length]
        place += HEADER + length
        if kind in (1, 4):
            yield begun
            begun = b""


def records(folder: Path, run: str) -> list[wandb_internal_pb2.Record]:
    """What a run wrote, over all its stretches; W&B's own process writes them to their ends."""
    found: list[wandb_internal_pb2.Record] = []
    for path in sorted(folder.glob(f"wandb/offline-run-*-{run}/run-{run}.wandb")):
        limit = time.monotonic() + 60
        while True:
            written = [wandb_internal_pb2.Record.FromString(p) for p in pieces(path.read_bytes())]
            if written and written[-1].WhichOneof("record_type") == "exit":
                break
            assert time.monotonic() < limit, f"{path} has no end"
            time.sleep(0.05)
        found += written
    return found


def history(folder: Path, run: str) -> list[dict[str, str]]:
    return [
        {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
        for record in records(folder, run)
        if record.WhichOneof("record_type") == "history"
    ]


def test_a_run_per_trial_that_goes_on(
    study: scrimp.Study, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    track("digits", WandbTracker("tests", folder=tmp_path), storage=url)
    prefix = study.history.identity[:12]
    curve = [(row["_step"], row["error"]) for row in history(tmp_path, f"{prefix}-0")]
    assert curve == [("1", "0.5"), ("2", "0.25"), ("3", "0.125")]
    (start,) = [r.run for r in records(tmp_path, f"{prefix}-1") if r.HasField("run")]
    assert start.run_group == "digits" and start.project == "tests"
    assert {item.key: item.value_json for item in start.config.update}["lr"] == "0.25"
    study.report(1, step=2, error=0.5)
    # W&B names the folder of a stretch by the second in which it starts.
    time.sleep(1.1)
    assert track("digits", WandbTracker("tests", folder=tmp_path), storage=url) == 1
    rows = [(row["_step"], row["error"]) for row in history(tmp_path, f"{prefix}-1")]
    assert rows == [("1", "0.75"), ("2", "0.5")]
