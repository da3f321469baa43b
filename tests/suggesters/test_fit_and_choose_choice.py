"""The last step: what is maximised, and what is said about it."""

import numpy as np

from scrimp.acquisition.improvement import LogExpectedImprovement
from scrimp.encoding.encoding import Encoding
from scrimp.encoding.training_data import training_data
from scrimp.json_values import Config
from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.problem import Problem
from scrimp.suggesters.fit_and_choose import Choice, fit_models
from scrimp.suggesters.model_settings import ModelSettings
from scrimp.testing.policies import begin, pend, tell

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))


def _choice(pending: int = 0, cost: bool = False) -> Choice:
    history = begin(Problem(SPACE, cost="seconds" if cost else None))
    configs: list[Config] = SPACE.sample(8, np.random.default_rng(0))
    for config in configs:
        history = tell(history, config, (config["a"] - 0.3) ** 2 + config["b"])
    for config in SPACE.sample(pending, np.random.default_rng(9)):
        history = pend(history, config)
    encoding = Encoding(SPACE)
    training = training_data(history, encoding)
    models = fit_models(
        history, training, encoding.columns, ModelSettings(), np.random.default_rng(0)
    )
    return Choice(LogExpectedImprovement(), models, training, encoding, seed=7)


def test_candidates_follow_from_the_seed_alone() -> None:
    one, _ = _choice().best(1, np.random.default_rng(1))
    two, _ = _choice().best(1, np.random.default_rng(2))
    assert one == two


def test_several_at_once_differ_and_the_first_has_reasons() -> None:
    configs, reason = _choice(pending=1).best(3, np.random.default_rng(1))
    assert len({tuple(config.values()) for config in configs}) == 3
    assert np.isfinite(reason.score) and all(
        SPACE.contains(rival.config) for rival in reason.rivals
    )
