"""scrimp as a backend of ``Trainer.hyperparameter_search``; importing this module registers it.

    import scrimp.integrations.transformers_search

    best = trainer.hyperparameter_search(
        backend="scrimp", hp_space=hp_space, n_trials=20, direction="minimize", seed=0
    )

``hp_space`` is a function of a trial that calls ``suggest_float`` and the like, as for the Optuna
backend, or one that returns a `scrimp.Space`. Other keywords are those of `scrimp.create_study`:
``storage``, ``method``, ``seed``, and ``budget`` for early stopping.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar, cast

from scrimp.checks import did_you_mean
from scrimp.errors import ConfigError, SpaceError
from scrimp.executors.live_trial import LiveTrial
from scrimp.integrations.extras import extra
from scrimp.integrations.transformers import ScrimpCallback
from scrimp.json_values import Json
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.study.studies import create_study
from scrimp.study.study import Study

with extra("transformers", "the backend"):
    from transformers.hyperparameter_search import (
        ALL_HYPERPARAMETER_SEARCH_BACKENDS,
        HyperParamSearchBackendBase,
    )
    from transformers.trainer_utils import BestRun, HPSearchBackend

if TYPE_CHECKING:
    from transformers import Trainer

NAME = "scrimp"
METRIC = "objective"

Choice = TypeVar("Choice", str, int, float, bool)


class SpaceTrial:
    """A stand-in for an Optuna trial that records what a function suggests: the space."""

    def __init__(self) -> None:
        self.parameters: dict[str, Parameter] = {}

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Record a float."""
        self.parameters[name] = Float(low, high, log=log, step=step)
        return low

    def suggest_int(
        self, name: str, low: int, high: int, *, step: int = 1, log: bool = False
    ) -> int:
        """Record an integer."""
        self.parameters[name] = Int(low, high, log=log, step=None if step == 1 else step)
        return low

    def suggest_categorical(self, name: str, choices: Sequence[Choice]) -> Choice:
        """Record a choice."""
        values = list(choices)
        self.parameters[name] = Categorical(values) if len(values) > 1 else Constant(values[0])
        return values[0]


class ScrimpBackend(HyperParamSearchBackendBase):  # type: ignore[misc]
    """The backend of ``backend="scrimp"``."""

    name = NAME
    pip_package = "'scrimp[transformers]'"

    @staticmethod
    def is_available() -> bool:
        """Always available: this module is the backend."""
        return True

    def default_hp_space(self, trial: SpaceTrial) -> Space:
        """Return the learning rate and batch size, like the other backends."""
        return Space(
            learning_rate=Float(1e-6, 1e-4, log=True),
            per_device_train_batch_size=Categorical([4, 8, 16, 32, 64]),
        )

    def run(
        self,
        trainer: "Trainer",
        n_trials: int,
        direction: str,
        study_name: str = "hyperparameter-search",
        **settings: object,
    ) -> tuple[str, float, Mapping[str, Json]]:
        """Tune, and return the best run."""
        space = _space_of(trainer)
        given = {"storage": "memory://", "load_if_exists": True, **settings}
        make = cast(Callable[..., Study], create_study)
        study = make(study_name, space, direction=direction, metric=METRIC, **given)
        whole = study.budget is None
        study.optimize(lambda trial: _train(trainer, trial, whole), n_trials=n_trials)
        best = study.best_trial
        run: tuple[str, float, Mapping[str, Json]] = BestRun(str(best.id), best.value, best.config)
        return run


def _space_of(trainer: "Trainer") -> Space:
    trial = SpaceTrial()
    given = trainer.hp_space(trial)
    if not isinstance(given, Space) and not trial.parameters:
        raise SpaceError(
            "hp_space suggests nothing; call trial.suggest_float, suggest_int or"
            " suggest_categorical in it, or return a scrimp.Space"
        )
    space = given if isinstance(given, Space) else Space(trial.parameters)
    known = [field.name for field in dataclasses.fields(trainer.args)]
    for name in space.parameters:
        if name not in known:
            raise ConfigError(
                f"TrainingArguments has no {name!r} to tune{did_you_mean(name, known)}"
            )
    return space


def _train(trainer: "Trainer", trial: LiveTrial, whole: bool) -> float | None:
    """Run one trial: to the end of its grant, or to the end of training without a budget."""
    if whole:
        with _set(trainer, trial.params):
            trainer.train()
            return float(trainer.compute_objective(trainer.evaluate()))
    callback = ScrimpCallback(METRIC, trial, compute_objective=trainer.compute_objective)
    with _set(trainer, {**trial.params, **callback.arguments}):
        trainer.add_callback(callback)
        try:
            trainer.train(resume_from_checkpoint=callback.resume_from)
        finally:
            trainer.remove_callback(callback)
    return None


@contextmanager
def _set(trainer: "Trainer", values: Mapping[str, object]) -> Iterator[None]:
    """Set these training arguments inside the block."""
    before = {name: getattr(trainer.args, name) for name in values}
    try:
        for name, value in values.items():
            setattr(trainer.args, name, value)
        _apply(trainer)
        yield
    finally:
        for name, value in before.items():
            setattr(trainer.args, name, value)
        _apply(trainer)


def _apply(trainer: "Trainer") -> None:
    """Update what the trainer derives from its arguments."""
    trainer._train_batch_size = trainer.args.train_batch_size
    trainer.create_accelerator_and_postprocess()


# The trainer's backends are an enumeration, which gets one more member.
_member = str.__new__(HPSearchBackend, NAME)
_member._name_, _member._value_ = NAME.upper(), NAME
_refuse = HPSearchBackend._missing_
HPSearchBackend._missing_ = lambda value: _member if value == NAME else _refuse(value)
ALL_HYPERPARAMETER_SEARCH_BACKENDS[_member] = ScrimpBackend
