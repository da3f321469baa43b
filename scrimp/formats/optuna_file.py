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
from pathlib import Path
from typing import Any, TypedDict

from scrimp.errors import ConfigError, SpaceError, StudyError
from scrimp.history.events import Config
from scrimp.history.problem import Budget, Direction, Problem, optimized
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = ["OptunaStudy", "Value", "is_optuna", "parameter_of", "read_optuna"]

TABLES = {
    "studies",
    "study_directions",
    "trials",
    "trial_params",
    "trial_values",
    "trial_intermediate_values",
}
LONGEST = 10_000_000  # bytes of one cell

STATES = {"COMPLETE": "completed", "PRUNED": "stopped", "FAIL": "failed"}

Value = float | dict[str, float]
"""A value, or with several objectives all of them by name."""

OptunaTrial = tuple[Config, tuple[tuple[float, Value], ...], str]
OptunaStudy = tuple[str, Problem, list[OptunaTrial], tuple[str, ...]]


class OptunaDistribution(TypedDict):
    """What Optuna stores of a parameter: the kind, and bounds or choices."""

    name: str
    attributes: dict[str, Any]


def is_optuna(path: Path) -> bool:
    """Whether the file is an SQLite database with Optuna's tables."""
    with path.open("rb") as file:
        if file.read(15) != b"SQLite format 3":
            return False
    # A view or a virtual table may go on for ever, or compute what it likes.
    sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'"
    missing = TABLES - {name for (name,) in _query(path, sql)}
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
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StudyError(f"{str(path)!r} cannot be read as an Optuna database: {error}") from None


def read_optuna(path: Path) -> list[OptunaStudy]:
    """Every study: name, problem, trials and what there is to say."""
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
    first = found[0]
    return [(*first[:3], (*empty, *first[3])), *found[1:]]


def _objectives(path: Path, study: int) -> dict[str, Direction]:
    """The study's objectives with their directions."""
    sql = "SELECT direction FROM study_directions WHERE study_id = ? ORDER BY objective"
    ways: list[Direction] = [
        "maximize" if way == "MAXIMIZE" else "minimize" for (way,) in _query(path, sql, study)
    ]
    names = _metric_names(path, study) if len(ways) > 1 else ["value"]
    if len(names) != len(ways) or len(set(names)) != len(ways):
        names = [f"value_{place}" for place in range(len(ways))]
    return dict(zip(names, ways, strict=True))


def _metric_names(path: Path, study: int) -> list[str]:
    """What the study calls its objectives; nothing where it does not say."""
    found = _query(path, "SELECT name FROM sqlite_master WHERE name = 'study_system_attributes'")
    sql = (
        "SELECT value_json FROM study_system_attributes WHERE study_id = ? AND key ="
        " 'study:metric_names'"
    )
    for (text,) in _query(path, sql, study) if found else []:
        names = json.loads(text)
        if isinstance(names, list) and all(isinstance(name, str) and name for name in names):
            return names
    return []


def _study(path: Path, study: int, name: str) -> OptunaStudy:
    objectives = _objectives(path, study)
    rows = _query(
        path, "SELECT trial_id, state FROM trials WHERE study_id = ? ORDER BY number", study
    )
    ended = {trial: STATES[state] for trial, state in rows if state in STATES}
    parameters, configs = _parameters(path, study)
    space = Space(dict(parameters))
    curves = _curves(path, study)
    steps = [step for curve in curves.values() for step, _ in curve]
    budget = Budget("step", 1, max(steps)) if steps and max(steps) > 1 else None
    values = _values(path, study, tuple(objectives))
    trials: list[OptunaTrial] = []
    for trial, status in ended.items():
        curve: dict[float, Value] = dict(curves.get(trial, ())) if budget is not None else {}
        if status == "completed" and trial in values:
            curve[1.0 if budget is None else max(curve, default=budget.maximum)] = values[trial]
        trials.append(
            (
                configs.get(trial, {}),
                tuple((step, curve[step]) for step in sorted(curve)),
                status if curve else "failed",
            )
        )
    problem = Problem(space, budget=budget, **optimized("value", "minimize", objectives))
    left = len(rows) - len(ended)
    return (
        name,
        problem,
        trials,
        (f"{left} trials that had not ended are left out",) if left else (),
    )


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
        parameters[name] = parameter_of(name, distribution)  # the newest distribution counts
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
    """The value as the space writes it (0.3 for 3 steps of 0.1); what fits an older distribution
    only stays as it is."""
    try:
        return parameter.validate(name, value)
    except ConfigError:
        return value


def parameter_of(name: str, distribution: OptunaDistribution) -> Parameter:
    """The parameter that an Optuna distribution means; `StudyError` for one that is not known."""
    kind, settings = str(distribution["name"]), distribution["attributes"]
    try:
        if kind == "CategoricalDistribution":
            return (
                Categorical(settings["choices"])
                if len(settings["choices"]) > 1
                else Constant(settings["choices"][0])
            )
        low, high = settings["low"], settings["high"]
        if low == high:
            return Constant(low)
        log = bool(settings.get("log")) or "LogUniform" in kind
        step = settings.get("step", settings.get("q"))  # q: before Optuna 3
        if kind.startswith("Int"):
            return Int(int(low), int(high), log=log, step=None if log else step)
        if kind in (
            "FloatDistribution",
            "UniformDistribution",
            "LogUniformDistribution",
            "DiscreteUniformDistribution",
        ):
            return Float(float(low), float(high), log=log, step=step)
    except (KeyError, SpaceError) as error:
        raise StudyError(
            f"parameter {name!r} of the Optuna study cannot be read: {error}"
        ) from None
    raise StudyError(
        f"parameter {name!r} of the Optuna study has distribution {kind!r}, which is not known"
    )


def _value(distribution: OptunaDistribution, stored: float) -> Scalar:
    """Optuna stores every parameter as a number: choices by index."""
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
    """The results by trial: a number, or with several objectives all by name; a trial with one that
    is not finite has none."""
    sql = (
        "SELECT v.trial_id, v.value FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id"
        " WHERE t.study_id = ? ORDER BY v.objective"
    )
    found: dict[int, list[float]] = {}
    for trial, value in _query(path, sql, study):
        if _finite(value):
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
    rows = [
        (trial, step, value) for trial, step, value in _query(path, sql, study) if _finite(value)
    ]
    first = min((step for _, step, _ in rows), default=1)
    found: dict[int, list[tuple[float, float]]] = {}
    for trial, step, value in rows:
        found.setdefault(trial, []).append((float(step + max(0, 1 - first)), float(value)))
    return found


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
