"""The tuning numbers: each says where it comes from, and each is used."""

import ast
import dataclasses
import inspect

from scrimp.freeze_thaw import freeze_thaw_numbers
from scrimp.freeze_thaw.freeze_thaw_numbers import Numbers
from tests.syntax_trees import PACKAGE


def test_every_number_says_where_it_comes_from() -> None:
    (numbers,) = (
        node
        for node in ast.parse(inspect.getsource(freeze_thaw_numbers)).body
        if isinstance(node, ast.ClassDef)
    )
    origins = {}
    for field, text in zip(numbers.body, numbers.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant), field.target
            origins[field.target.id] = str(text.value.value).lower()
    assert list(origins) == [field.name for field in dataclasses.fields(Numbers)]
    for name, text in origins.items():
        assert any(origin in text for origin in ("recipe", "notebook", "convention")), name


def test_every_number_is_used() -> None:
    source = "".join(path.read_text() for path in (PACKAGE / "freeze_thaw").glob("*.py"))
    unused = [
        field.name for field in dataclasses.fields(Numbers) if f"NUMBERS.{field.name}" not in source
    ]
    assert not unused
