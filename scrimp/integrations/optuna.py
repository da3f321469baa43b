"""`ScrimpSampler`: methods of scrimp in an Optuna study.

    study = optuna.create_study(sampler=ScrimpSampler(seed=0))
    study.optimize(objective, n_trials=50)

The objective, the storage, pruners and everything else are Optuna's. The sampler mirrors each Optuna
study in a study of scrimp in memory: it tells the mirror every trial that has ended, in any process,
and asks it for the parameters that all trials so far have in common (Optuna's *relative* search
space). Parameters that only some trials have are drawn at random, as in Optuna's own multivariate
samplers. A pruned trial counts with its last report, a failed one as failed.

In a study with several objectives the method searches for the whole front; ``method="gp"`` then
tries the configuration that is expected to add most to its hypervolume.

    optuna.create_study(sampler=ScrimpSampler(seed=0), directions=["minimize", "maximize"])
"""

import json
import math
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scrimp.errors import ConfigError, SpaceError, StudyError
from scrimp.formats.optuna_file import parameter_of
from scrimp.integrations.extras import extra
from scrimp.json_values import Config, Scalar
from scrimp.space.parameter import Categorical, Constant, Float, Int
from scrimp.space.parameter_contract import Parameter
from scrimp.space.space import Space
from scrimp.study.studies import create_study
from scrimp.study.study import Study
from scrimp.study_log.problem import Direction

with extra("optuna", "ScrimpSampler"):
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

Distributions = Mapping[str, BaseDistribution]


def space_of_distributions(distributions: Distributions) -> Space:
    """Return the space of Optuna's distributions; a choice is represented by its index.

    >>> from optuna.distributions import IntDistribution
    >>> space_of_distributions({"n": IntDistribution(1, 8)})
    Space(n=Int(1, 8))
    """
    return Space(
        {
            name: Categorical(list(range(len(given.choices))))
            if isinstance(given, CategoricalDistribution)
            else _plain(name, given)
            for name, given in distributions.items()
        }
    )


def distributions_of(space: Space) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions for a space of scrimp. Conditions and ordinals are refused by
    name: a distribution cannot express them.

    >>> distributions_of(Space(n=Int(1, 8)))
    {'n': IntDistribution(high=8, log=False, low=1, step=1)}
    """
    return {name: _distribution(name, parameter) for name, parameter in space.items()}


def _distribution(name: str, parameter: Parameter) -> BaseDistribution:
    if parameter.when is not None:
        raise SpaceError(
            f"parameter {name!r} is conditional; Optuna expresses conditions in the objective: leave"
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
        f"parameter {name!r} is {parameter!r}; Optuna has no ordered choices: give its values as a"
        " Categorical"
    )


def space_of_suggestions(distributions: Distributions) -> Space:
    """Return the space of Optuna's distributions: the inverse of `distributions_of`."""
    return Space({name: _plain(name, given) for name, given in distributions.items()})


def _plain(name: str, given: BaseDistribution) -> Parameter:
    return parameter_of(name, json.loads(distribution_to_json(given)))


class ScrimpSampler(BaseSampler):  # type: ignore[misc]
    """A sampler that asks a method of scrimp what to try next, for one objective or several;
    ``method`` is its name, optionally with settings (``"gp:kernel=rbf-ard"``)."""

    def __init__(self, method: str = "gp", *, seed: int | None = None) -> None:
        self._method = method
        self._seed = seed
        self._random = RandomSampler(seed=seed)
        self._shared = IntersectionSearchSpace()
        self._mirrors: dict[str, _Mirror] = {}
        # With n_jobs > 1, Optuna calls one sampler from several threads.
        self._lock = threading.RLock()

    def reseed_rng(self) -> None:
        """Called by Optuna in each parallel worker."""
        self._random.reseed_rng()

    def __getstate__(self) -> dict[str, object]:
        """Leave out the mirrors, which are rebuilt from Optuna's trials, and the lock."""
        kept = {**self.__dict__, "_mirrors": {}}
        del kept["_lock"]
        return kept

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore the sampler in another process, with a lock of its own."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """Return the parameters that all trials have in common, without those of a single value."""
        with self._lock:
            shared = self._shared.calculate(study)
        return {name: given for name, given in shared.items() if not given.single()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> Config:
        """Return the method's suggestion for these parameters."""
        if not search_space:
            return {}
        key = f"{study.study_name} {sorted(search_space.items(), key=str)}"
        with self._lock:
            mirror = self._mirrors.get(key)
            trials = study.get_trials(deepcopy=False)
            if mirror is None or not mirror.update(trials):
                mirror = self._mirrors[key] = self._new_mirror(study, search_space)
                mirror.update(trials)
            return mirror.params_for(trial.number)

    def _new_mirror(self, study: optuna.Study, distributions: Distributions) -> "_Mirror":
        """Return a mirror without trials."""
        space, metrics, place = space_of_distributions(distributions), _metrics(study), "memory://"
        with warnings.catch_warnings():
            # The number of objectives was chosen in Optuna.
            warnings.filterwarnings("ignore", message=".*metrics: with so many")
            method, seed = self._method, self._seed
            mirrored = create_study(
                "mirror", space, metrics=metrics, method=method, storage=place, seed=seed
            )
        return _Mirror(distributions, mirrored)

    def sample_independent(
        self,
        study: optuna.Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Scalar:
        """Draw a parameter that not all trials have at random."""
        drawn: Scalar = self._random.sample_independent(
            study, trial, param_name, param_distribution
        )
        return drawn


def _metrics(study: optuna.Study) -> dict[str, Direction]:
    """Return the objectives of an Optuna study, named like the columns of its tables."""
    ways: list[Direction] = [
        "minimize" if way == StudyDirection.MINIMIZE else "maximize" for way in study.directions
    ]
    if len(ways) == 1:
        return {"value": ways[0]}
    return {f"values_{place}": way for place, way in enumerate(ways)}


@dataclass
class _Mirror:
    """A study of scrimp with those trials of an Optuna study that fit the space. ``open`` maps the
    numbers of Optuna's running trials to those of the mirror."""

    distributions: Distributions
    study: Study
    open: dict[int, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    known: set[tuple[object, ...]] = field(default_factory=set)

    def update(self, trials: list[FrozenTrial]) -> bool:
        """Add trials that ended or run in other processes; return False if a trial ran with other
        parameters than suggested, so that this mirror is wrong."""
        for trial in trials:
            if trial.number in self.told:
                continue
            config = self._config(trial)
            if trial.number in self.open:
                suggested = self.study.history.trials[self.open[trial.number]].config
                if trial.state.is_finished() and config != suggested:
                    return False
            elif config is None or not self._take_in(trial.number, config):
                # Nothing can be learned from this trial in this space.
                if trial.state.is_finished():
                    self.told.add(trial.number)
                continue
            if trial.state.is_finished():
                self._tell(self.open.pop(trial.number), trial)
                self.told.add(trial.number)
        return True

    def params_for(self, number: int) -> Config:
        """Return the method's suggestion for a new trial; a random one if nothing new is left."""
        try:
            asked = self.study.ask()
        except StudyError:
            rng = np.random.default_rng(number)
            return self._named(self.study.space.sample(1, rng)[0])
        self.open[number] = asked.id
        self.known.add(self.study.space.key(asked.config))
        return self._named(asked.config)

    def _named(self, config: Mapping[str, Scalar]) -> Config:
        """Return the configuration with Optuna's choices in place of their indices."""
        return {
            name: given.choices[config[name]]
            if isinstance(given, CategoricalDistribution)
            else config[name]
            for name, given in self.distributions.items()
        }

    def _config(self, trial: FrozenTrial) -> Config | None:
        """Return the trial's parameters in the mirror's space; None if they do not fit."""
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

    def _take_in(self, number: int, config: Config) -> bool:
        """Add a trial that was not suggested here; return False for a repeated configuration."""
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
