"""Runs of a comparison kept as studies in a storage, so that every picture, page and command works
on them.

name, url = kept_at(cell, space) "curves/lcbench/adult/mobster-joint/0", "sqlite:///kept.db"
"""

import zlib

from scrimp.bench.results import Cell
from scrimp.errors import StudyError
from scrimp.space.space import Space
from scrimp.storage.open import without_secrets
from scrimp.storage.refusals import LONGEST_NAME
from scrimp.tuning.studies import delete_study, load_any, storage_at

__all__ = ["check_kept_in", "kept_at", "kept_name"]

NOWHERE = "memory://"


def check_kept_in(url: str) -> str:
    """``url`` itself where runs can be kept; the runs of a comparison are processes, so memory
    would forget them."""
    place = storage_at(url)
    place.names()  # says now, not after the first run, what is wrong with it
    if place.url.startswith(NOWHERE):
        raise StudyError(
            f"nothing can be kept in {url!r}; give a storage such as sqlite:///kept.db"
        )
    return url


def kept_name(cell: Cell) -> str:
    """The name of the study of a run: suite, table, task, method and seed."""
    name = f"{cell.suite}/{cell.table}/{cell.task}/{cell.method}/{cell.seed}"
    return (
        name
        if len(name) <= LONGEST_NAME
        else f"{name[: LONGEST_NAME - 9]}-{zlib.crc32(name.encode()):08x}"
    )


def kept_at(cell: Cell, space: Space) -> tuple[str, str]:
    """The name of the study of a run, and the URL of its storage; a study of an earlier attempt at
    it is replaced."""
    if not cell.keep:
        return "bench", NOWHERE
    name, place = kept_name(cell), storage_at(cell.keep)
    if name in place.names():
        if load_any(name, storage=place).history.problem.space != space:
            raise StudyError(
                f"{without_secrets(place.url)} holds another study {name!r}; delete it, or keep"
                " runs in another storage"
            )
        delete_study(name, storage=place)
    return name, cell.keep
