"""Studies in an Optuna database, read with SQLite alone: Optuna need not be installed.

The tables ``studies``, ``study_directions``, ``trials``, ``trial_params`` (with the distribution as
JSON), ``trial_values`` and ``trial_intermediate_values`` have kept their meaning since Optuna 2.4.
Intermediate values become learning curves; steps counted from 0 or below are counted from 1.
Studies with several objectives are left out.
"""

import json
import math
import sqlite3
from pathlib import Path
from typing import Any, TypedDict

from scrimp.errors import ConfigError, SpaceError, StudyError
from scrimp.history.events import Config
from scrimp.history.problem import Budget, Problem
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space

__all__ = ["is_optuna", "parameter_of", "read_optuna"]

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

OptunaTrial = tuple[Config, tuple[tuple[float, float], ...], str]
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
    """Every study of one objective: name, problem, trials and what there is to say."""
    found: list[OptunaStudy] = []
    others = []
    for study, name in _query(path, "SELECT study_id, study_name FROM studies ORDER BY study_id"):
        directions = _query(
            path, "SELECT direction FROM study_directions WHERE study_id = ?", study
        )
        if len(directions) == 1:
            found.append(_study(path, study, str(name), str(directions[0][0])))
        else:
            others.append(
                f"study {str(name)!r} has {len(directions)} objectives and is left out: one can be"
                " imported"
            )
    if not found:
        why = f" ({'; '.join(others)})" if others else ""
        raise StudyError(
            f"{str(path)!r} holds no Optuna study with a single objective, so nothing can be"
            f" imported{why}"
        )
    first = found[0]
    return [(*first[:3], (*others, *first[3])), *found[1:]]


def _study(path: Path, study: int, name: str, direction: str) -> OptunaStudy:
    rows = _query(
        path, "SELECT trial_id, state FROM trials WHERE study_id = ? ORDER BY number", study
    )
    ended = {trial: STATES[state] for trial, state in rows if state in STATES}
    parameters, configs = _parameters(path, study)
    space = Space(dict(parameters))
    curves = _curves(path, study)
    steps = [step for curve in curves.values() for step, _ in curve]
    budget = Budget("step", 1, max(steps)) if steps and max(steps) > 1 else None
    values = _values(path, study)
    trials: list[OptunaTrial] = []
    for trial, status in ended.items():
        curve = dict(curves.get(trial, ())) if budget is not None else {}
        if status == "completed" and trial in values:
            curve[1.0 if budget is None else max(curve, default=budget.maximum)] = values[trial]
        trials.append(
            (configs.get(trial, {}), tuple(sorted(curve.items())), status if curve else "failed")
        )
    problem = Problem(
        space, direction="maximize" if direction == "MAXIMIZE" else "minimize", budget=budget
    )
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


def _values(path: Path, study: int) -> dict[int, float]:
    sql = (
        "SELECT v.trial_id, v.value FROM trial_values v JOIN trials t ON t.trial_id = v.trial_id"
        " WHERE t.study_id = ?"
    )
    return {trial: float(value) for trial, value in _query(path, sql, study) if _finite(value)}


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
