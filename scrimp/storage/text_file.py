"""Text files of people: whatever editor or spreadsheet wrote them.

UTF-8, with or without a byte-order mark, and UTF-16 or UTF-32 with one. Anything else is refused
with the place of the first byte that fits nowhere: guessing an encoding would change names
silently.
"""

import codecs
import stat
from pathlib import Path

from scrimp.errors import StudyError

__all__ = ["text_of"]

MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_of(path: Path) -> str:
    """The text in a file; `StudyError` when it is none, and `OSError` when it cannot be read."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StudyError(f"{str(path)!r} is a folder, a pipe or a device; give a file")
    data = path.read_bytes()
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{str(path)!r} is no text in {encoding.upper().removesuffix('-SIG')}: line {line}"
            f" holds the byte 0x{data[min(error.start, len(data) - 1)]:02x}; save it as UTF-8, for"
            f" instance with `iconv -f latin1 -t utf-8 {path.name}`"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise StudyError(
            f"{str(path)!r} holds a zero byte in line {line}, so it is no text; save it as UTF-8"
        )
    return text
