"""Imports of optional libraries: a missing one raises an error that names the extra to install.

with extra("optuna", "ScrimpSampler"):
    import optuna
"""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str, needed_by: str) -> Iterator[None]:
    """Import libraries of the extra ``name`` inside the block; `ImportError` if one is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{needed_by} needs {error.name}, not installed here; pip install 'scrimp[{name}]'"
        ) from None
