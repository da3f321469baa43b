"""Where SQLite must not go: on network file systems its locks and its shared memory are not shared,
and files get damaged."""

import re
from pathlib import Path

from scrimp.errors import StorageError

__all__ = ["check_local", "file_system"]

MOUNTS = Path("/proc/self/mountinfo")  # Linux only: elsewhere nothing is known, and nothing refused

NETWORK = re.compile(
    r"(fuse\.)?(nfs\d?|cifs|smb\d?|smbfs|smbnetfs|ncpfs|afs|coda|9p|lustre|gpfs|mmfs|beegfs|ceph|pvfs2|orangefs|panfs"
    r"|glusterfs|sshfs|s3fs|gcsfuse|rclone|juicefs|moosefs|mfs|davfs|goofys|blobfuse2?)"
)


def file_system(path: Path, mounts: str) -> str | None:
    """The type of file system ``path`` lies on, given the text of /proc/self/mountinfo; None when
    it does not say.

    A line reads ``36 35 98:0 /root /mount/point options optional-fields - type source
    super-options``.
    """
    target = path.resolve()
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        left, separator, right = line.partition(" - ")
        if not separator or len(left.split()) < 5:
            continue
        place = left.split()[4]
        for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
            place = place.replace(code, character)
        mount = Path(place)
        if target.is_relative_to(mount) and (found is None or len(mount.parts) >= found[0]):
            found = (
                len(mount.parts),
                right.split()[0],
            )  # of two mounts on one place, the later hides the earlier
    return None if found is None else found[1]


def check_local(path: Path) -> None:
    """`StorageError` when ``path`` is on a network file system."""
    try:
        mounts = MOUNTS.read_text()
    except OSError:
        return
    kind = file_system(path, mounts)
    if kind is not None and NETWORK.fullmatch(kind):
        raise StorageError(
            f"{path} is on a network file system ({kind}), where SQLite databases get damaged; use"
            " a local disk, a PostgreSQL server (postgresql://user@host/database), or a journal"
            f" folder (journal:///{path.with_suffix('')})"
        )
