"""Network file systems are told from local ones, and SQLite refuses them."""

from pathlib import Path

import pytest

from scrimp.errors import StorageError
from scrimp.storage import durable_files
from scrimp.storage.durable_files import check_local, file_system
from scrimp.storage.sqlite import SqliteStorage
from scrimp.testing.storages import first_event

MOUNTS = r"""
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
36 22 0:32 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
40 36 0:40 / /home/local\040disk rw - xfs /dev/vdb rw
41 22 0:41 / /scratch rw shared:7 master:2 - lustre 10.0.0.1@tcp:/scratch rw
42 22 0:42 / /data rw - ext4 /dev/vdc rw
43 42 0:43 / /data rw - fuse.sshfs me@host: rw
a broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/x.db", "ext4"),
        ("/home/ann/x.db", "nfs4"),
        ("/homework/x.db", "ext4"),
        ("/home/local disk/x.db", "xfs"),
        ("/scratch/a/b/x.db", "lustre"),
        ("/data/x.db", "fuse.sshfs"),
    ],
)
def test_the_deepest_and_latest_mount_counts(path: str, kind: str) -> None:
    assert file_system(Path(path), MOUNTS) == kind


def test_nothing_known() -> None:
    assert file_system(Path("/x.db"), "") is None


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "lustre",
        "gpfs",
        "beegfs",
        "ceph",
        "9p",
        "glusterfs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "afs",
    ],
)
def test_network_kinds(kind: str) -> None:
    assert durable_files.NETWORK.fullmatch(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "tmpfs",
        "overlay",
        "apfs",
        "f2fs",
        "fuseblk",
        "fuse.ntfs-3g",
        "virtiofs",
    ],
)
def test_local_kinds(kind: str) -> None:
    assert not durable_files.NETWORK.fullmatch(kind)


def test_this_folder_is_local(tmp_path: Path) -> None:
    check_local(tmp_path / "x.db")


def test_sqlite_refuses_a_network_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:1 / {tmp_path} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(durable_files, "MOUNTS", mounts)
    storage = SqliteStorage(tmp_path / "x.db")
    with pytest.raises(
        StorageError, match=r"network file system \(nfs4\).*postgresql://.*journal://"
    ):
        storage.create("a", [first_event("a")])
    assert not (tmp_path / "x.db").exists()


def test_without_a_list_of_mounts_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable_files, "MOUNTS", tmp_path / "missing")
    check_local(tmp_path)
