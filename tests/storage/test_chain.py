"""The chain vouches for every row and for all before it."""

from hashlib import sha256

import pytest

from scrimp.errors import StorageError
from scrimp.storage.chain import check_chain, link


def chained(texts: list[bytes]) -> list[tuple[bytes, bytes | None]]:
    rows: list[tuple[bytes, bytes | None]] = []
    before = None
    for text in texts:
        before = link(before, text)
        rows.append((text, before))
    return rows


def test_the_formula() -> None:
    first = sha256(b"a").digest()[:16]
    assert link(None, b"a") == first
    assert link(first, b"b") == sha256(first + b"b").digest()[:16]


def test_rows_as_stored_pass() -> None:
    check_chain(chained([b"a", b"b", b"c"]), "s")
    check_chain([(b"old", None), (b"older", None), *chained([b"a", b"b"])], "s")
    check_chain([], "s")


@pytest.mark.parametrize(
    ("damage", "position"),
    [
        (lambda rows: [rows[0], (b"x", rows[1][1]), rows[2]], 1),
        (lambda rows: [rows[0], rows[2]], 1),
        (lambda rows: [rows[1], rows[0], rows[2]], 0),
        (lambda rows: [*rows, (b"new", None)], 3),
        (lambda rows: [rows[0], (rows[1][0], None), rows[2]], 1),
        (lambda rows: [(b"x", None), *rows[1:]], 1),
    ],
)
def test_damage_is_named(damage, position: int) -> None:  # type: ignore[no-untyped-def]
    rows = damage(chained([b"a", b"b", b"c"]))
    with pytest.raises(StorageError, match=f"event {position} of study 's' is not what was stored"):
        check_chain(rows, "s")
