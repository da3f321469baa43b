"""How far a tracker has shown a study, in a small JSON file beside what it wrote."""

import json
import os
from dataclasses import dataclass
from pathlib import Path

from scrimp.errors import StudyError

__all__ = ["CursorFile"]


@dataclass(frozen=True)
class CursorFile:
    """``path`` holds the identity of one study, a number of events, and what else the tracker
    needs to go on, by trial."""

    path: Path

    def read(self, identity: str) -> tuple[int, dict[str, str]]:
        """The cursor and the tracker's own words; `StudyError` when another study is shown there."""
        try:
            record = json.loads(self.path.read_text(encoding="utf-8"))
            known, cursor, words = record["study"], int(record["cursor"]), dict(record["trials"])
        except FileNotFoundError:
            return 0, {}
        except (ValueError, KeyError, TypeError):
            raise StudyError(
                f"{str(self.path)!r} does not say how far a study was shown; remove it to show the"
                " study from its beginning"
            ) from None
        if known != identity:
            raise StudyError(
                f"{str(self.path.parent)!r} shows another study of this name; give another place"
            )
        return cursor, words

    def write(self, identity: str, cursor: int, words: dict[str, str]) -> None:
        """Replace the file in one step."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = {"study": identity, "cursor": cursor, "trials": words}
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(record), encoding="utf-8")
        os.replace(beside, self.path)
