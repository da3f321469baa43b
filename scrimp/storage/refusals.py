"""What every store refuses, in the same words: bad names, unknown studies, decisions that were
taken already."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from scrimp.errors import Conflict, StorageError, StudyError
from scrimp.storage.event_json import Appended, encode

__all__ = [
    "check_name",
    "decision_taken",
    "deleted_study",
    "existing_study",
    "lines_of",
    "missing_file",
    "missing_folder",
    "unknown_study",
]

LONGEST_NAME = 200


def check_name(name: str) -> str:
    """``name`` itself when a study may have it: 1 to 200 printable characters, not all blank."""
    if not isinstance(name, str) or not name.strip():
        raise StudyError(
            f"study name is {name!r}; give it a name of 1 to {LONGEST_NAME} characters"
        )
    if len(name) > LONGEST_NAME:
        raise StudyError(
            f"study name {name[:30]!r}… has {len(name)} characters; at most {LONGEST_NAME} are"
            " allowed"
        )
    if not name.isprintable():
        bad = next(character for character in name if not character.isprintable())
        raise StudyError(
            f"study name {name!r} contains {bad!r}; use printable characters and plain spaces only"
        )
    return name


def lines_of(
    events: Sequence[Appended], decision: int | None = None, *, first: bool = False
) -> list[str]:
    """The lines of a batch; only a batch without a number may be empty, and not the ``first`` of a
    study."""
    lines = encode(events)
    if not lines and (first or decision is not None):
        what = "a new study" if first else f"decision {decision}"
        raise StorageError(
            f"{what} came without events; it needs at least one to be seen in the log"
        )
    return lines


def unknown_study(name: str, names: Sequence[str], url: str) -> StudyError:
    """There is no such study, but perhaps one of a similar name."""
    near = get_close_matches(name, names, n=3)
    if near:
        hint = "did you mean " + " or ".join(repr(other) for other in near) + "?"
    else:
        hint = (
            f"it holds {len(names)} studies: `scrimp studies` lists them"
            if names
            else "it holds no study yet"
        )
    return StudyError(f"no study {name!r} in {url}; {hint}")


def missing_file(name: str, path: str) -> StudyError:
    """There is not even a file in which the study could be."""
    return StudyError(
        f"no study {name!r}: there is no file {path}, so it holds no study yet. Say where it is"
        " with --storage or SCRIMP_STORAGE (in Python storage=...), or go to the folder it was"
        " made in"
    )


def existing_study(name: str, url: str) -> StudyError:
    """The name is taken."""
    return StudyError(
        f"study {name!r} exists already in {url}; choose another name, pass load_if_exists=True, or"
        " delete it first"
    )


def deleted_study(name: str, url: str) -> StudyError:
    """It was there when it was opened."""
    return StudyError(
        f"study {name!r} was deleted from {url} while in use; create it again to go on"
    )


def decision_taken(name: str, decision: int) -> Conflict:
    """Somebody was quicker."""
    return Conflict(
        f"decision {decision} of study {name!r} was taken by somebody else: read on and decide"
        " again"
    )


def missing_folder(path: Path, scheme: str) -> StorageError:
    """The folder that ``path`` should lie in is not there. A path that would be right from the root
    of the file system was meant to be absolute, and lacks a slash."""
    remedy = "create it, or choose another place"
    meant = Path("/") / path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else None
    if meant is not None and meant.parent != Path("/") and meant.parent.is_dir():
        remedy += f"; an absolute path has four slashes: {scheme}:///{meant}"
    return StorageError(f"{path.parent} is not a folder; {remedy}")
