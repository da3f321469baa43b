"""Checks of user input: numbers, and names that are nearly right.

if not is_whole(workers, least=1):
    raise StudyError(f"workers is {workers!r}; it must be an integer of at least 1")
raise MethodError(f"there is no kernel {name!r}{did_you_mean(name, kernels)}")
"""

import math
from collections.abc import Iterable, Mapping
from typing import TypeGuard


def is_number(value: object) -> TypeGuard[int | float]:
    """True for an int or a float; False for True and False."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[int | float]:
    """True for a finite number that double precision can represent.

    >>> is_finite(0.5), is_finite(True), is_finite(float("nan")), is_finite(10**400)
    (True, False, False, False)
    """
    try:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        )
    except OverflowError:
        # An integer beyond double precision.
        return False


def is_positive(value: object) -> TypeGuard[int | float]:
    """True for a number above zero, infinity included.

    >>> is_positive(3), is_positive(float("inf")), is_positive(0), is_positive(float("nan"))
    (True, True, False, False)
    """
    return is_number(value) and value > 0


def is_whole(value: object, least: int = 0) -> TypeGuard[int]:
    """True for an int of at least ``least``.

    >>> is_whole(3), is_whole(3.0), is_whole(True), is_whole(0, least=1)
    (True, False, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def nearly_equal(config: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """True if two configurations differ by at most a hundredth in every number.

    >>> nearly_equal({"lr": 0.1, "layers": 2}, {"lr": 0.1005, "layers": 2})
    True
    """
    return config.keys() == other.keys() and all(
        math.isclose(value, number, rel_tol=0.01)
        if isinstance(value, float) and is_number(number := other[name])
        else value == other[name]
        for name, value in config.items()
    )


def nearest_name(word: object, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name spelt most like ``word``; None if none is similar."""
    # Imported here because only error messages need it.
    from difflib import get_close_matches

    names = list(known)
    for name in names:
        if name.lower() == str(word).lower():
            return name
    return next(iter(get_close_matches(str(word), names, 1, cutoff)), None)


def check_known(
    what: str,
    names: Iterable[str],
    known: Iterable[str],
    error: type[Exception],
    where: str = "",
) -> None:
    """Raise ``error`` for the first of the names that is not known.

    >>> check_known("task", ["three"], ["one", "two"], ValueError, "in table 'small'")
    Traceback (most recent call last):
    ...
    ValueError: there is no task 'three' in table 'small'; there are one, two
    """
    place = f" {where}" if where else ""
    listed = list(known)
    for name in names:
        if name not in listed:
            raise error(f"there is no {what} {name!r}{place}; there are {', '.join(listed)}")


def did_you_mean(word: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint to append to a message about an unknown name.

    >>> did_you_mean("matern25", ["rbf", "matern52"])
    "; did you mean 'matern52'?"
    """
    near = nearest_name(word, known)
    return otherwise if near is None else f"; did you mean {near!r}?"
