"""TOML files read as a whole: every mistake is reported with its line, its key and the nearest valid
name.

    reading = TomlReading.of(path, examples, options)
    entries = reading.table(_File, reading.record, ())      # the valid entries
    with reading.blamed_on("name"):
        check_name(entries["name"])
    reading.refuse(str(path))                               # `StudyError` lists every mistake

Options of the command line replace keys of the file. Text files may be UTF-8, with or without a
byte-order mark, or UTF-16 and UTF-32 with one. Anything else is refused with the line of the first
invalid byte: guessing an encoding would change names silently.
"""

import codecs
import re
import stat
import tomllib
import typing
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

import msgspec

from scrimp.checks import did_you_mean, nearest_name
from scrimp.errors import ScrimpError, StudyError
from scrimp.space.space_text import number_or_text

Count = Annotated[int, msgspec.Meta(ge=1)]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
Entries = dict[str, Any]
"""The valid entries of a table, each of its declared type."""

_BARE = r"[A-Za-z0-9_-]+"
_KEY = rf"""(?:{_BARE}|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"^\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_ENTRY = re.compile(rf"^\s*({_DOTTED})\s*=")


def line_of(key: tuple[str, ...], text: str) -> int | None:
    """Return the line of a key in a TOML text, or of the innermost table around it; None if there is
    none. Parsers do not keep lines."""
    places: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            places.setdefault(table, number)
        elif entry := _ENTRY.match(line):
            inner = (*table, *_parts(entry[1]))
            for length in range(len(table) + 1, len(inner) + 1):
                places.setdefault(inner[:length], number)
    around = (key[:length] for length in range(len(key), 0, -1))
    return next((places[each] for each in around if each in places), None)


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))


MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_of(path: Path) -> str:
    """Read a text file; raises `StudyError` if it is not text, `OSError` if it is unreadable."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise StudyError(f"{str(path)!r} is a folder, a pipe or a device; give a file")
    data = path.read_bytes()
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(
            f"{str(path)!r} is not text in {encoding.upper().removesuffix('-SIG')}: line {line}"
            f" contains the byte 0x{data[min(error.start, len(data) - 1)]:02x}; save it as UTF-8, for"
            f" instance with `iconv -f latin1 -t utf-8 {path.name}`"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise StudyError(
            f"{str(path)!r} contains a zero byte in line {line}, so it is not text; save it as UTF-8"
        )
    return text


_NUMBER = r"[^\s,()]+"
_BUDGET = re.compile(
    rf"\s*(?P<name>[A-Za-z_]\w*)\s*\(\s*(?P<low>{_NUMBER})\s*,\s*(?P<high>{_NUMBER})\s*\)\s*"
)


def replaced(record: Mapping[str, object], options: Mapping[str, object]) -> dict[str, object]:
    """Return the record of a study file with values replaced at dotted keys; a table is merged, not
    replaced.

    >>> replaced({"seed": 1, "run": {"workers": 2}}, {"seed": 3, "run.n_trials": 60})
    {'seed': 3, 'run': {'workers': 2, 'n_trials': 60}}
    """
    result = dict(record)
    for key, value in options.items():
        first, _, rest = key.partition(".")
        known = result.get(first)
        if rest:
            result[first] = (
                replaced(known, {rest: value})
                if isinstance(known, dict)
                else known or {rest: value}
            )
        elif first == "space" and isinstance(value, dict) and isinstance(known, dict):
            result[first] = {**known, **value}
        else:
            result[first] = value
    return result


def option_of(key: Sequence[str], options: Mapping[str, object]) -> str | None:
    """Return the command-line option that ``key`` of the record came from, if any.

    >>> option_of(("run", "n_trials"), {"run.n_trials": 0})
    '--n-trials'
    """
    for length in range(len(key), 0, -1):
        dotted = ".".join(key[:length])
        if dotted in options:
            given = options[dotted]
            known = given if isinstance(given, Mapping) else {}
            if dotted == "space" and len(key) > 1 and key[1] not in known:
                return None
            return "--" + key[length - 1].replace("_", "-")
    return None


def read_budget_text(text: str) -> Entries:
    """Return the ``budget`` of a study file from its text.

    >>> read_budget_text("epoch(1,27)")
    {'name': 'epoch', 'minimum': 1, 'maximum': 27}
    """
    match = _BUDGET.fullmatch(text)
    low, high = (number_or_text(match[name] if match else "") for name in ("low", "high"))
    if match is None or isinstance(low, str) or isinstance(high, str):
        raise StudyError(
            f"the budget is {text!r}; write its unit, the first grant and a full training:"
            ' "epoch(1,27)"'
        )
    return {"name": match["name"], "minimum": low, "maximum": high}


def default_name(words: Sequence[str]) -> str:
    """Return the default name of a study from its command: the script, else the program.

    >>> default_name(["python", "src/train.py", "--lr", "{lr}"]), default_name(["./train", "-n", "{n}"])
    ('train', 'train')
    """
    script = next(
        (word for word in words if PurePath(word).suffix in (".py", ".sh", ".jl", ".R")), words[0]
    )
    return PurePath(script).stem or "study"


@dataclass(frozen=True)
class Mistake:
    """A mistake: the key, the message and the line."""

    key: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}, "
        return f"{place}{self.key}: {self.message}"


@dataclass
class TomlReading:
    """One pass over a file that collects mistakes instead of stopping at the first.

    ``options`` came from elsewhere, and replaced what the file says, its ``text``. ``examples``: what
    to write for a key that is missing.
    """

    record: dict[str, object]
    folder: Path
    text: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    @staticmethod
    def of(path: Path, examples: Mapping[str, str], options: Mapping[str, object]) -> "TomlReading":
        """Read a file; raises `StudyError` if it cannot be read or is not TOML."""
        try:
            text = text_of(path)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise StudyError(f"cannot read {path}: {why}") from None
        try:
            record = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise StudyError(f"{path} is not valid TOML: {error}") from None
        folder = path.resolve().parent
        return TomlReading(replaced(record, options), folder, text, options, examples)

    def refuse(self, source: str) -> None:
        """Raise `StudyError` with every mistake in line order, if there are any."""
        if not self.mistakes:
            return
        count = len(self.mistakes)
        ordered = sorted(self.mistakes, key=lambda mistake: mistake.line or 0)
        listed = "\n".join(f"  {mistake}" for mistake in ordered)
        raise StudyError(f"{source} has {count} mistake{'s' if count > 1 else ''}:\n{listed}")

    def wrong_keys(self) -> set[str]:
        """Return the keys with mistakes so far."""
        return {mistake.key for mistake in self.mistakes}

    def wrong(self, key: tuple[str, ...], message: str) -> None:
        """Record a mistake."""
        option = option_of(key, self.options)
        self.mistakes.append(
            Mistake(option or ".".join(key), message, None if option else line_of(key, self.text))
        )

    @contextmanager
    def blamed_on(self, *key: str) -> typing.Iterator[None]:
        """Record errors raised in the block as mistakes of ``key``."""
        try:
            yield
        except ScrimpError as error:
            self.wrong(key, str(error))
        except Exception as error:  # raised by an imported module of the user
            self.wrong(key, f"raises {type(error).__name__}: {error}")

    def table(self, form: type[msgspec.Struct], record: object, key: tuple[str, ...]) -> Entries:
        """Return the valid entries of a table, each checked on its own."""
        if not isinstance(record, dict):
            example = f", such as [{'.'.join(key)}] with {', '.join(form.__struct_fields__[:3])}"
            self.wrong(key, f"is {record!r}; it must be a table{example}")
            return {}
        fields = {item.name: item for item in msgspec.structs.fields(form)}
        right: Entries = {}
        for name, value in record.items():
            if name not in fields:
                hint = did_you_mean(name, list(fields), f"; valid are {', '.join(fields)}")
                self.wrong((*key, name), f"there is no such key{hint}")
            elif inner := _struct(fields[name].type):
                right[name] = self.table(inner, value, (*key, name))
            else:
                try:
                    right[name] = msgspec.convert(value, fields[name].type)
                except msgspec.ValidationError as error:
                    self.wrong((*key, name), _explained(value, fields[name].type, error))
        misspelt = {nearest_name(name, fields) for name in record if name not in fields}
        for name, item in fields.items():
            if item.required and name not in record and name not in misspelt:
                advice = self.examples.get(".".join((*key, name)))
                self.wrong((*key, name), f"is missing; {advice}" if advice else "is missing")
        return right


def _struct(annotation: object) -> type[msgspec.Struct] | None:
    """Return the struct of a nested table, if any."""
    options = typing.get_args(annotation) or (annotation,)
    return next(
        (item for item in options if isinstance(item, type) and issubclass(item, msgspec.Struct)),
        None,
    )


def _explained(value: object, annotation: object, error: msgspec.ValidationError) -> str:
    """Explain why a value is invalid, with the nearest valid word if there are words."""
    words = [word for item in (annotation, *typing.get_args(annotation)) for word in _words(item)]
    if words and isinstance(value, str):
        begun = [word for word in words if value and word.startswith(value)]
        hint = did_you_mean(value, words, f"; did you mean {begun[0]!r}?" if begun else "")
        return f"is {value!r}; it must be one of {', '.join(map(repr, words))}{hint}"
    if words and str(error).startswith("Invalid enum value"):
        return f"is {value!r}; each value must be one of {', '.join(map(repr, words))}"
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
"""Plain words for msgspec's terms, longer ones first."""


def _words(annotation: object) -> tuple[str, ...]:
    return typing.get_args(annotation) if typing.get_origin(annotation) is Literal else ()
