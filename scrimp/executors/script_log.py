"""What a script prints, kept beside its checkpoints for whoever looks later. It may fail; the trial does not fail with it."""

import contextlib
import os
from pathlib import Path

__all__ = ["ScriptLog"]


class ScriptLog:
    """Appends to ``path``; what the disk does not take is dropped, and a remark says so once it takes some again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Keep ``data`` if possible."""
        try:
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            if self._dropped:
                remark = f"[scrimp] {self._dropped} bytes are missing here: the disk did not take them\n"
                os.write(self._descriptor, remark.encode())
                self._dropped = 0
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self._dropped += len(data)

    def close(self) -> None:
        """Close the file, if there is one."""
        if self._descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None
