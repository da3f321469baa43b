"""Studies in Optuna's storages: an SQLite file, a PostgreSQL database or a journal. Optuna need not be
installed.

    read_optuna(sqlite_tables(path), str(path))
    read_optuna(journal_tables(path), str(path))
    read_optuna(read_tables(url, COLUMNS), without_secrets(url))

The tables ``studies``, ``study_directions``, ``trials``, ``trial_params`` (with the distribution as
JSON), ``trial_values`` and ``trial_intermediate_values`` have kept their meaning since Optuna 2.4; a
journal is replayed into the same tables. Intermediate values become learning curves; steps counted
from 0 or below are counted from 1. Objectives of studies with several have the names that the study
gave them, else ``value_0``, ``value_1`` and so on.
"""

import json
import math
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
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
Row = tuple[Any, ...]
Tables = Mapping[str, Sequence[Row]]
"""Rows by table, with the columns of `COLUMNS`."""
Groups = Mapping[str, Mapping[int, Sequence[Row]]]
"""Rows by table, and by the study that they belong to, or the trial."""

STATUS_OF_STATE = {"COMPLETE": "completed", "PRUNED": "stopped", "FAIL": "failed"}


class OptunaDistribution(TypedDict):
    """A parameter in Optuna's database: the kind, and bounds or choices."""

    name: str
    attributes: dict[str, Any]


def is_sqlite(path: Path) -> bool:
    """Return True if the file is an SQLite database."""
    with path.open("rb") as file:
        return file.read(15) == b"SQLite format 3"


def sqlite_tables(path: Path) -> Tables:
    """Return the tables in a database file; `StudyError` if it is not one of Optuna's."""
    # A view or a virtual table may run forever or execute arbitrary code.
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL_BYTES)
            there = {name for (name,) in connection.execute(sql)}
            missing = COLUMNS.keys() - there - {OPTIONAL_TABLE}
            if missing:
                raise StudyError(
                    f"{str(path)!r} is an SQLite database, but not one of Optuna's: it has no table"
                    f" {min(missing)}"
                )
            return {
                table: connection.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
                for table, columns in COLUMNS.items()
                if table in there
            }
    except sqlite3.Error as error:
        raise StudyError(f"{str(path)!r} cannot be read as an Optuna database: {error}") from None


def read_optuna(tables: Tables, source: str) -> list[Imported]:
    """Return every study in the tables; ``source`` names their storage in errors."""
    groups: dict[str, dict[int, list[Row]]] = {}
    for table, columns in COLUMNS.items():
        place = columns.index("study_id" if "study_id" in columns else "trial_id")
        own = groups[table] = {}
        for row in tables.get(table, ()):
            own.setdefault(row[place], []).append(row)
    listed = sorted(tables["studies"], key=itemgetter(0))
    found = [
        _study(groups, study, str(name)) for study, name in listed if study in groups["trials"]
    ]
    empty = tuple(
        f"study {str(name)!r} has no trials and is left out"
        for study, name in listed
        if study not in groups["trials"]
    )
    if not found:
        why = f" ({'; '.join(empty)})" if empty else ""
        raise StudyError(f"{source!r} contains no Optuna study that can be imported{why}")
    return [replace(found[0], notes=(*empty, *found[0].notes)), *found[1:]]


def _objectives(groups: Groups, study: int) -> dict[str, Direction]:
    """Return the study's objectives with their directions."""
    rows = sorted(groups["study_directions"].get(study, ()), key=itemgetter(2))
    ways: list[Direction] = ["maximize" if way == "MAXIMIZE" else "minimize" for _, way, _ in rows]
    names = ["value"]
    if len(ways) > 1:
        attributes = {key: value for _, key, value in groups[OPTIONAL_TABLE].get(study, ())}
        names = json.loads(attributes.get("study:metric_names", "[]"))
    good = isinstance(names, list) and all(isinstance(name, str) and name for name in names)
    if not good or len(names) != len(ways) or len(set(names)) != len(ways):
        names = [f"value_{place}" for place in range(len(ways))]
    return dict(zip(names, ways, strict=True))


def _study(groups: Groups, study: int, name: str) -> Imported:
    objectives = _objectives(groups, study)
    rows = sorted(groups["trials"][study], key=itemgetter(1))
    ended = {row[0]: STATUS_OF_STATE[row[3]] for row in rows if row[3] in STATUS_OF_STATE}
    numbers = sorted(row[0] for row in rows)
    parameters, configs = _parameters(groups, name, numbers)
    curves = _curves(groups, numbers)
    steps = [step for curve in curves.values() for step in curve]
    budget = Budget("step", 1, max(steps)) if steps and max(steps) > 1 else None
    trials = []
    for trial, status in ended.items():
        curve: dict[float, Value] = {} if budget is None else {**curves.get(trial, {})}
        value = _value_of(groups["trial_values"].get(trial, ()), tuple(objectives))
        if status == "completed" and value is not None:
            curve[1.0 if budget is None else max(curve, default=budget.maximum)] = value
        points = tuple((step, curve[step]) for step in sorted(curve))
        status = status if curve else "failed"
        trials.append(ImportedTrial(configs.get(trial, {}), points, status))
    left = len(rows) - len(ended)
    notes = (f"{left} trials that had not ended are left out",) if left else ()
    return Imported(
        name, Problem(Space(dict(parameters)), objectives, budget=budget), tuple(trials), notes
    )


def _parameters(
    groups: Groups, study: str, numbers: Sequence[int]
) -> tuple[dict[str, Parameter], dict[int, Config]]:
    """Return the parameters of a study, and the configuration of each of its trials."""
    parameters: dict[str, Parameter] = {}
    configs: dict[int, Config] = {}
    for trial in numbers:
        rows = sorted(groups["trial_params"].get(trial, ()), key=itemgetter(0))
        for _, _, name, value, text in rows:
            distribution = json.loads(text)
            # The latest distribution wins.
            parameters[name] = parameter_of(name, distribution)
            configs.setdefault(trial, {})[name] = _value(distribution, float(value))
    if not parameters:
        raise StudyError(f"the Optuna study {study!r} has no trial with parameters")
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


def _value_of(rows: Sequence[Row], objectives: tuple[str, ...]) -> Value | None:
    """Return the result of a trial: a number, or all by name with several objectives; None with a
    value that is missing or not finite."""
    row = [float(value) for _, _, value in sorted(rows, key=itemgetter(1)) if is_finite(value)]
    if len(row) != len(objectives):
        return None
    return row[0] if len(row) == 1 else dict(zip(objectives, row, strict=True))


def _curves(groups: Groups, numbers: Sequence[int]) -> dict[int, dict[float, float]]:
    """Return the intermediate values of trials by step, counted from 1."""
    table = groups["trial_intermediate_values"]
    rows = [row for trial in numbers for row in table.get(trial, ()) if is_finite(row[2])]
    shift = max(0, 1 - min((step for _, step, _ in rows), default=1))
    found: dict[int, dict[float, float]] = {}
    for trial, step, value in rows:
        found.setdefault(trial, {})[float(step + shift)] = float(value)
    return found


MAX_CONNECT_SECONDS = 10
DIRECTIONS = ("NOT_SET", "MINIMIZE", "MAXIMIZE")
STATES = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")

Operation = Mapping[str, Json]


def is_journal(path: Path) -> bool:
    """Return True if a file starts like an Optuna journal."""
    with path.open("rb") as file:
        first = file.readline(65536)
    try:
        return "op_code" in json.loads(first)
    except (ValueError, TypeError, RecursionError):
        return False


def journal_tables(path: Path) -> Tables:
    """Return the tables that the operations in a journal result in. A truncated last line is ignored;
    raises `StudyError` for any other invalid line."""
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
    return journal.tables()


class _Journal:
    """The tables that a journal's operations result in."""

    def __init__(self) -> None:
        self._studies: dict[int, str] = {}
        self._begun = 0
        self._of: list[int] = []  # trial -> study
        self._states: list[str] = []
        self._rows: dict[str, list[Row]] = {table: [] for table in COLUMNS}
        self._values: dict[int, list[Json]] = {}

    def apply(self, operation: Operation) -> None:
        """Apply one operation."""
        code = operation["op_code"]
        if code == 0:
            self._create_study(operation)
        elif code == 1:
            self._studies.pop(_whole(operation["study_id"]), None)
        elif code == 3:
            study, said = _whole(operation["study_id"]), _object(operation["system_attr"])
            self._rows["study_system_attributes"] += [
                (study, key, json.dumps(value)) for key, value in said.items()
            ]
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


def read_tables(url: str, columns: Mapping[str, Sequence[str]]) -> dict[str, list[Row]]:
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
