"""Studies in an Optuna database, read with SQLite alone: Optuna need not be installed.

The tables ``studies``, ``study_directions``, ``trials``, ``trial_params`` (with the distribution as
JSON), ``trial_values`` and ``trial_intermediate_values`` have kept their meaning since Optuna 2.4.
Intermediate values become learning curves; steps counted from 0 or below are counted from 1.
Objectives of studies with several have the names that the study gave them, else ``value_0``,
``value_1`` and so on.
"""

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypedDict

from scrimp.checks import is_finite
from scrimp.errors import ConfigError, PluginError, SpaceError, StudyError, Unreachable
from scrimp.formats.result_folders import Imported, ImportedTrial, Value
from scrimp.formats.toml_reading import text_of
from scrimp.json_values import Config, Json, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.storage.open import without_secrets
from scrimp.study_log.messages import shortened
from scrimp.study_log.problem import Budget, Direction, Problem

COLUMNS: dict[str, tuple[str, ...]] = {
    "studies": ("study_id", "study_name"),
    "study_directions": ("study_id", "direction", "objective"),
    "study_system_attributes": ("study_id", "key", "value_json"),
    "trials": ("trial_id", "number", "study_id", "state"),
    "trial_params": ("param_id", "trial_id", "param_name", "param_value", "distribution_json"),
    "trial_values": ("trial_id", "objective", "value"),
    "trial_intermediate_values": ("trial_id", "step", "intermediate_value"),
}
"""Columns read from Optuna's tables."""

OPTIONAL_TABLE = "study_system_attributes"
"""A table that older versions of Optuna lack."""

MAX_CELL_BYTES = 10_000_000
"""Maximum size of one cell."""

STATUS_OF_STATE = {"COMPLETE": "completed", "PRUNED": "stopped", "FAIL": "failed"}


class OptunaDistribution(TypedDict):
    """A parameter in Optuna's database: the kind, and bounds or choices."""

    name: str
    attributes: dict[str, Any]


def is_optuna(path: Path) -> bool:
    """Return True if the file is an SQLite database with Optuna's tables."""
    with path.open("rb") as file:
        if file.read(15) != b"SQLite format 3":
            return False
    # A view or a virtual table may run forever or execute arbitrary code.
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    missing = COLUMNS.keys() - {name for (name,) in _query(path, sql)} - {OPTIONAL_TABLE}
    if missing:
        raise StudyError(
            f"{str(path)!r} is an SQLite database, but not one of Optuna's: it has no table"
            f" {min(missing)}"
        )
    return True


def _query(path: Path, sql: str, *parameters: Scalar) -> list[tuple[Any, ...]]:
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StudyError(f"{str(path)!r} cannot be read as an Optuna database: {error}") from None


def read_optuna(path: Path) -> list[Imported]:
    """Read every study."""
    listed = _query(path, "SELECT study_id, study_name FROM studies ORDER BY study_id")
    begun = {study for (study,) in _query(path, "SELECT DISTINCT study_id FROM trials")}
    empty = tuple(
        f"study {str(name)!r} has no trials and is left out"
        for study, name in listed
        if study not in begun
    )
    found = [_study(path, study, str(name)) for study, name in listed if study in begun]
    if not found:
        why = f" ({'; '.join(empty)})" if empty else ""
        raise StudyError(f"{str(path)!r} holds no Optuna study that can be imported{why}")
    return [replace(found[0], notes=(*empty, *found[0].notes)), *found[1:]]


def _objectives(path: Path, study: int) -> dict[str, Direction]:
    """Return the study's objectives with their directions."""
    sql = "SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective"
    ways: list[Direction] = [
        "maximize" if way == "MAXIMIZE" else "minimize" for (way,) in _query(path, sql, study)
    ]
    names = _metric_names(path, study) if len(ways) > 1 else ["value"]
    if len(names) != len(ways) or len(set(names)) != len(ways):
        names = [f"value_{place}" for place in range(len(ways))]
    return dict(zip(names, ways, strict=True))


def _metric_names(path: Path, study: int) -> list[str]:
    """Return the names of the objectives; empty if there are none."""
    found = _query(path, f"SELECT name FROM sqlite_master WHERE name = '{OPTIONAL_TABLE}'")
    sql = (
        f"SELECT value_json FROM {OPTIONAL_TABLE} WHERE study_id = ? AND key = 'study:metric_names'"
    )
    for (text,) in _query(path, sql, study) if found else []:
        names = json.loads(text)
        if isinstance(names, list) and all(isinstance(name, str) and name for name in names):
            return names
    return []


def _study(path: Path, study: int, name: str) -> Imported:
    objectives = _objectives(path, study)
    sql = "SELECT trial_id, state FROM trials WHERE study_id = ? ORDER BY number"
    rows = _query(path, sql, study)
    ended = {trial: STATUS_OF_STATE[state] for trial, state in rows if state in STATUS_OF_STATE}
    parameters, configs = _parameters(path, study)
    space = Space(dict(parameters))
    curves = _curves(path, study)
    steps = [step for curve in curves.values() for step, _ in curve]
    budget = Budget("step", 1, max(steps)) if steps and max(steps) > 1 else None
    values = _values(path, study, tuple(objectives))
    trials = []
    for trial, status in ended.items():
        curve: dict[float, Value] = dict(curves.get(trial, ())) if budget is not None else {}
        if status == "completed" and trial in values:
            curve[1.0 if budget is None else max(curve, default=budget.maximum)] = values[trial]
        points = tuple((step, curve[step]) for step in sorted(curve))
        status = status if curve else "failed"
        trials.append(ImportedTrial(configs.get(trial, {}), points, status))
    left = len(rows) - len(ended)
    notes = (f"{left} trials that had not ended are left out",) if left else ()
    return Imported(name, Problem(space, objectives, budget=budget), tuple(trials), notes)


def _parameters(path: Path, study: int) -> tuple[dict[str, Parameter], dict[int, Config]]:
    sql = (
        "SELECT p.trial_id, p.param_name, p.param_value, p.distribution_json FROM trial_params p"
        " JOIN trials t ON t.trial_id = p.trial_id WHERE t.study_id = ? ORDER BY p.trial_id,"
        " p.param_id"
    )
    parameters: dict[str, Parameter] = {}
    configs: dict[int, Config] = {}
    for trial, name, value, text in _query(path, sql, study):
        distribution = json.loads(text)
        # The latest distribution wins.
        parameters[name] = parameter_of(name, distribution)
        configs.setdefault(trial, {})[name] = _value(distribution, float(value))
    if not parameters:
        raise StudyError(
            f"the Optuna study number {study} in {str(path)!r} has no trial with parameters"
        )
    normal = {
        trial: {name: _normal(name, parameters[name], value) for name, value in config.items()}
        for trial, config in configs.items()
    }
    return parameters, normal


def _normal(name: str, parameter: Parameter, value: Scalar) -> Scalar:
    """Return the value as the space writes it (0.3 for 3 steps of 0.1); a value that only fits an
    older distribution is unchanged."""
    try:
        return parameter.validate(name, value)
    except ConfigError:
        return value


def parameter_of(name: str, distribution: OptunaDistribution) -> Parameter:
    """Convert an Optuna distribution to a parameter; raises `StudyError` for an unknown kind."""
    kind, settings = str(distribution["name"]), distribution["attributes"]
    try:
        if kind == "CategoricalDistribution":
            choices = settings["choices"]
            return Categorical(choices) if len(choices) > 1 else Constant(choices[0])
        low, high = settings["low"], settings["high"]
        if low == high:
            return Constant(low)
        log = bool(settings.get("log")) or "LogUniform" in kind
        step = settings.get("step", settings.get("q"))  # q: before Optuna 3
        if kind.startswith("Int"):
            return Int(int(low), int(high), log=log, step=None if log else step)
        if kind.removesuffix("Distribution") in (
            "Float",
            "Uniform",
            "LogUniform",
            "DiscreteUniform",
        ):
            return Float(float(low), float(high), log=log, step=step)
    except (KeyError, SpaceError) as error:
        raise StudyError(
            f"parameter {name!r} of the Optuna study cannot be read: {error}"
        ) from None
    raise StudyError(
        f"parameter {name!r} of the Optuna study has the unknown distribution {kind!r}"
    )


def _value(distribution: OptunaDistribution, stored: float) -> Scalar:
    """Decode a stored value: Optuna stores every parameter as a number, choices by index."""
    kind, settings = str(distribution["name"]), distribution["attributes"]
    if not math.isfinite(stored):
        raise StudyError(f"a parameter of the Optuna study is {stored}; it must be finite")
    if kind == "CategoricalDistribution":
        choices = settings["choices"]
        if stored not in range(len(choices)):
            raise StudyError(
                f"a parameter of the Optuna study is choice number {stored:g} of {len(choices)},"
                " counted from 0"
            )
        choice: Scalar = choices[int(stored)]
        return choice
    return int(stored) if kind.startswith("Int") else stored


def _values(path: Path, study: int, objectives: tuple[str, ...]) -> dict[int, Value]:
    """Return the results by trial: a number, or all by name with several objectives; a trial with a
    value that is not finite has none."""
    sql = (
        "SELECT v.trial_id, v.value FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id"
        " WHERE t.study_id = ? ORDER BY v.objective"
    )
    found: dict[int, list[float]] = {}
    for trial, value in _query(path, sql, study):
        if is_finite(value):
            found.setdefault(trial, []).append(float(value))
    whole = {trial: row for trial, row in found.items() if len(row) == len(objectives)}
    if len(objectives) == 1:
        return {trial: row[0] for trial, row in whole.items()}
    return {trial: dict(zip(objectives, row, strict=True)) for trial, row in whole.items()}


def _curves(path: Path, study: int) -> dict[int, list[tuple[float, float]]]:
    sql = (
        "SELECT v.trial_id, v.step, v.intermediate_value FROM trial_intermediate_values v "
        "JOIN trials t ON t.trial_id = v.trial_id WHERE t.study_id = ? ORDER BY v.trial_id, v.step"
    )
    rows = [row for row in _query(path, sql, study) if is_finite(row[2])]
    first = min((step for _, step, _ in rows), default=1)
    found: dict[int, list[tuple[float, float]]] = {}
    for trial, step, value in rows:
        found.setdefault(trial, []).append((float(step + max(0, 1 - first)), float(value)))
    return found


MAX_CONNECT_SECONDS = 10
"""The time after which a server that does not answer is given up."""

DIRECTIONS = ("NOT_SET", "MINIMIZE", "MAXIMIZE")
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")

Cell = str | int | float | None
Tables = dict[str, list[tuple[Cell, ...]]]
Operation = Mapping[str, Json]


@contextmanager
def _database(tables: Mapping[str, Iterable[Sequence[Cell]]], source: str) -> Iterator[Path]:
    """Yield an SQLite file with these rows; errors name the source."""
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
    """Yield the studies in an Optuna PostgreSQL database as an SQLite file."""
    with _database(read_tables(url, COLUMNS), without_secrets(url)) as path:
        yield path


def is_journal(path: Path) -> bool:
    """Return True if a file starts like an Optuna journal."""
    with path.open("rb") as file:
        first = file.readline(65536)
    try:
        return "op_code" in json.loads(first)
    except (ValueError, TypeError, RecursionError):
        return False


@contextmanager
def journal_tables(path: Path) -> Iterator[Path]:
    """Yield the studies in a journal as an SQLite file. A truncated last line is ignored; raises
    `StudyError` for any other invalid line."""
    lines = text_of(path).split("\n")
    journal = _Journal()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            journal.apply(json.loads(line))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if number == len(lines):  # truncated while it was written
                break
            raise StudyError(
                f"line {number} of the journal {str(path)!r} cannot be read: {shortened(error)}"
            ) from None
    with _database(journal.tables(), str(path)) as database:
        yield database


class _Journal:
    """The tables that a journal's operations result in."""

    def __init__(self) -> None:
        self._studies: dict[int, str] = {}
        self._begun = 0
        self._of: list[int] = []  # trial -> study
        self._states: list[str] = []
        self._rows: Tables = {table: [] for table in COLUMNS}
        self._values: dict[int, list[Json]] = {}

    def apply(self, operation: Operation) -> None:
        """Apply one operation."""
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
            if 0 <= trial < len(self._of) and self._states[trial] not in STATUS_OF_STATE:
                self._change_trial(code, trial, operation)

    def tables(self) -> Tables:
        """Return the rows of studies that were not deleted."""
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
    raise TypeError(f"{value!r} is not an object")


def _whole(value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _number(value: Json) -> float | None:
    if value is None or isinstance(value, int | float):
        return value
    raise TypeError(f"{value!r} is not a number")


PLAIN_TABLES = """
SELECT relname, nspname FROM unnest(%s::name[]) WITH ORDINALITY AS path (name, number)
JOIN pg_namespace AS n ON nspname = name JOIN pg_class ON relnamespace = n.oid
WHERE relname = ANY (%s) AND relkind = 'r' AND NOT relrowsecurity ORDER BY number DESC
"""
"""A query for the tables and their schemas, the first of the search path last. Views and row
policies, which would run code of their owner, are left out."""


def read_tables(
    url: str, columns: Mapping[str, Sequence[str]]
) -> dict[str, list[tuple[Cell, ...]]]:
    """Read the named columns of the named tables in one read-only transaction; a missing table has
    no rows.

    `Unreachable` when the server does not answer.
    """
    try:
        import psycopg
        from psycopg import sql

        from scrimp.storage.postgres_server import SEARCHED, SESSION, parsed_url
    except ModuleNotFoundError:
        raise PluginError(
            "reading a PostgreSQL database needs psycopg; pip install 'scrimp[postgres]'"
        ) from None
    # SQLAlchemy puts the name of its driver into the scheme.
    plain = "postgresql://" + url.split("://", 1)[-1]
    shown = without_secrets(url)
    options = {**parsed_url(plain, shown), "connect_timeout": MAX_CONNECT_SECONDS}
    password = str(options.get("password") or "\0")
    try:
        with psycopg.connect(**options) as connection:
            connection.read_only = True
            (searched,) = connection.execute(SEARCHED).fetchone() or ([],)
            connection.execute(SESSION)
            found = connection.execute(PLAIN_TABLES, (searched, list(columns))).fetchall()
            schemas = {str(table): str(schema) for table, schema in found}
            return {
                table: connection.execute(
                    sql.SQL("SELECT {} FROM {}").format(
                        sql.SQL(", ").join(map(sql.Identifier, names)),
                        sql.Identifier(schemas[table], table),
                    )
                ).fetchall()
                if table in schemas
                else []
                for table, names in columns.items()
            }
    except psycopg.OperationalError as error:
        said = str(error).replace(password, "…")
        raise Unreachable(f"the PostgreSQL server of {shown} does not answer: {said}") from None
    except psycopg.Error as error:
        said = str(error).replace(password, "…")
        raise StudyError(f"the PostgreSQL database {shown} cannot be read: {said}") from None
