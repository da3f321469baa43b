"""A disk whose power can be cut: ext4 in a file, of which a copy shows what a power cut would have
left.

The copy is made without unmounting or flushing, and mounted beside the original, which stays in
use. This needs root, loop devices and ``mkfs.ext4``; elsewhere `can_cut` returns False. The disk
can also be filled.

    with CutDisk(folder) as disk:
        run_something_in(disk.root)
        with disk.cut() as left:
            look_at(left)
"""

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType


def can_cut() -> bool:
    """Return whether a disk can be made and mounted here."""
    tools = all(shutil.which(tool) for tool in ("mkfs.ext4", "mount", "umount", "cp"))
    return tools and os.geteuid() == 0 and os.path.exists("/dev/loop-control")


class CutDisk:
    """A disk of ``megabytes`` in ``folder``, mounted at ``root``."""

    def __init__(self, folder: Path, megabytes: int = 256) -> None:
        self._folder = folder
        self._image = folder / "disk.img"
        self._size = megabytes
        self.root = folder / "disk"

    def __enter__(self) -> "CutDisk":
        self.root.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(self._size << 20)
        _run("mkfs.ext4", "-q", "-F", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.root))
        os.sync()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _unmount(self.root)

    @contextlib.contextmanager
    def cut(self) -> Iterator[Path]:
        """Yield a folder with the state of the disk after a power cut at this moment."""
        copy, place = self._folder / "cut.img", self._folder / "cut"
        place.mkdir(exist_ok=True)
        _run("cp", "--sparse=always", str(self._image), str(copy))
        _run("mount", "-o", "loop", str(copy), str(place))
        try:
            yield place
        finally:
            _unmount(place)
            copy.unlink()

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        """Fill the disk within the block."""
        filler = self.root / "filler"
        try:
            with contextlib.suppress(OSError), filler.open("wb") as file:
                free = os.statvfs(self.root)
                os.posix_fallocate(
                    file.fileno(), 0, max(free.f_bfree * free.f_frsize - (1 << 20), 1)
                )
                while True:
                    try:
                        os.write(file.fileno(), bytes(4096))
                    except OSError as error:
                        if error.errno == errno.ENOSPC:
                            break
                        raise
            yield
        finally:
            filler.unlink(missing_ok=True)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


def _unmount(place: Path) -> None:
    for _ in range(50):
        if subprocess.run(["umount", str(place)], capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", "-l", str(place)], capture_output=True)
