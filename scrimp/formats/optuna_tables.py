"""Studies of Optuna that are kept elsewhere than in SQLite, brought into SQLite to be read there: a
journal file, and a PostgreSQL database.

    with journal_tables(Path("journal.log")) as database:
        read_optuna(database)

A journal is a line of JSON per operation; the tables are what its operations add up to, by Optuna's
own rules: operations on trials that have ended, or on studies that are not there, do not count.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from scrimp.errors import StudyError
from scrimp.history.vetting import shortened
from scrimp.json_values import Json
from scrimp.storage.postgres_rows import read_tables
from scrimp.storage.text_file import text_of

__all__ = ["is_journal", "journal_tables", "postgres_tables"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "studies": ("study_id", "study_name"),
    "study_directions": ("study_id", "direction", "objective"),
    "study_system_attributes": ("study_id", "key", "value_json"),
    "trials": ("trial_id", "number", "study_id", "state"),
    "trial_params": ("param_id", "trial_id", "param_name", "param_value", "distribution_json"),
    "trial_values": ("trial_id", "objective", "value"),
    "trial_intermediate_values": ("trial_id", "step", "intermediate_value"),
}
"""What is read of each table of Optuna."""

DIRECTIONS = ("NOT_SET", "MINIMIZE", "MAXIMIZE")
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")
ENDED = ("COMPLETE", "PRUNED", "FAIL")

Cell = str | int | float | None
Tables = dict[str, list[tuple[Cell, ...]]]
Operation = Mapping[str, Json]


@contextmanager
def _database(tables: Mapping[str, Iterable[Sequence[Cell]]], source: str) -> Iterator[Path]:
    """An SQLite file with these rows; errors about it name the source instead."""
    with TemporaryDirectory(prefix="scrimp-") as folder:
        path = Path(folder) / "optuna.db"
        connection = sqlite3.connect(path)
        try:
            for table, columns in COLUMNS.items():
                connection.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
                places = ", ".join("?" * len(columns))
                rows = tables.get(table, ())
                connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
            connection.commit()
        except (sqlite3.Error, OverflowError) as error:
            raise StudyError(f"{source!r} holds what Optuna does not write: {error}") from None
        finally:
            connection.close()
        try:
            yield path
        except StudyError as error:
            raise StudyError(str(error).replace(str(path), source)) from None


@contextmanager
def postgres_tables(url: str) -> Iterator[Path]:
    """The studies in a PostgreSQL database of Optuna, as an SQLite file."""
    shown = url.split("@")[-1]
    with _database(read_tables(url, COLUMNS), f"postgresql://{shown.split('://')[-1]}") as path:
        yield path


def is_journal(path: Path) -> bool:
    """Whether a file begins as a journal of Optuna does."""
    with path.open("rb") as file:
        first = file.readline(65536)
    try:
        return "op_code" in json.loads(first)
    except (ValueError, TypeError, RecursionError):
        return False


@contextmanager
def journal_tables(path: Path) -> Iterator[Path]:
    """The studies in a journal, as an SQLite file. A last line that was cut short does not count;
    `StudyError` names any other that cannot be read."""
    text = text_of(path)
    lines = text.split("\n")
    journal = _Journal()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            operation = json.loads(line)
            journal.apply(operation)
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if number == len(lines):  # cut short while it was written
                break
            raise StudyError(
                f"line {number} of the journal {str(path)!r} cannot be read: {shortened(error)}"
            ) from None
    with _database(journal.tables(), str(path)) as database:
        yield database


class _Journal:
    """What operations add up to."""

    def __init__(self) -> None:
        self._studies: dict[int, str] = {}
        self._begun = 0
        self._of: list[int] = []  # trial -> study
        self._states: list[str] = []
        self._rows: Tables = {table: [] for table in COLUMNS}
        self._values: dict[int, list[Json]] = {}

    def apply(self, operation: Operation) -> None:
        """One line."""
        code = operation["op_code"]
        if code == 0:
            self._create_study(operation)
        elif code == 1:
            self._studies.pop(_whole(operation["study_id"]), None)
        elif code == 3:
            self._name_metrics(operation)
        elif code == 4:
            self._create_trial(operation)
        elif code in (5, 6, 7):
            trial = _whole(operation["trial_id"])
            if 0 <= trial < len(self._of) and self._states[trial] not in ENDED:
                self._change_trial(code, trial, operation)

    def tables(self) -> Tables:
        """The rows of studies that were not deleted."""
        rows = {table: list(known) for table, known in self._rows.items()}
        rows["studies"] = list(self._studies.items())
        numbers: dict[int, int] = {}
        for trial, study in enumerate(self._of):
            number = numbers[study] = numbers.get(study, -1) + 1
            rows["trials"].append((trial, number, study, self._states[trial]))
        for trial, values in self._values.items():
            rows["trial_values"] += [
                (trial, place, _number(value)) for place, value in enumerate(values)
            ]
        return rows

    def _create_study(self, operation: Operation) -> None:
        name, directions = str(operation["study_name"]), operation["directions"]
        if name in self._studies.values() or not isinstance(directions, list):
            return
        study, self._begun = self._begun, self._begun + 1
        self._studies[study] = name
        self._rows["study_directions"] += [
            (study, DIRECTIONS[_whole(way)], place) for place, way in enumerate(directions)
        ]

    def _name_metrics(self, operation: Operation) -> None:
        said = _object(operation["system_attr"])
        self._rows["study_system_attributes"] += [
            (_whole(operation["study_id"]), key, json.dumps(value)) for key, value in said.items()
        ]

    def _create_trial(self, operation: Operation) -> None:
        study = _whole(operation["study_id"])
        if study not in self._studies:
            return
        trial = len(self._of)
        self._of.append(study)
        self._states.append(STATES[_whole(operation.get("state", 0))])
        texts = _object(operation.get("distributions"))
        for name, value in _object(operation.get("params")).items():
            self._add_param(trial, name, value, texts[name])
        for step, value in _object(operation.get("intermediate_values")).items():
            self._add_step(trial, int(step), value)
        values, one = operation.get("values"), operation.get("value")
        if values is not None or one is not None:
            self._values[trial] = list(values) if isinstance(values, list) else [one]

    def _change_trial(self, code: Json, trial: int, operation: Operation) -> None:
        if code == 5:
            value, text = operation["param_value_internal"], operation["distribution"]
            self._add_param(trial, str(operation["param_name"]), value, text)
        elif code == 7:
            self._add_step(trial, _whole(operation["step"]), operation["intermediate_value"])
        else:
            self._states[trial] = STATES[_whole(operation["state"])]
            values = operation.get("values")
            if isinstance(values, list):
                self._values[trial] = values

    def _add_param(self, trial: int, name: str, value: Json, text: Json) -> None:
        rows = self._rows["trial_params"]
        rows.append((len(rows), trial, name, _number(value), str(text)))

    def _add_step(self, trial: int, step: int, value: Json) -> None:
        rows = self._rows["trial_intermediate_values"]
        rows.append((trial, step, _number(value)))


def _object(value: Json) -> Mapping[str, Json]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise TypeError(f"{value!r} is no object")


def _whole(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value


def _number(value: Json) -> float | None:
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is no number")
