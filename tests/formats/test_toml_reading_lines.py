"""The lines of keys in TOML texts."""

import pytest

from scrimp.formats.toml_reading import line_of

TEXT = """\
name = "digits"  # a comment with [brackets] and = signs
"quoted key" = 1
run.workers = 2

[space]
lr = {type = "float", low = 1}
kinds = [
  "a",
]

[space.momentum]
type = "float"

[ budget . inner ]
x = 1
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("name",), 1),
        (("quoted key",), 2),
        (("run",), 3),
        (("run", "workers"), 3),
        (("run", "n_trials"), 3),
        (("space",), 5),
        (("space", "lr"), 6),
        (("space", "lr", "low"), 6),
        (("space", "kinds"), 7),
        (("space", "momentum", "type"), 12),
        (("space", "momentum", "low"), 11),
        (("budget", "inner", "x"), 15),
        (("nowhere",), None),
    ],
)
def test_places(key: tuple[str, ...], line: int | None) -> None:
    assert line_of(key, TEXT) == line
