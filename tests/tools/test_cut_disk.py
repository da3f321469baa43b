"""What was flushed is there after a cut; what was not is not; a full disk takes nothing."""

import subprocess
from pathlib import Path

import pytest

from scrimp.storage.durable_files import flush_folder, write_flushed
from tests.tools.cut_disk import CutDisk, can_cut


@pytest.mark.skipif(not can_cut(), reason="needs root, loop devices and mkfs.ext4")
def test_a_power_cut_takes_what_was_not_flushed(tmp_path: Path) -> None:
    try:
        with CutDisk(tmp_path, megabytes=16) as disk:
            write_flushed(disk.root / "kept", b"x" * 1000)
            flush_folder(disk.root)
            (disk.root / "lost").write_bytes(b"x" * 1000)
            with disk.cut() as left:
                assert (left / "kept").read_bytes() == b"x" * 1000
                assert not (left / "lost").exists() or (left / "lost").stat().st_size == 0
            with disk.full(), pytest.raises(OSError, match="No space left"):
                (disk.root / "more").write_bytes(bytes(1 << 20))
            (disk.root / "more").write_bytes(bytes(1 << 20))
    except subprocess.CalledProcessError:
        pytest.skip("no disk can be mounted here")
