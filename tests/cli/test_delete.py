"""Deleting needs a yes."""

from collections.abc import Callable
from typing import Any

import scrimp


def test_it_asks_first(small: str, run: Callable[..., Any]) -> None:
    refused = run("delete", "small", "--storage", small)
    assert refused.exit_code == 2 and "5 trials; add --yes" in refused.stderr
    assert scrimp.studies(small) == ["small"]
    assert (
        "deleted 'small' with 5 trials"
        in run("delete", "small", "--storage", small, "--yes").stdout
    )
    assert scrimp.studies(small) == []
