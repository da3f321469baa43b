"""Settings that a method offers flat, gathered again into the object that a part of it takes.

A user writes ``mobster-joint:kernel=rbf-ard,max_data=200``; the model of budgets takes a
`CurveSettings`. Both have fields of the same names.

    shared_settings(CurveSettings, self, dense=True)
"""

import dataclasses
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["shared_settings"]

T = TypeVar("T", bound="DataclassInstance")


def shared_settings(kind: type[T], method: "DataclassInstance", **fixed: object) -> T:
    """A ``kind`` whose fields are those of ``method`` with the same names, and ``fixed`` ones; the
    rest have their defaults."""
    offered = {item.name for item in dataclasses.fields(method)}
    shared = {
        item.name: getattr(method, item.name)
        for item in dataclasses.fields(kind)
        if item.name in offered
    }
    return kind(**{**shared, **fixed})
