"""A TOML file read as a whole: every mistake is named with its line, its key and the nearest valid name.

reading = TomlReading.of(path)
entries = reading.table(_File, reading.record, ())      # those that are right, each judged for itself
with reading.blamed_on("name"):
    check_name(entries["name"])
reading.refuse(str(path))                               # `StudyError` lists every mistake
"""

import tomllib
import typing
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from scrimp.checks import did_you_mean, nearest_name
from scrimp.errors import ScrimpError, StudyError
from scrimp.formats.run_options import option_of, replaced
from scrimp.formats.toml_lines import TomlLines
from scrimp.storage.text_file import text_of

__all__ = ["Count", "Entries", "Mistake", "Positive", "Text", "TomlReading"]

Count = Annotated[int, msgspec.Meta(ge=1)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Entries = dict[str, Any]
"""The entries of a table that are right, each of the type that its form says."""

Text = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True)
class Mistake:
    """One thing that is wrong, where, and what would be right."""

    key: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, "
        return f"{place}{self.key}: {self.message}"


@dataclass
class TomlReading:
    """One pass over a file, which gathers mistakes instead of ending at the first.

    ``options`` came from elsewhere, and replace what the file says. ``examples``: what to write for
    a key that is missing.
    """

    record: dict[str, object]
    folder: Path
    lines: TomlLines
    options: Mapping[str, object] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    @staticmethod
    def of(path: Path, examples: Mapping[str, str], options: Mapping[str, object]) -> "TomlReading":
        """The reading of a file; `StudyError` when it cannot be read or is no TOML."""
        try:
            text = text_of(path)
        except (OSError, UnicodeDecodeError) as error:
            raise StudyError(f"cannot read {path}: {error}") from None
        try:
            record = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:  # nested too deeply
            raise StudyError(f"{path} is no TOML: {error}") from None
        folder = path.resolve().parent
        return TomlReading(replaced(record, options), folder, TomlLines(text), options, examples)

    def refuse(self, source: str) -> None:
        """`StudyError` with every mistake, in the order of lines; nothing when there is none."""
        if not self.mistakes:
            return
        count = len(self.mistakes)
        ordered = sorted(self.mistakes, key=lambda mistake: mistake.line or 0)
        listed = "\n".join(f"  {mistake}" for mistake in ordered)
        raise StudyError(f"{source} has {count} mistake{'s' if count > 1 else ''}:\n{listed}")

    def wrong_keys(self) -> set[str]:
        """The keys that are wrong so far."""
        return {mistake.key for mistake in self.mistakes}

    def wrong(self, key: tuple[str, ...], message: str) -> None:
        """Note a mistake."""
        option = option_of(key, self.options)
        self.mistakes.append(
            Mistake(option or ".".join(key), message, None if option else self.lines.of(key))
        )

    @contextmanager
    def blamed_on(self, *key: str) -> typing.Iterator[None]:
        """What is raised within belongs to ``key``."""
        try:
            yield
        except ScrimpError as error:
            self.wrong(key, str(error))
        except Exception as error:  # of a module of the user's that is imported
            self.wrong(key, f"raises {type(error).__name__}: {error}")

    def table(self, form: type[msgspec.Struct], record: object, key: tuple[str, ...]) -> Entries:
        """The entries of a table that are right, each judged for itself."""
        if not isinstance(record, dict):
            example = f", such as [{'.'.join(key)}] with {', '.join(form.__struct_fields__[:3])}"
            self.wrong(key, f"is {record!r}; it must be a table{example}")
            return {}
        fields = {item.name: item for item in msgspec.structs.fields(form)}
        right: Entries = {}
        for name, value in record.items():
            if name not in fields:
                self.wrong((*key, name), f"there is no such key{_nearest(name, list(fields))}")
                continue
            inner = _struct(fields[name].type)
            if inner is not None:
                right[name] = self.table(inner, value, (*key, name))
                continue
            try:
                right[name] = msgspec.convert(value, fields[name].type)
            except msgspec.ValidationError as error:
                self.wrong((*key, name), _explained(value, fields[name].type, error))
        misspelt = {nearest_name(name, fields) for name in record if name not in fields}
        for name, item in fields.items():
            if item.required and name not in record and name not in misspelt:
                self.wrong((*key, name), f"is missing{self._example((*key, name))}")
        return right

    def _example(self, key: tuple[str, ...]) -> str:
        words = self.examples.get(".".join(key))
        return "" if words is None else f"; {words}"


def _struct(annotation: object) -> type[msgspec.Struct] | None:
    """The table a field holds, if any."""
    options = typing.get_args(annotation) or (annotation,)
    return next(
        (item for item in options if isinstance(item, type) and issubclass(item, msgspec.Struct)),
        None,
    )


def _explained(value: object, annotation: object, error: msgspec.ValidationError) -> str:
    """Why a value does not fit; the nearest valid word where there are words."""
    words = [word for item in (annotation, *typing.get_args(annotation)) for word in _words(item)]
    if words and isinstance(value, str):
        begun = [word for word in words if value and word.startswith(value)]
        hint = did_you_mean(value, words, f"; did you mean {begun[0]!r}?" if begun else "")
        return f"is {value!r}; it must be one of {', '.join(map(repr, words))}{hint}"
    reason = str(error).partition(" - at ")[0].partition(", got")[0].replace("`", "")
    for technical, plain in _PLAIN.items():
        reason = reason.replace(technical, plain)
    return f"is {value!r}; it must be {reason.removeprefix('Expected ')}"


_PLAIN = {
    " | null": "",
    "str of length >= 1": "a text that is not empty",
    "str": "a text in quotes",
    "array": "a list",
    "object": "a table",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    ">= ": "of at least ",
    "> ": "above ",
    " | ": " or ",
}
"""What msgspec says, in words; the longer ones first."""


def _words(annotation: object) -> tuple[str, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ()


def _nearest(name: str, names: list[str]) -> str:
    return did_you_mean(name, names, f"; valid are {', '.join(names)}")
