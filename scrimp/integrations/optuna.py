"""`ScrimpSampler`: decisions of scrimp in an Optuna study.

    study = optuna.create_study(sampler=ScrimpSampler(seed=0))
    study.optimize(objective, n_trials=50)

The objective, the storage, pruners and everything else stay Optuna's. The sampler keeps a study of
scrimp in memory beside each Optuna study, tells it every trial that has ended, whoever ran it, and
asks it for the parameters that all trials so far have in common (Optuna's *relative* search space).
Parameters that only some trials have are drawn at random, as by Optuna's own samplers that model
several parameters at once. A pruned trial counts with its last report, and a failed one as failed.

In a study with several objectives the method looks for the whole front; ``method="gp"`` then tries
what is expected to add most to its hypervolume.

    optuna.create_study(sampler=ScrimpSampler(seed=0), directions=["minimize", "maximize"])
"""

import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

try:
    import optuna
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
        distribution_to_json,
    )
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.study import StudyDirection
    from optuna.trial import FrozenTrial, TrialState
except ModuleNotFoundError as error:
    raise ImportError(
        f"ScrimpSampler needs {error.name}, not installed here; pip install 'scrimp[optuna]'"
    ) from None

from scrimp.errors import ConfigError, SpaceError, StudyError
from scrimp.formats.optuna_file import parameter_of
from scrimp.history.events import Config
from scrimp.history.problem import Direction
from scrimp.json_values import Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.tuning.studies import create_study
from scrimp.tuning.study import Study

__all__ = [
    "ScrimpSampler",
    "distributions_of",
    "space_of_distributions",
    "space_of_suggestions",
]

Distributions = Mapping[str, BaseDistribution]


def space_of_distributions(distributions: Distributions) -> Space:
    """The space that Optuna's distributions mean; choices by their number.

    >>> from optuna.distributions import IntDistribution
    >>> space_of_distributions({"n": IntDistribution(1, 8)})
    Space(n=Int(1, 8))
    """
    return Space({name: _parameter(name, given) for name, given in distributions.items()})


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """Optuna's distributions for a space of scrimp; conditions and ordinals are refused by name,
    since a distribution cannot say them.

    >>> distributions_of(Space(n=Int(1, 8)))
    {'n': IntDistribution(high=8, log=False, low=1, step=1)}
    """
    return {name: _distribution(name, parameter) for name, parameter in space.items()}


def _distribution(name: str, parameter: Parameter) -> BaseDistribution:
    if parameter.when is not None:
        raise SpaceError(
            f"parameter {name!r} exists under a condition, which Optuna says in the objective: leave"
            " it out here, and suggest it there"
        )
    match parameter:
        case Float():
            low, high, log = parameter.low, parameter.high, parameter.log
            return FloatDistribution(low, high, log=log, step=parameter.step)
        case Int():
            low, high, log = parameter.low, parameter.high, parameter.log
            return IntDistribution(low, high, log=log, step=parameter.step or 1)
        case Categorical():
            return CategoricalDistribution(tuple(parameter.choices))
        case Constant():
            return CategoricalDistribution((parameter.value,))
    raise SpaceError(
        f"parameter {name!r} is {parameter!r}, whose order Optuna cannot say; give its values as a"
        " Categorical"
    )


def space_of_suggestions(distributions: Distributions) -> Space:
    """The space that Optuna's distributions mean, with the choices themselves: the other way of
    `distributions_of`."""
    return Space(
        {
            name: parameter_of(name, json.loads(distribution_to_json(given)))
            for name, given in distributions.items()
        }
    )


def _parameter(name: str, given: BaseDistribution) -> Parameter:
    if isinstance(given, CategoricalDistribution):
        return Categorical(list(range(len(given.choices))))
    return parameter_of(name, json.loads(distribution_to_json(given)))


class ScrimpSampler(BaseSampler):  # type: ignore[misc]
    """Asks a method of scrimp what to try next; ``method`` is its name, with settings where needed
    (``"gp:kernel=rbf-ard"``). One objective or several."""

    def __init__(self, method: str = "gp", *, seed: int | None = None) -> None:
        self._method = method
        self._seed = seed
        self._random = RandomSampler(seed=seed)
        self._shared = IntersectionSearchSpace()
        self._mirrors: dict[str, _Mirror] = {}

    def reseed_rng(self) -> None:
        """Optuna calls this in each parallel worker."""
        self._random.reseed_rng()

    def __getstate__(self) -> dict[str, object]:
        """Without the studies kept beside: they are made again from Optuna's trials."""
        return {**self.__dict__, "_mirrors": {}}

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """What all trials have in common, without parameters of a single value."""
        shared = self._shared.calculate(study)
        return {name: given for name, given in shared.items() if not given.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> Config:
        """Parameters for the trial, by the method."""
        if not search_space:
            return {}
        key = f"{study.study_name} {sorted(search_space.items(), key=str)}"
        mirror = self._mirrors.get(key)
        trials = study.get_trials(deepcopy=False)
        if mirror is None or not mirror.update(trials):
            mirror = self._mirrors[key] = _Mirror.of(
                search_space, self._method, self._seed, _metrics(study)
            )
            mirror.update(trials)
        return mirror.params_for(trial.number)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Scalar:
        """A parameter that not all trials have: at random."""
        drawn: Scalar = self._random.sample_independent(
            study, trial, param_name, param_distribution
        )
        return drawn


def _metrics(study: optuna.Study) -> dict[str, Direction]:
    """The objectives of an Optuna study, named as Optuna names the columns of its tables."""
    ways: list[Direction] = [
        "minimize" if way == StudyDirection.MINIMIZE else "maximize" for way in study.directions
    ]
    if len(ways) == 1:
        return {"value": ways[0]}
    return {f"values_{place}": way for place, way in enumerate(ways)}


@dataclass
class _Mirror:
    """A study of scrimp that knows the trials of an Optuna study, as far as they fit the space."""

    distributions: Distributions
    study: Study
    open: dict[int, int] = field(default_factory=dict)  # Optuna's number -> ours, not yet told
    told: set[int] = field(default_factory=set)
    known: set[tuple[object, ...]] = field(default_factory=set)

    @staticmethod
    def of(
        distributions: Distributions,
        method: str,
        seed: int | None,
        metrics: Mapping[str, Direction],
    ) -> "_Mirror":
        """One that knows nothing yet."""
        with warnings.catch_warnings():
            # how many objectives there are was decided in Optuna
            warnings.filterwarnings("ignore", message=".*metrics: with so many")
            study = create_study(
                "mirror",
                space_of_distributions(distributions),
                metrics=metrics,
                method=method,
                storage="memory://",
                seed=seed,
            )
        return _Mirror(distributions, study)

    def update(self, trials: list[FrozenTrial]) -> bool:
        """Learn what ended and what others run; False when a trial was run with other parameters
        than suggested, so that this mirror shows something that never was."""
        for trial in trials:
            if trial.number in self.told:
                continue
            config = self._config(trial)
            if trial.number in self.open:
                if trial.state.is_finished() and config != self._suggested(trial.number):
                    return False
            elif config is None or not self._take_in(trial.number, config):
                if trial.state.is_finished():
                    self.told.add(trial.number)  # nothing that this space could learn from
                continue
            if trial.state.is_finished():
                self._tell(self.open.pop(trial.number), trial)
                self.told.add(trial.number)
        return True

    def params_for(self, number: int) -> Config:
        """What the method suggests for a new trial; at random where nothing new is left."""
        try:
            asked = self.study.ask()
        except StudyError:
            rng = np.random.default_rng(number)
            return self._named(self.study.space.sample(1, rng)[0])
        self.open[number] = asked.id
        self.known.add(self.study.space.key(asked.config))
        return self._named(asked.config)

    def _named(self, config: Mapping[str, Scalar]) -> Config:
        """With Optuna's choices in place of their numbers."""
        return {
            name: given.choices[config[name]]
            if isinstance(given, CategoricalDistribution)
            else config[name]
            for name, given in self.distributions.items()
        }

    def _config(self, trial: FrozenTrial) -> Config | None:
        """The trial's parameters in our space; None where they do not fit."""
        config = {}
        for name, given in self.distributions.items():
            if name not in trial.params:
                return None
            value = trial.params[name]
            if isinstance(given, CategoricalDistribution):
                try:
                    value = int(given.to_internal_repr(value))
                except ValueError:
                    return None
            config[name] = value
        try:
            return self.study.space.validate(config)
        except ConfigError:
            return None

    def _suggested(self, number: int) -> Config:
        return dict(self.study.history.trials[self.open[number]].config)

    def _take_in(self, number: int, config: Config) -> bool:
        """A trial that was not suggested here; False for a repeat, which teaches nothing new."""
        key = self.study.space.key(config)
        if key in self.known:
            return False
        self.known.add(key)
        self.study.enqueue(config)
        self.open[number] = self.study.ask().id
        return True

    def _tell(self, ours: int, trial: FrozenTrial) -> None:
        """The end of a trial."""
        values: Sequence[float] | None = None
        if trial.state == TrialState.COMPLETE:
            values = trial.values
        elif trial.state == TrialState.PRUNED and trial.intermediate_values:
            values = [trial.intermediate_values[max(trial.intermediate_values)]]
        if values is not None and all(map(math.isfinite, values)):
            self.study.tell(ours, dict(zip(self.study.metrics, values, strict=True)))
        else:
            self.study.tell(ours, state="failed", message=f"{trial.state.name.lower()} in Optuna")
