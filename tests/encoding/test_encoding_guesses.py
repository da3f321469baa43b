"""The user's guesses as a density: shape, gradient, categories, parameters that do not exist, and
what `gp` does with it."""

import numpy as np

import scrimp
from scrimp.encoding.encoding import Encoding
from scrimp.testing.acquisitions import finite_differences

SPACE = scrimp.Space(
    lr=scrimp.Float(1e-5, 1e-1, log=True, prior=(1e-3, "medium")),
    free=scrimp.Float(0, 1),
    optimizer=scrimp.Categorical(["adam", "sgd", "lion"], prior=("sgd", "high")),
    momentum=scrimp.Float(0.0, 1.0, when={"optimizer": "sgd"}, prior=(0.9, 1.0)),
)


def test_no_guess_no_density():
    assert Encoding(scrimp.Space(x=scrimp.Float(0, 1))).guesses is None


def test_density_by_hand():
    encoding = Encoding(SPACE)
    density = encoding.guesses
    assert density is not None
    configs = [
        {"lr": 1e-3, "free": 0.1, "optimizer": "sgd", "momentum": 0.9},
        {"lr": 1e-2, "free": 0.9, "optimizer": "sgd", "momentum": 0.7},
        {"lr": 1e-3, "free": 0.9, "optimizer": "adam"},
    ]
    values = density(encoding.encode(configs))[0]
    sure = 0.95 * 0.75
    best = np.log(sure + (1 - sure) / 3)
    expected = [
        best,
        best - 0.5 * (0.25 / 0.2) ** 2 - 0.5 * (0.2 / 0.1) ** 2,
        np.log((1 - sure) / 3),
    ]
    np.testing.assert_allclose(values, expected, rtol=1e-9)


def test_gradient_against_finite_differences():
    encoding = Encoding(SPACE)
    density = encoding.guesses
    assert density is not None
    x = encoding.domain.sample(8, np.random.default_rng(0))
    free = encoding.domain.free(x)
    numeric = finite_differences(lambda rows: density(rows)[0], x)
    np.testing.assert_allclose(
        np.where(free, density(x)[1], 0.0), np.where(free, numeric, 0.0), atol=1e-5
    )


def test_a_density_draws_the_search_and_confidence_draws_more() -> None:
    def distance(prior: tuple[float, str] | None) -> float:
        space = scrimp.Space(x=scrimp.Float(0, 1, prior=prior), y=scrimp.Float(0, 1, prior=prior))
        result = scrimp.minimize(
            lambda p: np.sin(9 * p["x"]) + p["y"], space, n_trials=9, method="gp", seed=0
        )
        decided = result.study.trials[4:]
        return float(
            np.mean([abs(t.params["x"] - 0.8) + abs(t.params["y"] - 0.8) for t in decided])
        )

    assert distance((0.8, "high")) < distance((0.8, "low")) < distance(None)
